#!/usr/bin/env python3
"""A rank that throws, ends, dies or is stopped ends the run on all ranks, with an error that says which rank and where.

  failures.py mpirun... -- failing
"""
import os
import re
import signal
import subprocess
import sys
import time

LIMIT = 10  # seconds that ranks wait for each other
WANTED = {  # what the ranks that are left say
    "throw": r"\w+: rank 2 failed after psum, collective \d+, got rank \d in collective \d+; its error: "
             r"the data of rank 2 is broken",
    "exit": r"\w+: rank 2 has ended after its collective \d+, got rank \d in collective \d+",
    "kill": r"a rank was ended by a signal in \w+, collective \d+|MPI lost a rank|rank 2 did not come",
    "stop": rf"\w+: rank 2 did not come within {LIMIT} s, got rank \d waiting in collective \d+",
}


def run(command, how):
    """Returns what the ranks said, whether the run failed, and the seconds it took."""
    begin = time.monotonic()
    process = subprocess.Popen(command + [how, str(LIMIT)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
        said += "\nfailures.py: the run hangs"
    for pid in re.findall(r"rank \d pid (\d+)", said):  # a stopped one may be left
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                if "failing" in file.read():
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass
    return said, process.returncode != 0, time.monotonic() - begin


def main():
    split = sys.argv.index("--")
    command = sys.argv[1:split] + sys.argv[split + 1:]
    bad = 0
    for how, wanted in WANTED.items():
        said, failed, seconds = run(command, how)
        good = failed and re.search(wanted, said) and "hangs" not in said
        bad += 0 if good else 1
        print(f"{how}: {'said' if good else 'NOT SAID'} after {seconds:.1f} s")
        if not good:
            print(said)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
