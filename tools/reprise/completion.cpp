#include "completion.h"

#include "policy_text.h"
#include "reprise/errors.h"

#include <vector>

namespace reprise::cli {
namespace {

enum class Value { none, policy, file, word };  // what follows an option

Value value_of(const CLI::Option& option) {
  if (option.get_expected_min() == 0) return Value::none;  // a flag
  const std::string name = option.get_name();
  if (name == "--policy") return Value::policy;
  return name == "--report" ? Value::file : Value::word;
}

struct Flag {
  std::string name;  // with its dashes
  std::string description;
  Value value;
};
struct Command {
  std::string name, description;
  std::vector<Flag> flags;
  bool takes_file = false;
};

std::vector<Flag> flags_of(const CLI::App& app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->nonpositional()) continue;
    flags.push_back(
        {"--" + option->get_lnames().at(0), option->get_description(), value_of(*option)});
  }
  return flags;
}

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* sub : app.get_subcommands({})) {
    const bool takes_file = sub->get_option_no_throw("FILE") != nullptr;
    commands.push_back({sub->get_name(), sub->get_description(), flags_of(*sub), takes_file});
  }
  return commands;
}

template <class Range, class F>
std::string joined(const Range& range, const char* separator, const F& text) {
  std::vector<std::string> texts;
  for (const auto& item : range) texts.push_back(text(item));
  return join(texts, separator);
}

// A policy with arguments ends in a colon: the arguments follow at once.
std::string completed(const PolicyName& p) {
  return std::string(p.name) + (*p.arguments ? ":" : "");
}
std::string name_of(const Flag& flag) { return flag.name; }
std::string name_of_command(const Command& c) { return c.name; }

// ------------------------------------------------------------------------------------------- bash
std::string bash_script(const CLI::App& app) {
  const std::vector<Command> commands = commands_of(app);
  std::string cases;
  for (const Command& c : commands) {
    cases += "    " + c.name + ") options='" + joined(c.flags, " ", name_of) + "' ;;\n";
  }
  return R"(# Completion for bash. Load it with: source <(reprise completion bash)
_reprise() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} options=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ')" +
         joined(commands, " ", name_of_command) + " " + joined(flags_of(app), " ", name_of) +
         R"(' -- "$current"))
    return
  fi
  case $previous in
    --policy)
      COMPREPLY=($(compgen -W ')" +
         joined(policy_names(), " ", completed) + R"(' -- "$current"))
      if [[ ${COMPREPLY[0]} == *: ]]; then compopt -o nospace 2>/dev/null; fi
      return ;;
    --wrt|--width|:) return ;;
  esac
  case ${COMP_WORDS[1]} in
)" + cases +
         R"(  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ ${COMP_WORDS[1]} == completion ]]; then
    COMPREPLY=($(compgen -W 'bash zsh fish' -- "$current"))
  else
    compopt -o filenames 2>/dev/null
    local IFS=$'\n'
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -F _reprise reprise
)";
}

// -------------------------------------------------------------------------------------------- zsh
std::string escaped(const std::string& text, const std::string& special) {
  std::string result;
  for (char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (special.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_flag(const Flag& flag) {
  const std::string start = "'*" + flag.name + "[" + escaped(flag.description, "[]:\\") + "]";
  switch (flag.value) {
    case Value::none: return start + "'";
    case Value::policy: return start + ":policy:_reprise_policies'";
    case Value::file: return start + ":file:_files'";
    case Value::word: return start + ":value: '";
  }
  return start;
}

std::string zsh_script(const CLI::App& app) {
  const std::vector<Command> commands = commands_of(app);
  std::string cases;
  for (const Command& c : commands) {
    const char* rest = c.takes_file ? "'1:file:_files'" : "'1:shell:(bash zsh fish)'";
    cases +=
        "    " + c.name + ") _arguments " + joined(c.flags, " ", zsh_flag) + " " + rest + " ;;\n";
  }
  return R"(#compdef reprise
# Completion for zsh. Save it as _reprise in a folder of $fpath, or: source <(reprise completion zsh)
_reprise_policies() {
  local -a policies
  policies=(
)" +
         joined(policy_names(), "",
                [](const PolicyName& p) {
                  return "    '" + escaped(completed(p), ":") + ":" + escaped(p.saves, "") + "'\n";
                }) +
         R"(  )
  _describe policy policies -S ''
}
_reprise() {
  if ((CURRENT == 2)); then
    local -a commands
    commands=(
)" +
         joined(commands, "",
                [](const Command& c) {
                  return "      '" + c.name + ":" + escaped(c.description, "") + "'\n";
                }) +
         R"(    )
    _describe command commands
    _arguments )" +
         joined(flags_of(app), " ", zsh_flag) + R"(
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
)" + cases +
         R"(  esac
}
if [[ $funcstack[1] == _reprise ]]; then _reprise "$@"; else compdef _reprise reprise; fi
)";
}

// ------------------------------------------------------------------------------------------- fish
std::string fish_flag(const std::string& condition, const Flag& flag) {
  std::string line = "complete -c reprise -n '" + condition + "' -l " + flag.name.substr(2);
  switch (flag.value) {
    case Value::none: break;
    case Value::policy: line += " -x -a '(__reprise_policies)'"; break;
    case Value::file: line += " -rF"; break;
    case Value::word: line += " -x"; break;
  }
  return line + " -d '" + escaped(flag.description, "") + "'\n";
}

std::string fish_script(const CLI::App& app) {
  std::string text =
      "# Completion for fish. Load it with: reprise completion fish | source\n"
      "function __reprise_policies\n" +
      joined(policy_names(), "",
             [](const PolicyName& p) {
               return "  printf '%s\\t%s\\n' '" + completed(p) + "' '" + escaped(p.saves, "") +
                      "'\n";
             }) +
      "end\ncomplete -c reprise -f\n";
  for (const Flag& flag : flags_of(app)) text += fish_flag("__fish_use_subcommand", flag);
  for (const Command& c : commands_of(app)) {
    const std::string here = "__fish_seen_subcommand_from " + c.name;
    text += "complete -c reprise -n __fish_use_subcommand -a " + c.name + " -d '" +
            escaped(c.description, "") + "'\n";
    for (const Flag& flag : c.flags) text += fish_flag(here, flag);
    text += "complete -c reprise -n '" + here + "'" +
            (c.takes_file ? " -F\n" : " -a 'bash zsh fish'\n");
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return bash_script(app);
  return shell == "zsh" ? zsh_script(app) : fish_script(app);
}

}  // namespace reprise::cli
