#!/usr/bin/env python3
"""Runs Horovod's own test suite for PyTorch over `syncopate_torch.horovod`, each test as a separate job.

Usage: horovod_suite.py HOROVOD [--ranks N] [--only PATTERN] [--least N]
  HOROVOD          a checkout of Horovod 0.28.1, which has test/parallel/test_torch.py; PyPI's archive does not have it
  --ranks N        number of ranks of each job [2]
  --only PATTERN   run only tests whose names match this regular expression
  --least N        exit status 1 if fewer tests end without a failure [105]

Needs pytest, cloudpickle and mock (Debian: python3-pytest python3-cloudpickle python3-mock), and Syncopate at the paths in
`SYNCOPATE`, `SYNCOPATE_LIBRARY` and PYTHONPATH. Tests that need a GPU or Horovod's own build skip themselves.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIMIT = 120  # seconds after which a test counts as hanging
STUBS = {
    "horovod/__init__.py": "",
    "horovod/common/__init__.py": "",
    "horovod/runner/__init__.py": "",
    "horovod/runner/util/__init__.py": "",
    "horovod/runner/util/threads.py": "def in_thread(*_arguments, **_options):\n    raise RuntimeError('no test here uses it')\n",
    # Sets the variables of Open MPI, one of Horovod's two launchers, from which two tests derive what to expect. Under the
    # other launcher each test ends with a barrier, which Syncopate refuses in a group whose workers have made different calls.
    "horovod/torch/__init__.py": "import os\n\nfrom syncopate_torch import horovod\nfrom syncopate_torch.horovod import *\n\n"
                                 "os.environ.update(OMPI_COMM_WORLD_RANK=os.environ['RANK'], OMPI_COMM_WORLD_SIZE=os.environ['WORLD_SIZE'])\n\n\n"
                                 "def __getattr__(name):\n    return getattr(horovod, name)\n",
}


def tests_in(source):
    return re.findall(r"^    def (test_\w+)\(self", source.read_text(), re.MULTILINE)


def outcome_of(name, source, ranks, folder):
    """Runs a test; returns "passed", "skipped", "failed" or "hangs", and the output."""
    command = [os.environ["SYNCOPATE"], "run", "-n", str(ranks), "--run-dir", f"{folder}/{name}", "--", sys.executable, "-B", "-m",
               "pytest", "-q", "-x", "-p", "no:cacheprovider", source.name, "-k", f"{name} and not {name}_"]
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    try:
        done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, "PYTHONPATH": ":".join(filter(None, paths))})
    except subprocess.TimeoutExpired:
        return "hangs", ""
    output = done.stdout + done.stderr
    if done.returncode != 0:
        return "failed", output
    return "passed" if " passed" in output else "skipped", output


def reason_in(output):
    """Returns the last line of an error that pytest prints."""
    lines = re.findall(r"^\[worker \d+\] E +(\S.*)$", output, re.MULTILINE)
    return lines[-1] if lines else output.strip().splitlines()[-1] if output.strip() else "no output"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("horovod", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--least", type=int, default=105)
    given = parser.parse_args()
    source = given.horovod.resolve() / "test" / "parallel" / "test_torch.py"
    if not source.is_file():
        parser.error(f"expected a checkout of Horovod with {source}, found none there")
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in STUBS.items():
            place = pathlib.Path(folder, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        for name in tests_in(source):
            if re.search(given.only, name):
                outcome, output = outcome_of(name, source, given.ranks, folder)
                counts[outcome] += 1
                if outcome not in ("passed", "skipped"):
                    print(f"{name}: {outcome}: {reason_in(output)}", flush=True)
    good = counts["passed"] + counts["skipped"]
    print(f"{sum(counts.values())} tests, {given.ranks} ranks: {counts['passed']} passed, {counts['skipped']} skipped, "
          f"{counts['failed']} failed, {counts['hangs']} without an end")
    return 1 if not given.only and good < given.least else 0


if __name__ == "__main__":
    sys.exit(main())
