#!/usr/bin/env python3
"""Plays the demo with a tiny model and checks what its table says.

  demo_test.py build/release/demo/demo
"""
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

POLICIES = ["none", "dots_with_no_batch_dims_saveable", "save_only_these_names",
            "save_and_offload_only_these_names", "nothing_saveable"]
ROW = re.compile(r"^(\w+) +([\d.]+) +([\d.]+) +([\d.]+) +(\d+) +([\d.]+) +([\d.]+)$", re.MULTILINE)
DEMO = None


def play(*arguments):
    """Without a report, unless an argument asks for one."""
    command = [DEMO, "--quick", "--report", "", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(text):
    """Policy -> (planned MB, measured MB, recomputed GFLOP, percent, ms, loss)."""
    return {row[0]: tuple(map(float, row[1:])) for row in ROW.findall(text)}


class Demo(unittest.TestCase):
    def test_the_table_tells_what_policies_cost(self):
        run = play()
        self.assertEqual(run.returncode, 0, run.stderr)
        table = rows(run.stdout)
        self.assertEqual(list(table), POLICIES, run.stdout)
        for planned, measured, *_ in table.values():
            self.assertAlmostEqual(planned, measured, delta=0.011)
        self.assertEqual(len({row[-1] for row in table.values()}), 1, "every policy learns the same")
        in_memory = [table[name] for name in POLICIES if "offload" not in name]
        self.assertEqual(sorted(in_memory, reverse=True), in_memory, "peaks fall")
        self.assertEqual([row[2] for row in in_memory], sorted({row[2] for row in in_memory}), "recomputation rises")
        self.assertEqual(table["none"][2], 0)
        sample = run.stdout.split(" steps:\n\n")[1]
        self.assertTrue(sample.startswith("In the beginning"), sample)
        self.assertGreater(len(sample), 80)

    def test_a_report_shows_every_policy(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            run = subprocess.run([DEMO, "--quick", "--more-steps", "0", "--sample", "0", "--report", path],
                                 capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            page = path.read_text(encoding="utf-8")
        for policy in POLICIES:
            self.assertIn(policy, page)
        self.assertLess(len(page), 2_000_000)

    def test_one_policy_alone_has_the_same_row(self):
        one = rows(play("--policy", "nothing_saveable", "--more-steps", "0", "--sample", "0").stdout)
        self.assertEqual(list(one), ["nothing_saveable"])
        self.assertGreater(one["nothing_saveable"][2], 0)

    def test_mistakes_are_explained(self):
        for arguments, code, words in [
            (["--policy", "everything"], 2, "nothing_saveable"),
            (["--steps", "0"], 2, "--steps"),
            (["--data", "no such file"], 2, "no such file"),
            (["--width", "30"], 1, "heads"),
        ]:
            run = play(*arguments)
            self.assertEqual(run.returncode, code, run.stderr)
            self.assertIn(words, run.stderr)
        help_text = subprocess.run([DEMO, "--help"], capture_output=True, text=True, check=True).stdout
        for option in ["--steps", "--policy", "--layers", "--width", "--seed", "--quick", "--report", "--data"]:
            self.assertIn(option, help_text)

    def test_an_interrupt_shows_what_is_known(self):
        with subprocess.Popen([DEMO, "--quick", "--more-steps", "1000000"], stdout=subprocess.PIPE, text=True) as run:
            text = ""
            while "nothing_saveable" not in text:
                text += run.stdout.readline()
            run.send_signal(signal.SIGINT)
            text += run.stdout.read()
        self.assertEqual(run.returncode, 130)
        self.assertEqual(list(rows(text)), POLICIES)


if __name__ == "__main__":
    DEMO = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
