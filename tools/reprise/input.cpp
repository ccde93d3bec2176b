#include "input.h"

#include "api/primitives.h"
#include "program/parse.h"
#include "program/parse_tree.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

namespace reprise::cli {
namespace {

std::string read_all(std::istream& in) {
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Equations refer to the name of their file: it lives as long as the process.
const char* interned(const std::string& file) {
  static std::set<std::string> files;
  return files.insert(file).first->c_str();
}

// The line of the text and a mark below the column.
std::string shown_line(const std::string& text, const ParseError& error) {
  std::size_t begin = 0;
  for (std::size_t line = 1; line < error.line; ++line) begin = text.find('\n', begin) + 1;
  std::string line = text.substr(begin, text.find('\n', begin) - begin);
  std::string mark = line.substr(0, error.column - 1);
  for (char& c : mark) c = c == '\t' ? '\t' : ' ';
  return line.empty() ? "" : str("\n  ", line, "\n  ", mark, "^");
}

}  // namespace

std::string read_text(const std::string& file) {
  if (file == "-") return read_all(std::cin);
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (std::filesystem::is_directory(file)) errno = EISDIR;  // opens, and fails to read
  if (errno != 0 || !in) {
    const char* reason = std::strerror(errno != 0 ? errno : EIO);
    throw InputError(str(file, ": error: the file cannot be read: ", reason));
  }
  return read_all(in);
}

Arrays Input::placeholders() const {
  Arrays args;
  for (const Type& type : program->in_types()) args.push_back(make_traced(type, {}));
  return args;
}

Input read_input(const std::string& file) {
  Input input;
  input.file = file == "-" ? "<stdin>" : file;
  const std::string text = read_text(file);
  try {
    input.program = std::make_shared<const Program>(
        parse_program(text, all_primitives(), interned(input.file)));
  } catch (const ParseError& error) {
    throw InputError(str(input.file, ":", error.line, ":", error.column, ": error: ", error.reason,
                         shown_line(text, error)));
  }
  const ParsedProgram main = parse_tree(text).main;
  for (const auto* binders : {&main.consts, &main.args}) {
    for (const ParsedBinder& b : *binders) input.names.emplace_back(b.name);
  }
  return input;
}

}  // namespace reprise::cli
