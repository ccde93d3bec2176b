// The command-line tool: what checkpoint policies do to a program, without writing C++.
#include "commands.h"
#include "completion.h"
#include "input.h"
#include "policy_text.h"
#include "reprise/errors.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

namespace reprise::cli {
namespace {

constexpr int input_is_wrong = 1, usage_is_wrong = 2;

constexpr const char* program_help =
    R"(FILE holds a program in text form, as make_jaxpr prints it here and in JAX:
  { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[] = reduce_sum[axes=(0,)
    out_sharding=None] b in (c,) }
`-` reads standard input.
)";

constexpr const char* exit_codes =
    R"(Exit codes: 0 success; 1 the input is wrong, with FILE:line:column where it is known;
2 the command line is wrong.
)";

constexpr const char* gradient_help =
    R"(The program is differentiated with respect to all floating-point arguments, or to those of
--wrt. One floating scalar as result is a loss, as for grad. Of any other program every
floating output takes a cotangent, as for vjp: they are further arguments (ct0, ct1, ...).
)";

constexpr const char* plan_help =
    R"(It is compiled, not run. Bytes: arguments and outputs; temporaries, beyond both; peak, what a
run holds at most beyond its arguments; offloaded, what policies move to the host, a part of
the peak unless REPRISE_SPILL_DIR names a folder for it. Recomputed flops are spent on
values that the checkpoints, or the plan where it is cheap, compute again instead of keeping.
)";

constexpr const char* curve_help =
    R"(The plans from the least peak to the plain one, which is the last of each policy. Nothing is
compiled to machine code. Peak: what a run holds at most beyond its arguments; time, by a model,
and flops against the plain plan. What a policy saves is fixed, all else may be computed again.
)";

constexpr const char* suggest_help =
    R"(The policy over the names of the program (checkpoint_name) with the least time among those that
keep the peak of the gradient, beyond the arguments, within the budget, as Python for JAX and as
a POLICY of this tool. Beside it stand the plan of jit with that budget, which may repeat any
equation, and the gradient without checkpoints. Names are offloaded only if nothing else fits.
BYTES is a number, or one with KiB, MiB, GiB, TiB, KB, MB, GB or TB behind it.
)";

constexpr const char* solve_help =
    R"(FILE holds a JSON array of graphs: `name`, `nodes` (`bytes`, `cost`, `operands`: numbers of
earlier nodes, `output`) and `rows`, each with a `budget` in bytes. For each row one line:
`name`, `budget`, `schedule` (nodes in the order of their evaluations), its `peak` and `cost`,
and `lower`, which no schedule within the budget can cost less than. Without a schedule it is
null, and `least_peak` is the lowest peak that was found.
)";

constexpr const char* checkpoint_help =
    R"(A program that contains checkpoints (remat2) is taken as it is written, or with all of them
under the policy, or with `none`, without them. One that contains none is checkpointed as a
whole by a policy, which costs flops and rarely saves memory: checkpoint its parts instead.
)";

std::string policy_help() {
  std::string text = str(checkpoint_help, "\nPolicies (POLICY) and what they save:\n");
  for (const PolicyName& p : policy_names()) {
    const std::string name = str("  ", p.name, p.arguments);
    const std::size_t column = 37;
    text += name.size() < column ? name + std::string(column - name.size(), ' ')
                                 : name + "\n" + std::string(column, ' ');
    text += str(p.saves, "\n");
  }
  return text +
         R"(They combine as in C++: 'P | Q', 'P & Q', '!P', with parentheses; quote them for the shell.
Names are those that checkpoint_name gave: `name[name=h]` in the program.
)";
}

struct Options {
  PrintOptions print;
  ResidualsOptions residuals;
  PlanOptions plan;
  CurveOptions curve;
  SuggestOptions suggest;
  SolveOptions solve;
  std::string shell;
};

void add_file(CLI::App& command, std::string& file) {
  command.add_option("FILE", file, "A program in text form; - for standard input")->required();
}
void add_policies(CLI::App& command, std::vector<std::string>& policies) {
  command
      .add_option("--policy", policies, "Checkpoint with this policy; repeat it to compare several")
      ->type_name("POLICY")
      ->allow_extra_args(false);
}
void add_wrt(CLI::App& command, std::string& wrt) {
  command
      .add_option("--wrt", wrt, "Differentiate with respect to these arguments, by number or name")
      ->type_name("A,B,...");
}
void add_json(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print one JSON object");
}

void add_print(CLI::App& app, PrintOptions& options) {
  CLI::App& command = *app.add_subcommand("print", "Check a program and print it");
  add_file(command, options.file);
  command.add_option("--width", options.width, "Break lines at this column")
      ->type_name("COLUMNS")
      ->check(CLI::Range(20, 1000))
      ->capture_default_str();
  add_json(command, options.json);
  command.footer(str(program_help, R"(
Examples:
  reprise print loss.jaxpr
  reprise print --json loss.jaxpr | jq .primitives

)",
                     exit_codes));
}

void add_residuals(CLI::App& app, ResidualsOptions& options) {
  CLI::App& command =
      *app.add_subcommand("residuals", "List what is saved from the forward to the backward pass");
  add_file(command, options.file);
  add_policies(command, options.policies);
  add_wrt(command, options.wrt);
  add_json(command, options.json);
  command.footer(
      str("Every value with its bytes, the reason why it may be saved, and its readers.\n",
          gradient_help, policy_help(), R"(
Examples:
  reprise residuals loss.jaxpr
  reprise residuals loss.jaxpr --policy dots_saveable --wrt 0,1
  reprise residuals loss.jaxpr --policy 'dots_saveable | save_only_these_names:h'

)",
          exit_codes));
}

void add_plan(CLI::App& app, PlanOptions& options) {
  CLI::App& command = *app.add_subcommand("plan", "Plan the memory of a program and its gradient");
  add_file(command, options.file);
  add_policies(command, options.policies);
  add_wrt(command, options.wrt);
  command.add_flag("--forward", options.forward, "Plan the program as it is, not its gradient")
      ->excludes("--policy", "--wrt");
  command.add_flag("--steps", options.steps, "Print the planned steps too");
  command
      .add_option("--report", options.report, "Write a web page that shows the memory over time")
      ->type_name("HTML");
  add_json(command, options.json);
  command.footer(str(gradient_help, plan_help, policy_help(), R"(
Examples:
  reprise plan loss.jaxpr
  reprise plan loss.jaxpr --policy none --policy nothing_saveable --policy dots_saveable
  reprise plan loss.jaxpr --policy none --policy dots_saveable --report memory.html
  reprise plan step.jaxpr --forward --steps

)",
                     exit_codes));
}

void add_curve(CLI::App& app, CurveOptions& options) {
  CLI::App& command =
      *app.add_subcommand("curve", "Show what less memory costs: the plans of a gradient");
  add_file(command, options.file);
  add_policies(command, options.policies);
  add_wrt(command, options.wrt);
  command
      .add_option("--report", options.report,
                  "Write a web page with the curve of the first policy, all of them as points")
      ->type_name("HTML");
  add_json(command, options.json);
  command.footer(str(gradient_help, curve_help, policy_help(), R"(
Examples:
  reprise curve loss.jaxpr
  reprise curve loss.jaxpr --policy none --policy dots_saveable --json
  reprise curve loss.jaxpr --policy none --policy dots_saveable --report curve.html

)",
                     exit_codes));
}

void add_suggest(CLI::App& app, SuggestOptions& options) {
  CLI::App& command =
      *app.add_subcommand("suggest", "Find the best policy over names for a memory budget");
  add_file(command, options.file);
  command.add_option("--budget", options.budget, "Bytes that the gradient may hold")
      ->type_name("BYTES")
      ->required();
  add_wrt(command, options.wrt);
  add_json(command, options.json);
  command.footer(str(gradient_help, suggest_help, R"(
Examples:
  reprise suggest loss.jaxpr --budget 8GiB
  reprise suggest loss.jaxpr --budget 500MB --json

)",
                     exit_codes));
}

void add_solve(CLI::App& app, SolveOptions& options) {
  CLI::App& command = *app.add_subcommand(
      "solve", "Find what to compute again within budgets, for abstract graphs");
  command.add_option("FILE", options.file, "Graphs as JSON; - for standard input")->required();
  command.footer(str(solve_help, R"(
Examples:
  reprise solve graphs.json
  reprise solve graphs.json | jq -c '[.name, .budget, .peak, .cost, .lower]'

)",
                     exit_codes));
}

void add_completion(CLI::App& app, std::string& shell) {
  CLI::App& command = *app.add_subcommand("completion", "Print a completion script for a shell");
  command.add_option("SHELL", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command.footer(
      "Examples:\n  source <(reprise completion bash)\n"
      "  reprise completion zsh > ~/.zfunc/_reprise\n  reprise completion fish | source\n");
}

void add_commands(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "reprise " REPRISE_VERSION, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  app.get_formatter()->column_width(26);
  app.get_formatter()->label("REQUIRED", "");
  add_print(app, options.print);
  add_residuals(app, options.residuals);
  add_plan(app, options.plan);
  add_curve(app, options.curve);
  add_suggest(app, options.suggest);
  add_solve(app, options.solve);
  add_completion(app, options.shell);
  app.footer(
      str(program_help, "\n`reprise COMMAND --help` tells more, with examples.\n", exit_codes));
}

void run(const CLI::App& app, const Options& options, std::ostream& out) {
  const std::string command = app.get_subcommands().at(0)->get_name();
  if (command == "print") print_program(options.print, out);
  if (command == "residuals") list_residuals(options.residuals, out);
  if (command == "plan") plan_memory(options.plan, out);
  if (command == "curve") draw_curve(options.curve, out);
  if (command == "suggest") suggest(options.suggest, out);
  if (command == "solve") solve_graphs(options.solve, out);
  if (command == "completion") out << completion_script(app, options.shell);
  out.flush();
  if (!out) throw std::runtime_error("the output cannot be written");
}

int fail_with(int code, const std::string& message) {
  std::cerr << "reprise: " << message << "\n";
  return code;
}

// The parser would only say that a command is missing.
void check_command(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::string known = "the commands are " + join(names, ", ");
  if (argc < 2) throw UsageError("a command is expected; " + known);
  const std::string word = argv[1];
  if (!word.starts_with("-") && std::find(names.begin(), names.end(), word) == names.end()) {
    throw UsageError(str("there is no command `", word, "`; ", known));
  }
}

int main(int argc, char** argv) {
  CLI::App app(
      "Gradient checkpointing at a glance: what a program saves, and the memory it needs.");
  app.name("reprise");
  Options options;
  add_commands(app, options);
  try {
    check_command(app, argc, argv);
    app.parse(argc, argv);
    run(app, options, std::cout);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help, version
    return fail_with(usage_is_wrong, str(error.what(), "\ntry `reprise --help`"));
  } catch (const UsageError& error) {
    return fail_with(usage_is_wrong, error.what());
  } catch (const InputError& error) {
    std::cerr << error.what() << "\n";  // begins with the file, as editors expect it
    return input_is_wrong;
  } catch (const std::exception& error) {
    return fail_with(input_is_wrong, error.what());
  }
}

}  // namespace
}  // namespace reprise::cli

int main(int argc, char** argv) { return reprise::cli::main(argc, argv); }
