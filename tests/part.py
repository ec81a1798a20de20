#!/usr/bin/env python3
"""Runs a part of the tests of a file, so that ctest can run the parts at the same time: every COUNT-th test from INDEX on.

Usage: part.py INDEX COUNT FILE [CASE...]    INDEX from 0; with CASEs it runs these alone
"""
import importlib.util
import os
import sys
import unittest


def tests_of(suite):
    for each in suite:
        yield from tests_of(each) if isinstance(each, unittest.TestSuite) else (each,)


def main(index, count, file, *cases):
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(file))[0], file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    every = list(tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)))
    chosen = every[int(index)::int(count)]
    if cases:
        chosen = [test for test in every if test.id().split(".", 1)[1] in cases]
    part = unittest.TestSuite(chosen)
    if not part.countTestCases():
        raise SystemExit(f"part {index} of {count} of {file} has no test")
    return 0 if unittest.TextTestRunner(verbosity=2).run(part).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
