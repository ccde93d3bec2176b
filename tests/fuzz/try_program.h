// What a fuzzer does with a text: everything that a reader of programs may do.
#pragma once

#include <string>
#include <string_view>

// Reads a program, checks and prints it, reads that again, differentiates, plans and evaluates it,
// both ways. An answer of the library, also an error, is fine; throws std::logic_error when it is a
// defect. Programs that are too large to run in a moment are only read and printed.
void try_program(std::string_view text);
