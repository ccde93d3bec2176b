#include "program/layout.h"

#include <algorithm>

namespace reprise {
namespace {

struct Line {
  std::string text;
  std::vector<std::string_view> notes;
};

// Notes begin in one column, after the longest line; a second note of a line gets its own line.
std::string align_notes(const std::vector<Line>& lines) {
  std::size_t width = 0;
  for (const Line& line : lines) width = std::max(width, line.text.size());
  std::string out;
  for (const Line& line : lines) {
    if (&line != &lines.front()) out += '\n';
    out += line.text;
    for (std::size_t i = 0; i < line.notes.size(); ++i) {
      if (i > 0) out += '\n';
      out.append(width - (i > 0 ? 0 : line.text.size()), ' ');
      out.append(" # ").append(line.notes[i]);
    }
  }
  return out;
}

}  // namespace

void Layout::text(std::string_view s) {
  texts_ += s;
  const bool joins =
      !tokens_.empty() && tokens_.back().kind == Kind::text && tokens_.back().note < 0;
  if (!joins) tokens_.push_back({Kind::text});
  tokens_.back().value += static_cast<std::int64_t>(s.size());
}

void Layout::text(std::string_view s, std::string note) {
  texts_ += s;
  tokens_.push_back(
      {Kind::text, static_cast<std::int64_t>(s.size()), static_cast<std::int64_t>(notes_.size())});
  notes_.push_back(std::move(note));
}

void Layout::brk(std::string_view flat) {
  texts_ += flat;
  tokens_.push_back({Kind::brk, static_cast<std::int64_t>(flat.size())});
}

std::size_t Layout::open_group() {
  tokens_.push_back({Kind::open, -static_cast<std::int64_t>(texts_.size()) - room_});
  return tokens_.size() - 1;
}
void Layout::close_group(std::size_t token) {
  tokens_[token].value += static_cast<std::int64_t>(texts_.size()) + room_;
  tokens_.push_back({Kind::close});
}
void Layout::add_indent(int change) { tokens_.push_back({Kind::indent, change}); }

std::string Layout::render(int width) const {
  std::vector<Line> lines(1);
  std::vector<bool> flat{false};
  std::int64_t indent = 0;
  std::int64_t unseen = 0;  // columns of this line that are counted and not printed
  std::string_view rest = texts_;
  for (const Token& token : tokens_) {
    std::string& line = lines.back().text;
    switch (token.kind) {
      case Kind::text:
        line += rest.substr(0, static_cast<std::size_t>(token.value));
        rest.remove_prefix(static_cast<std::size_t>(token.value));
        if (token.note >= 0) {
          lines.back().notes.push_back(notes_[static_cast<std::size_t>(token.note)]);
        }
        break;
      case Kind::brk:
        if (flat.back()) {
          line += rest.substr(0, static_cast<std::size_t>(token.value));
        } else {
          lines.push_back({std::string(static_cast<std::size_t>(indent), ' '), {}});
          unseen = 0;
        }
        rest.remove_prefix(static_cast<std::size_t>(token.value));
        break;
      case Kind::open: {
        const std::int64_t room = width - static_cast<std::int64_t>(line.size()) - unseen;
        flat.push_back(token.value <= room);
        break;
      }
      case Kind::close: flat.pop_back(); break;
      case Kind::indent: indent += token.value; break;
      case Kind::room: unseen += token.value; break;
    }
  }
  return align_notes(lines);
}

}  // namespace reprise
