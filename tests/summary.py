#!/usr/bin/env python3
"""Prints the failed tests of some builds, each with the command that runs it again, and the slowest tests. It reads the results
that ctest has written as junit.xml into the build folders.

summary.py BUILD...
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as xml

SHOWN = 20
# Lines that name a failed case of GoogleTest or unittest, or its reason. Of a test without such lines the last lines are shown.
FAILURE = re.compile(r"^\[  FAILED  \] \S+\.\S|: Failure$|^(FAIL|ERROR): |^\w*(Error|Exception): |^  Actual: |^Expected: ")
CASE = re.compile(r"^(?:FAIL|ERROR): \w+ \(\w+\.([\w.]+)\)")  # a case of unittest, after its module
FORKED = "SYNCOPATE_FORK_SERVER="  # dropped from the command: a test that runs by itself has no fork server
SHOWN_OF_EACH = 20
LAST_LINES = 3
COLUMNS = 300


def cases_of(build):
    """Returns the elements <testcase> of the tests that ran."""
    cases = xml.parse(build / "junit.xml").getroot().iter("testcase")
    return [case for case in cases if case.get("status") != "disabled"]


def what_failed(case):
    lines = (case.findtext("system-out") or "").splitlines()
    saying = list(dict.fromkeys(line for line in lines if FAILURE.search(line)))[:SHOWN_OF_EACH]
    return [line[:COLUMNS] for line in saying or lines[-LAST_LINES:]]


def command_of(build, name, lines):
    """Returns the command that runs a test by itself; for a Python test only the first case that failed."""
    shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True).stdout
    test = next(test for test in json.loads(shown)["tests"] if test["name"] == name)
    values = {each["name"]: each["value"] for each in test["properties"]}
    variables = [each for each in values.get("ENVIRONMENT", []) if not each.startswith(FORKED)]
    case = next((found[1] for found in map(CASE.match, lines) if found), None)
    words = ["env", "-C", values["WORKING_DIRECTORY"], *variables, *test["command"], *([case] if case else [])]
    return shlex.join(words)


def main():
    cases = [(case, build) for build in map(pathlib.Path, sys.argv[1:]) for case in cases_of(build)]
    for case, build in cases:
        if case.get("status") == "fail":
            lines = what_failed(case)
            print("\n  ".join([f"failed: {case.get('name')} ({build.name})", *lines,
                               f"again: {command_of(build, case.get('name'), lines)}"]))  # fmt: skip
    times = sorted(((float(case.get("time")), case.get("name"), build.name) for case, build in cases), reverse=True)
    print(f"the slowest of {len(times)} tests, which took {sum(seconds for seconds, _, _ in times):.0f} s one by one:")
    for seconds, name, build in times[:SHOWN]:
        print(f"{seconds:6.1f} s  {name} ({build})")


if __name__ == "__main__":
    main()
