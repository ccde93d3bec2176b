// A program that the tool was given as text.
#pragma once

#include "program/program.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace reprise::cli {

// The command line is wrong: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The input is wrong: exit code 1. The text begins with the file, its line and column where known.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Input {
  std::string file;  // as messages call it
  ProgramPtr program;
  std::vector<std::string> names;  // of its inputs in the text: constants first, then arguments

  Arrays placeholders() const;  // one for each input, with its type and without elements
};

// "-" is standard input. Both throw InputError.
std::string read_text(const std::string& file);
Input read_input(const std::string& file);

}  // namespace reprise::cli
