// Completion of command lines, as a script for a shell.
#pragma once

#include <CLI/App.hpp>

#include <string>

namespace reprise::cli {

// `shell` is bash, zsh or fish. Commands, options and their descriptions are those of the app.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace reprise::cli
