#!/usr/bin/env python3
"""Runs the command-line tool as users do: outputs, JSON, errors, exit codes, completion.

  commands_test.py path/to/reprise
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = sys.argv.pop(1)
PROGRAMS = Path(__file__).resolve().parent / "programs"
MANUAL = Path(__file__).resolve().parents[2] / "tools" / "reprise" / "reprise.1.in"
POLICIES = ["none", "nothing_saveable", "everything_saveable", "dots_saveable", "checkpoint_dots",
            "dots_with_no_batch_dims_saveable", "checkpoint_dots_with_no_batch_dims",
            "save_only_these_names:h", "save_any_names_but_these:h",
            "save_anything_except_these_names:h", "save_anything_but_these_names:h",
            "save_from_both_policies:dots_saveable,save_only_these_names:h",
            "bytes_at_least:4096", "bytes_at_most:4096", "offload_dot_with_no_batch_dims",
            "save_and_offload_only_these_names::h", "dots_saveable | save_only_these_names:h",
            "!(dots_saveable & bytes_at_most:8)"]


def reprise(*arguments, stdin=""):
    return subprocess.run([TOOL, *arguments], input=stdin, capture_output=True, text=True,
                          cwd=PROGRAMS, check=False)


class Case(unittest.TestCase):
    maxDiff = None

    def succeed(self, *arguments, stdin=""):
        done = reprise(*arguments, stdin=stdin)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def answer(self, *arguments, stdin=""):
        return json.loads(self.succeed(*arguments, "--json", stdin=stdin))

    def fail_with(self, code, message, *arguments, stdin=""):
        done = reprise(*arguments, stdin=stdin)
        self.assertEqual((done.returncode, done.stdout), (code, ""))
        self.assertEqual(done.stderr, message + "\n")


class Print(Case):
    TEXT = "{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }\n"

    def test_a_program_prints_as_it_was_read(self):
        for name in "loss", "layers":
            text = (PROGRAMS / f"{name}.jaxpr").read_text()
            self.assertEqual(self.succeed("print", f"{name}.jaxpr"), text)

    def test_standard_input_is_a_file(self):
        self.assertEqual(self.succeed("print", "-", stdin=self.TEXT), self.TEXT)

    def test_lines_break_at_the_width(self):
        self.assertEqual(self.succeed("print", "--width", "40", "-", stdin=self.TEXT),
                         "{ lambda ; a:f32[3]. let\n    b:f32[3] = sin a\n  in (b,) }\n")

    def test_json_tells_inputs_outputs_and_what_is_used(self):
        answer = self.answer("print", "blocks.jaxpr")
        self.assertEqual(answer["inputs"][0], {"name": "w0", "type": "f32[64,64]", "bytes": 16384})
        self.assertEqual(answer["outputs"], [{"type": "f32[]", "bytes": 4}])
        self.assertEqual(answer["primitives"]["remat2"], 4)
        self.assertEqual(answer["primitives"]["tanh"], 4)
        self.assertEqual(answer["equations"], 4 * 5 + 1)
        self.assertEqual(answer["text"] + "\n", self.succeed("print", "blocks.jaxpr"))


class Residuals(Case):
    def test_every_value_has_bytes_a_reason_and_readers(self):
        self.assertEqual(self.succeed("residuals", "loss.jaxpr", "--wrt", "b", "--policy",
                                      "save_only_these_names:h"), """\
f32[32,16] from the argument b
  size     2048 bytes
  saved    an argument
  read by  dot_general at loss.jaxpr:8:5, in checkpoint
f32[128,32] named 'h' from loss.jaxpr:7:5
  size     16384 bytes
  saved    policy save_only_these_names('h') allows it
  read by  dot_general at loss.jaxpr:8:5, in checkpoint
total      2 values, 18432 bytes; computed by the forward pass: 1 value, 16384 bytes
""")

    def test_several_policies_have_titles(self):
        text = self.succeed("residuals", "loss.jaxpr", "--policy", "none", "--policy", "dots_saveable")
        self.assertTrue(text.startswith("== none ==\n"), text)
        self.assertIn("\n\n== dots_saveable ==\n", text)

    def test_json_has_the_same_values(self):
        answer = self.answer("residuals", "loss.jaxpr", "--policy", "none", "--policy", "dots_saveable")
        self.assertEqual(answer["wrt"], ["a", "b", "c"])
        none, dots = answer["policies"]
        self.assertEqual([p["policy"] for p in (none, dots)], ["none", "dots_saveable"])
        for policy in none, dots:
            self.assertEqual(policy["bytes"], sum(r["bytes"] for r in policy["residuals"]))
        saved = [r for r in dots["residuals"] if r["computed"]]
        self.assertEqual([r["type"] for r in saved], ["f32[128,32]", "f32[128,16]"])
        self.assertEqual(saved[0]["allowed_by"], "dots_saveable")
        self.assertEqual(saved[0]["read_by"][0],
                         {"what": "sin", "at": "loss.jaxpr:6:5", "inside": ["checkpoint"]})

    def test_checkpoints_of_the_program_take_the_policy(self):
        def computed(*policy):
            report = self.answer("residuals", "blocks.jaxpr", *policy)["policies"][0]
            return [r["origin"].split(" from ")[0] for r in report["residuals"] if r["computed"]]

        self.assertEqual(computed(), ["output of sin"] * 3)  # the inputs of the later blocks
        named = computed("--policy", "save_only_these_names:h")
        self.assertEqual(named.count("named 'h'"), 4)
        self.assertEqual(computed("--policy", "nothing_saveable"), computed())
        self.assertNotIn("named 'h'", computed("--policy", "none"))

    def test_an_unknown_name_is_a_warning_with_the_nearest_name(self):
        for program in "loss", "blocks":
            done = reprise("residuals", f"{program}.jaxpr", "--policy", "save_only_these_names:hh")
            self.assertEqual(done.returncode, 0)
            self.assertIn("the policy names 'hh'", done.stderr)
            self.assertIn("the nearest name in the function is 'h'", done.stderr)


class Plan(Case):
    def test_several_policies_give_a_table(self):
        text = self.succeed("plan", "blocks.jaxpr", "--policy", "none", "--policy", "nothing_saveable")
        lines = [line.split() for line in text.splitlines()]
        self.assertEqual(lines[0][:5], ["policy", "arguments", "outputs", "temporaries", "peak"])
        self.assertEqual([line[0] for line in lines[1:]], ["none", "nothing_saveable"])
        self.assertEqual(lines[1][1:3], ["327,680", "327,684"])

    def test_nothing_saved_needs_less_memory_and_more_flops(self):
        none, nothing = self.answer("plan", "blocks.jaxpr", "--policy", "none", "--policy",
                                    "nothing_saveable")["plans"]
        self.assertLess(nothing["peak_bytes"], none["peak_bytes"])
        products = 4 * 2 * 1024 * 64 * 64  # of the forward pass, which checkpoints play again
        self.assertGreaterEqual(nothing["recomputed_flops"], products)
        self.assertLess(none["recomputed_flops"], products / 10)  # the plan repeats what is cheap
        self.assertGreaterEqual(nothing["flops"], none["flops"] + products)
        for plan in none, nothing:
            self.assertEqual(plan["peak_bytes"], plan["output_bytes"] + plan["temp_bytes"])

    def test_without_a_policy_the_program_is_taken_as_it_is_written(self):
        written, = self.answer("plan", "blocks.jaxpr")["plans"]
        nothing, = self.answer("plan", "blocks.jaxpr", "--policy", "nothing_saveable")["plans"]
        self.assertEqual(written.pop("policy"), "as written")
        self.assertEqual(nothing.pop("policy"), "nothing_saveable")
        self.assertEqual(written, nothing)

    def test_every_policy_is_understood(self):
        for policy in POLICIES:
            for command in "plan", "residuals":
                with self.subTest(policy=policy, command=command):
                    self.succeed(command, "loss.jaxpr", "--policy", policy)

    def test_offloaded_bytes_are_told(self):
        plan, = self.answer("plan", "blocks.jaxpr", "--policy",
                            "save_and_offload_only_these_names::h")["plans"]
        self.assertEqual(plan["host_temp_bytes"], 4 * 1024 * 64 * 4)
        self.assertIn("offloaded", self.succeed("plan", "blocks.jaxpr", "--policy",
                                                "save_and_offload_only_these_names::h"))

    def test_outputs_that_are_no_loss_take_cotangents(self):
        plan, = self.answer("plan", "layers.jaxpr")["plans"]
        inputs, outputs = 4 * (16 * 8 + 8 * 4), 4 * (16 * 4 + 16)
        self.assertEqual(plan["argument_bytes"], inputs + outputs)
        self.assertEqual(plan["output_bytes"], outputs + inputs)

    def test_arguments_are_chosen_by_number_or_name(self):
        by_number = self.answer("plan", "loss.jaxpr", "--wrt", "0,1")
        self.assertEqual(by_number["wrt"], ["a", "b"])
        self.assertEqual(by_number, self.answer("plan", "loss.jaxpr", "--wrt", "b,a"))

    def test_forward_plans_the_program_itself(self):
        answer = self.answer("plan", "loss.jaxpr", "--forward")
        self.assertTrue(answer["forward"])
        self.assertEqual(answer["plans"][0]["output_bytes"], 4)
        integers = "{ lambda ; a:i32[3]. let b:i32[3] = neg a in (b,) }"
        self.assertEqual(self.answer("plan", "-", "--forward", stdin=integers)["plans"][0]["output_bytes"], 12)

    def test_steps_are_printed(self):
        text = self.succeed("plan", "loss.jaxpr", "--steps")
        self.assertIn("\n== as written ==\n", text)
        self.assertIn("kernel [", text)

    def test_a_report_is_one_page_with_every_policy(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "memory.html"
            table = self.succeed("plan", "blocks.jaxpr", "--policy", "none", "--policy", "dots_saveable",
                                 "--report", str(page))
            self.assertEqual(len(table.splitlines()), 3)
            text = page.read_text()
            self.assertTrue(text.lower().startswith("<!doctype html>"), text[:80])
            for word in "none", "dots_saveable", "blocks.jaxpr:":
                self.assertIn(word, text)

    def test_a_report_that_cannot_be_written(self):
        done = reprise("plan", "loss.jaxpr", "--report", "/nowhere/memory.html")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/memory.html", done.stderr)

    def test_a_report_goes_into_pipes_and_replaces_no_device(self):
        text = self.succeed("plan", "loss.jaxpr", "--report", "/dev/stdout")
        self.assertIn("<!doctype html>", text.lower())
        self.assertIn("peak", text)
        with tempfile.TemporaryDirectory() as folder:
            self.fail_with(1, f"reprise: write_report: only files and pipes can be written, got the directory '{folder}'",
                           "plan", "loss.jaxpr", "--report", folder)
            with open(Path(folder) / "out", "w+", encoding="utf-8") as out:
                subprocess.run([TOOL, "plan", "loss.jaxpr", "--report", "/dev/stdout"], stdout=out,
                               cwd=PROGRAMS, check=True)
                out.seek(0)
                self.assertEqual(out.read(), text)

    def test_constants_are_not_differentiated_unless_they_are_named(self):
        text = "{ lambda a:f32[2]; b:f32[2]. let c:f32[2] = mul a b in (c,) }"
        self.assertEqual(self.answer("plan", "-", stdin=text)["wrt"], ["b"])
        self.assertEqual(self.answer("plan", "-", "--wrt", "a", stdin=text)["wrt"], ["a"])


class WrongInput(Case):
    def test_the_place_is_shown(self):
        self.fail_with(1, "<stdin>:2:20: error: a variable is not bound, got `z`\n"
                          "      b:f32[3] = sin z\n                     ^",
                       "print", "-", stdin="{ lambda ; a:f32[3]. let\n    b:f32[3] = sin z\n  in (b,) }")

    def test_every_command_reads_alike(self):
        for command in "print", "residuals", "plan":
            self.fail_with(1, "<stdin>:1:1: error: `{` is expected", command, "-")
            self.fail_with(1, "nowhere.jaxpr: error: the file cannot be read: No such file or directory",
                           command, "nowhere.jaxpr")
            self.fail_with(1, ".: error: the file cannot be read: Is a directory", command, ".")

    def test_types_are_checked(self):
        done = reprise("print", "-", stdin="{ lambda ; a:f32[3]. let b:f32[4] = sin a in (b,) }")
        self.assertEqual(done.returncode, 1)
        self.assertIn("<stdin>:1:26: error: sin: the results have other types, got f32[4] for f32[3]",
                      done.stderr)

    def test_everything_that_is_not_there_is_named_at_once(self):
        self.fail_with(1, "<stdin>:2:5: error: an unknown primitive, got `cholesky` (line 2), `expm` (line 3)\n"
                          "      b:f32[2,2] = cholesky a\n      ^",
                       "print", "-", stdin="{ lambda ; a:f32[2,2]. let\n    b:f32[2,2] = cholesky a\n"
                                                  "    c:f32[2,2] = expm b\n  in (c,) }")

    def test_programs_without_a_derivative(self):
        hint = "so there is no derivative; `reprise plan --forward` plans it as it is"
        self.fail_with(1, f"<stdin>: error: no output is a floating-point number, {hint}",
                       "plan", "-", stdin="{ lambda ; a:i32[3]. let b:i32[3] = neg a in (b,) }")
        self.fail_with(1, f"<stdin>: error: no argument is a floating-point number, {hint}", "residuals", "-",
                       stdin="{ lambda ; a:i32[]. let b:f32[] = convert_element_type[new_dtype=float32 "
                             "sharding=None weak_type=False] a in (b,) }")

    def test_a_policy_that_only_the_text_knows(self):
        text = (PROGRAMS / "blocks.jaxpr").read_text().replace("policy=None", "policy=<function p at 0x1>")
        done = reprise("plan", "-", stdin=text)
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not tell what its policy saves, got <function p at 0x1>", done.stderr)
        self.succeed("plan", "-", "--policy", "dots_saveable", stdin=text)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "print", "loss.jaxpr"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, cwd=PROGRAMS, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "reprise: the output cannot be written\n"))


class WrongUsage(Case):
    def test_commands_and_options(self):
        commands = "the commands are print, residuals, plan, curve, suggest, solve, completion"
        self.fail_with(2, f"reprise: a command is expected; {commands}")
        self.fail_with(2, f"reprise: there is no command `plant`; {commands}", "plant")
        for arguments in (["print"], ["print", "a", "b"], ["plan", "loss.jaxpr", "--nope"],
                          ["plan", "loss.jaxpr", "--forward", "--policy", "none"],
                          ["print", "loss.jaxpr", "--width", "3"], ["completion", "tcsh"]):
            done = reprise(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertTrue(done.stderr.endswith("\ntry `reprise --help`\n"), done.stderr)

    def test_policies(self):
        for text, message, column in (
                ("dot_saveable", "there is no policy `dot_saveable`; the nearest is `dots_saveable`", 0),
                ("none | dots_saveable", "`none` is no checkpoint at all and stands alone", 0),
                ("save_only_these_names", "`:` and names are expected", 21),
                ("save_only_these_names:a,", "a name is expected", 24),
                ("bytes_at_least:many", "a number of bytes is expected", 15),
                ("(dots_saveable", "`)` is expected", 14),
                ("dots_saveable)", "`|`, `&` or the end is expected", 13),
                ("dots_saveable |", "a policy is expected", 15),
                ("save_from_both_policies:dots_saveable", "`,` and a second policy are expected", 37),
                ("save_and_offload_only_these_names:a", "`:` and the names to offload are expected", 35)):
            self.fail_with(2, f"reprise: --policy: {message}\n  {text}\n  {' ' * column}^",
                           "plan", "loss.jaxpr", "--policy", text)
        for deep in "(" * 20000, "!" * 20000, "dots_saveable|" * 2000:
            done = reprise("plan", "loss.jaxpr", "--policy", deep)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertTrue(done.stderr.startswith("reprise: --policy: at most 500 parts are expected"), done.stderr)
        self.fail_with(2, "reprise: --policy: `dots_saveable` is given twice",
                       "plan", "loss.jaxpr", "--policy", "dots_saveable", "--policy", "dots_saveable")
        self.fail_with(2, "reprise: --policy: save_and_offload_only_these_names: a name can be saved or "
                          "offloaded, not both, got 'h' in both lists",
                       "plan", "loss.jaxpr", "--policy", "save_and_offload_only_these_names:h:h")

    def test_arguments_to_differentiate(self):
        self.fail_with(2, "reprise: --wrt: loss.jaxpr has 3 arguments, counted from 0, got 3",
                       "plan", "loss.jaxpr", "--wrt", "0,3")
        self.fail_with(2, "reprise: --wrt: loss.jaxpr has no argument `x`, it has a, b, c",
                       "residuals", "loss.jaxpr", "--wrt", "x")
        self.fail_with(2, "reprise: --wrt: `a` is i32[], only floating-point arguments have derivatives",
                       "plan", "-", "--wrt", "a",
                       stdin="{ lambda ; a:i32[] b:f32[]. let c:f32[] = sin b in (c,) }")


class Curve(Case):
    def test_peaks_rise_and_times_fall(self):
        result = json.loads(self.succeed("curve", "blocks.jaxpr", "--json"))
        points = result["curves"][0]["points"]
        peaks, seconds = [p["peak_bytes"] for p in points], [p["seconds"] for p in points]
        self.assertEqual(peaks, sorted(peaks))
        self.assertEqual(seconds, sorted(seconds, reverse=True))
        plan = json.loads(self.succeed("plan", "blocks.jaxpr", "--json"))["plans"][0]
        self.assertEqual(peaks[-1], plan["peak_bytes"])

    def test_a_page_with_the_curve(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "curve.html"
            self.succeed("curve", "blocks.jaxpr", "--policy", "none", "--policy", "dots_saveable", "--report", str(page))
            text = page.read_text()
        data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
        self.assertGreater(len(data["curve"]), 1)
        self.assertEqual([p["name"] for p in data["programs"]], ["none", "dots_saveable"])
        self.assertEqual(data["curve"][-1], [data["programs"][0]["memory"]["peak"], data["programs"][0]["cost"]["seconds"]])

    def test_a_table_for_people(self):
        text = self.succeed("curve", "blocks.jaxpr")
        self.assertIn("peak", text.splitlines()[0])
        self.assertIn("+0.0 %", text.splitlines()[-1])


class Suggest(Case):
    def test_the_policy_fits_and_stands_beside_the_best_plan(self):
        plain = json.loads(self.succeed("plan", "blocks.jaxpr", "--policy", "none", "--json"))["plans"][0]
        budget = plain["peak_bytes"] * 9 // 10
        result = json.loads(self.succeed("suggest", "blocks.jaxpr", "--budget", str(budget), "--json"))
        self.assertEqual(result["plain"]["peak_bytes"], plain["peak_bytes"])
        self.assertTrue(result["fits"])
        self.assertLessEqual(result["peak_bytes"], budget)
        self.assertLessEqual(result["best"]["peak_bytes"], budget)
        same = json.loads(self.succeed("plan", "blocks.jaxpr", "--policy", result["policy"], "--json"))["plans"][0]
        self.assertEqual(same["peak_bytes"], result["peak_bytes"])

    def test_a_table_with_python_in_front(self):
        text = self.succeed("suggest", "blocks.jaxpr", "--budget", "1GiB")
        self.assertRegex(text.splitlines()[0], r"^jax\.checkpoint_policies\.save_only_these_names\(('h')?\)$")
        self.assertIn("this policy", text)

    def test_what_is_no_budget_and_no_name(self):
        for text in "-1", "0", "3 apples", "GiB", "1e40GiB":
            self.fail_with(2, "reprise: --budget: a size such as 8GiB or 500MB is expected, up to 2^57 bytes, got "
                           + text, "suggest", "blocks.jaxpr", f"--budget={text}")
        self.fail_with(1, "<stdin>: error: the program names no values (name[name=h]) that a policy could speak of",
                       "suggest", "-", "--budget", "1KiB",
                       stdin="{ lambda ; b:f32[]. let c:f32[] = sin b in (c,) }")


class Solve(Case):
    NODES = [{"bytes": 4, "cost": 1, "operands": [], "output": False},
             {"bytes": 8, "cost": 2, "operands": [0], "output": False},
             {"bytes": 2, "cost": 3, "operands": [1], "output": False},
             {"bytes": 1, "cost": 4, "operands": [0, 2], "output": True}]

    def solve(self, *graphs):
        lines = self.succeed("solve", "-", stdin=json.dumps(graphs)).splitlines()
        return [json.loads(line) for line in lines]

    def test_a_line_for_each_row(self):
        graph = {"name": "g", "nodes": self.NODES,
                 "rows": [{"budget": 14}, {"budget": 12}, {"budget": 11}]}
        rows = self.solve(graph, {**graph, "name": "h", "rows": []})
        self.assertAlmostEqual(rows[1].pop("lower"), 10.5)
        self.assertEqual(rows, [
            {"name": "g", "budget": 14, "schedule": [0, 1, 2, 3], "peak": 14, "cost": 10, "lower": 10},
            {"name": "g", "budget": 12, "schedule": [0, 1, 2, 0, 3], "peak": 12, "cost": 11},
            {"name": "g", "budget": 11, "schedule": None, "least_peak": 12}])
        self.assertEqual(self.solve(), [])

    def test_bad_graphs(self):
        def fails(reason, graphs):
            self.fail_with(1, f"<stdin>{reason}", "solve", "-", stdin=json.dumps(graphs))
        graph = {"name": "g", "nodes": self.NODES, "rows": [{"budget": 14}]}
        node = self.NODES[0]
        fails(": error: an array is expected", {})
        fails(": graphs[0]: error: an object is expected", [1])
        fails(": graphs[0]: error: the member `name` is missing", [{}])
        fails(": graphs[0].rows[0]: error: the member `budget` is missing", [{**graph, "rows": [{}]}])
        fails(": graphs[0].rows[0].budget: error: a whole number of at most 64 bits is expected",
              [{**graph, "rows": [{"budget": 1.5}]}])
        fails(": graphs[0].nodes[0].cost: error: a number is expected",
              [{**graph, "nodes": [{**node, "cost": "1"}]}])
        fails(": graphs[0]: error: node 0 has an operand that is not an earlier node",
              [{**graph, "nodes": [{**node, "operands": [0]}]}])
        fails(": graphs[0].nodes[0].bytes: error: a whole number of at most 64 bits is expected",
              [{**graph, "nodes": [{**node, "bytes": 2**63}]}])
        done = reprise("solve", "-", stdin="[{")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("<stdin>: error: not JSON: ", done.stderr)


class Help(Case):
    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^reprise \d+\.\d+\.\d+\n$")

    def test_help_names_commands_exit_codes_and_policies(self):
        text = self.succeed("--help")
        for word in "print", "residuals", "plan", "curve", "suggest", "solve", "completion", "Exit codes: 0", "standard input":
            self.assertIn(word, text)
        for command in "residuals", "plan":
            text = self.succeed(command, "--help")
            for policy in POLICIES[:16]:
                self.assertIn(policy.split(":")[0], text)
            self.assertIn("Examples:", text)

    def test_the_manual_page_names_every_option_and_policy(self):
        manual = MANUAL.read_text().replace("\\-", "-")
        words = {policy.split(":")[0] for policy in POLICIES[:16]}
        for command in "print", "residuals", "plan", "curve", "suggest", "solve", "completion":
            words |= {command} | set(re.findall(r"--[a-z]+", self.succeed(command, "--help")))
        for word in words:
            self.assertIn(word, manual)

    def test_lines_fit_a_terminal(self):
        for arguments in ([], ["print"], ["residuals"], ["plan"], ["curve"], ["suggest"], ["solve"], ["completion"]):
            for line in self.succeed(*arguments, "--help").splitlines():
                self.assertLessEqual(len(line), 100, line)


class Completion(Case):
    def bash(self, *words):
        """What bash offers for the last word."""
        script = ('source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  '_reprise; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, TOOL, "reprise", *words], capture_output=True,
                              text=True, cwd=PROGRAMS, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash(self):
        self.assertEqual(self.bash(""), ["print", "residuals", "plan", "curve", "suggest", "solve", "completion", "--version", "--help"])
        self.assertEqual(self.bash("res"), ["residuals"])
        self.assertEqual(self.bash("plan", "--fo"), ["--forward"])
        self.assertEqual(self.bash("print", "--fo"), [])
        self.assertEqual(self.bash("plan", "--policy", "dots"),
                         ["dots_saveable", "dots_with_no_batch_dims_saveable"])
        self.assertEqual(self.bash("plan", "--policy", "save_only"), ["save_only_these_names:"])
        self.assertEqual(self.bash("plan", "lo"), ["loss.jaxpr"])
        self.assertEqual(self.bash("completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.bash("plan", "--wrt", ""), [])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        script = ('autoload -U compinit; compinit -u -D; source <("$0" completion zsh); '
                  'print $_comps[reprise]')
        done = subprocess.run(["zsh", "-fc", script, TOOL], capture_output=True, text=True, check=True)
        self.assertEqual((done.stdout, done.stderr), ("_reprise\n", ""))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        environment = dict(os.environ, PATH=f"{Path(TOOL).parent}:{os.environ['PATH']}")
        script = 'reprise completion fish | source; complete -C "reprise plan --policy dots_s"'
        done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, check=True,
                              env=environment)
        self.assertEqual(done.stdout, "dots_saveable\tresults of matrix products and convolutions\n")


if __name__ == "__main__":
    unittest.main()
