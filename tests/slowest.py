#!/usr/bin/env python3
"""Prints the slowest tests of some builds, by the results that ctest has written into their folders as junit.xml.

slowest.py BUILD...
"""
import pathlib
import sys
import xml.etree.ElementTree as xml

SHOWN = 20


def times_of(build):
    """[(seconds, name of the test, name of the build)]. Tests that did not run have no time."""
    cases = xml.parse(build / "junit.xml").getroot().iter("testcase")
    return [(float(case.get("time")), case.get("name"), build.name) for case in cases if case.get("status") != "disabled"]


def main():
    times = sorted((time for build in sys.argv[1:] for time in times_of(pathlib.Path(build))), reverse=True)
    print(f"the slowest of {len(times)} tests, which took {sum(seconds for seconds, _, _ in times):.0f} s one by one:")
    for seconds, name, build in times[:SHOWN]:
        print(f"{seconds:6.1f} s  {name} ({build})")


if __name__ == "__main__":
    main()
