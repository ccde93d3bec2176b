// Laying out text in lines: a document of texts and breaks, in groups.
//
//   Layout doc;
//   doc.group([&] {
//     doc.text("[");
//     doc.nest(2, [&] { doc.brk(""); doc.text("axis=0"); doc.brk(); doc.text("sizes=(3, 3)"); });
//     doc.brk("");
//     doc.text("]");
//   });
//   doc.render(80);   // [axis=0 sizes=(3, 3)]
//
// A group whose text fits in the rest of the line is printed flat: its breaks become their texts.
// Otherwise each of its breaks ends the line. Two habits of the printer that this one must agree
// with: what follows a group on its line is not counted, and a group inside a broken group decides
// for itself. Building and rendering take time linear in the size of the document.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

class Layout {
 public:
  void text(std::string_view);
  // Text with a note, which is printed after the end of the line and takes no room in it.
  void text(std::string_view, std::string note);
  void brk(std::string_view flat = " ");
  // Nothing printed, but the line and the groups around it count as `width` columns wider.
  void room(std::int64_t width) {
    room_ += width;
    tokens_.push_back({Kind::room, width});
  }
  template <class F>
  void group(F&& inside) {
    const std::size_t token = open_group();
    inside();
    close_group(token);
  }
  template <class F>
  void nest(int indent, F&& inside) {
    add_indent(indent);
    inside();
    add_indent(-indent);
  }
  std::string render(int width) const;

 private:
  enum class Kind : std::uint8_t { text, brk, open, close, indent, room };
  struct Token {
    Kind kind;
    std::int64_t value = 0;  // text, brk: length; open: flat length; indent: change
    std::int64_t note = -1;  // of a text: index into notes_
  };

  std::size_t open_group();
  void close_group(std::size_t token);
  void add_indent(int);

  std::string texts_;  // of all text and brk tokens, one after the other
  std::vector<Token> tokens_;
  std::int64_t room_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace reprise
