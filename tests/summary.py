#!/usr/bin/env python3
"""Prints what failed in the tests of some builds, and the slowest of them, by the results that ctest has written into their
folders as junit.xml.

summary.py BUILD...
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

SHOWN = 20
# Lines that name a failed case of GoogleTest or unittest, or say why it failed. A test without them shows its last lines.
FAILURE = re.compile(r"^\[  FAILED  \] \S+\.\S|: Failure$|^(FAIL|ERROR): |^\w*(Error|Exception): |^  Actual: |^Expected: ")
SHOWN_OF_EACH = 20
LAST_LINES = 3
COLUMNS = 300


def cases_of(build):
    """Elements <testcase> of the tests that ran."""
    cases = xml.parse(build / "junit.xml").getroot().iter("testcase")
    return [case for case in cases if case.get("status") != "disabled"]


def what_failed(case):
    lines = (case.findtext("system-out") or "").splitlines()
    saying = list(dict.fromkeys(line for line in lines if FAILURE.search(line)))[:SHOWN_OF_EACH]
    return [line[:COLUMNS] for line in saying or lines[-LAST_LINES:]]


def main():
    cases = [(case, build.name) for build in map(pathlib.Path, sys.argv[1:]) for case in cases_of(build)]
    for case, build in cases:
        if case.get("status") == "fail":
            print("\n  ".join([f"failed: {case.get('name')} ({build})", *what_failed(case)]))
    times = sorted(((float(case.get("time")), case.get("name"), build) for case, build in cases), reverse=True)
    print(f"the slowest of {len(times)} tests, which took {sum(seconds for seconds, _, _ in times):.0f} s one by one:")
    for seconds, name, build in times[:SHOWN]:
        print(f"{seconds:6.1f} s  {name} ({build})")


if __name__ == "__main__":
    main()
