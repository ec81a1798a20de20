#!/usr/bin/env python3
"""Runs torch's own tests of process groups, `DistributedTest` of the wheel, with backend "syncopate" and with Gloo.

Usage: torch_distributed.py [--ranks N,...] [--only PATTERN] [--out FILE]
  --ranks N,...    numbers of ranks [2,3]
  --only PATTERN   run only tests whose names match this regular expression
  --out FILE       write the outcome of each test as JSON

Each test runs with both backends, one after the other, in forked processes. The suite sees the name "gloo" for both, since it
skips tests for backends that it does not know. Prints each test that passes with Gloo only. Exit status 1 if one of these is
not in `EXPECTED`. Needs expecttest and hypothesis from PyPI, as the suite does.
"""
import argparse
import collections
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

# Tests that pass with Gloo only, and the reasons.
_REFUSED = "torch refuses monitored_barrier by the name of the backend"
EXPECTED = {
    "test_get_backend": "it asks for the name gloo",
    "test_monitored_barrier_gloo": _REFUSED,
    "test_monitored_barrier_gloo_rank_0_timeout": _REFUSED,
    "test_monitored_barrier_gloo_subgroup": _REFUSED,
}
BACKENDS = ("gloo", "syncopate")


class Outcomes(unittest.TestResult):
    """Collects for each test "passed", "skipped", or the last line of the error."""

    def __init__(self):
        super().__init__()
        self.found = {}

    def _note(self, test, outcome):
        self.found.setdefault(test._testMethodName, outcome)

    def addSuccess(self, test):  # noqa: N802 (unittest's name)
        self._note(test, "passed")

    def addSkip(self, test, _reason):  # noqa: N802
        self._note(test, "skipped")

    def addError(self, test, error):  # noqa: N802
        self._note(test, _last_line(error))

    addFailure = addError  # noqa: N815

    def addSubTest(self, test, _subtest, error):  # noqa: N802
        if error is not None:
            self._note(test, _last_line(error))


def _last_line(error):
    lines = [line for line in str(error[1]).splitlines() if re.match(r"\w[\w.]*(Error|Exception|Lost|Out)\b", line)]
    return (lines or str(error[1]).splitlines() or ["an error"])[-1]


def run_suite(backend, pattern, out):
    """Runs the suite and writes the outcomes to `out`. Each backend needs a new process, since the suite reads it at import."""
    import torch
    from torch import distributed

    if backend == "syncopate":
        _stand_for_gloo(distributed)
    from torch.testing._internal.distributed import distributed_test as suite

    class Forked(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    names = [name for name in unittest.TestLoader().getTestCaseNames(Forked) if re.search(pattern, name)]
    outcomes = Outcomes()
    unittest.TestSuite(map(Forked, names)).run(outcomes)
    pathlib.Path(out).write_text(json.dumps(outcomes.found))


def _stand_for_gloo(distributed):
    """Makes torch use syncopate for each group that the suite requests with Gloo."""
    import syncopate_torch  # noqa: F401 (makes the backend known)

    def ours(function):
        @functools.wraps(function)
        def called(*arguments, **options):
            if options.get("backend") == "gloo":
                options["backend"] = "syncopate"
            arguments = tuple("syncopate" if each == "gloo" else each for each in arguments)
            return function(*arguments, **options)

        return called

    for module in (distributed, distributed.distributed_c10d):
        module.init_process_group, module.new_group = map(ours, (module.init_process_group, module.new_group))


def outcomes_of(backend, ranks, pattern):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out.json")
        (pathlib.Path(folder) / "temporary").mkdir()
        environment = {**os.environ, "BACKEND": "gloo", "WORLD_SIZE": str(ranks), "TEMP_DIR": f"{folder}/temporary"}
        with open(os.path.join(folder, "log"), "w+") as log:
            command = [sys.executable, __file__, "--suite", backend, "--only", pattern, "--out", str(out)]
            if subprocess.run(command, env=environment, stdout=log, stderr=log).returncode != 0:
                log.seek(0)
                sys.exit(f"the suite has ended without outcomes: {log.read()[-3000:]}")
        return json.loads(out.read_text())


def compared(ranks, pattern):
    """Runs the suite with both backends. Returns the outcomes, and the names of tests that fail unexpectedly."""
    found = {backend: outcomes_of(backend, ranks, pattern) for backend in BACKENDS}
    for backend, outcomes in found.items():
        kinds = collections.Counter(each if each in ("passed", "skipped") else "failed" for each in outcomes.values())
        print(f"{ranks} ranks, {backend}: {kinds['passed']} passed, {kinds['skipped']} skipped, {kinds['failed']} failed")
    unexpected = []
    for name, outcome in found["gloo"].items():
        own = found["syncopate"].get(name)
        if outcome == "passed" and own != "passed":
            print(f"  {name}: {own}" + (f" (expected: {EXPECTED[name]})" if name in EXPECTED else ""))
            unexpected += [name] if name not in EXPECTED else []
    return found, unexpected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,3")
    parser.add_argument("--only", default="")
    parser.add_argument("--out")
    parser.add_argument("--suite", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.suite:
        run_suite(given.suite, given.only, given.out)
        return 0
    kept, unexpected = {}, []
    for ranks in map(int, given.ranks.split(",")):
        kept[ranks], more = compared(ranks, given.only)
        unexpected += more
    if given.out:
        pathlib.Path(given.out).write_text(json.dumps(kept, indent=1) + "\n")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
