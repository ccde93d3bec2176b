#include "report/json.h"

#include <cstdint>
#include <cstdio>

namespace reprise {
namespace {

void append_escape(std::string& out, std::uint32_t code) {
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(code & 0xffff));
  out += text;
}

bool continues(std::string_view text, std::size_t i) {
  return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
}

// Bytes of the character that begins at i; 0: there is none, or one that UTF-8 forbids.
std::size_t character_bytes(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[i + k]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t n = lead >= 0xc2 && lead < 0xe0   ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  for (std::size_t k = 1; k < n; ++k) {
    if (!continues(text, i + k)) return 0;
  }
  const bool is_overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool is_no_character =
      (lead == 0xed && byte(1) >= 0xa0) || (lead == 0xf4 && byte(1) >= 0x90);
  return is_overlong || is_no_character ? 0 : n;
}

bool ends_a_line(std::string_view character) {
  return character == "\xe2\x80\xa8" || character == "\xe2\x80\xa9";
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = character_bytes(text, i);
    const std::string_view character = text.substr(i, n == 0 ? 1 : n);
    i += character.size();
    const auto byte = static_cast<unsigned char>(character[0]);
    if (n == 0)
      append_escape(out, 0xfffd);
    else if (byte == '"' || byte == '\\')
      (out += '\\') += character;
    else if (byte < 0x20 || byte == 0x7f || byte == '<' || byte == '>' || byte == '&')
      append_escape(out, byte);
    else if (ends_a_line(character))
      append_escape(out, 0x2000U + static_cast<unsigned char>(character[2]) - 0x80U);
    else
      out += character;
  }
  return out + '"';
}

std::string JsonStrings::number(const std::string& text) {
  const auto [it, is_new] = numbers_.try_emplace(text, texts_.size());
  if (is_new) texts_.push_back(text);
  return std::to_string(it->second);
}

std::string JsonStrings::list() const {
  std::vector<std::string> quoted;
  for (const std::string& text : texts_) quoted.push_back(json_quoted(text));
  return json_list(quoted);
}

std::string json_list(const std::vector<std::string>& items) {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ',';
    out += items[i];
  }
  return out + ']';
}

std::string json_list(const std::vector<std::size_t>& numbers) {
  std::vector<std::string> items;
  for (std::size_t n : numbers) items.push_back(std::to_string(n));
  return json_list(items);
}

}  // namespace reprise
