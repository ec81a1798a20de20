#!/usr/bin/env python3
"""The hacking page names the files that each kind of extension needs, and the toys of tests/extension need no others.

The page has a table with one row for each kind: its new files, where * stands for the name of the extension, and the existing
files that get lines. Every file of the table exists. A toy is one new file, and one line in the list that its row names.
"""
import pathlib
import re

import source

PAGE = pathlib.PurePosixPath("docs/internals/hacking.md")
TOYS = pathlib.PurePosixPath("tests/extension/CMakeLists.txt")

_ROW = re.compile(r"^\| an? (?P<kind>[\w -]+?) \|(?P<new>[^|]*)\|(?P<lines>[^|]*)\|", re.MULTILINE)
_PATH = re.compile(r"`([\w./*-]+)`")
_TOY = re.compile(r'^ *extension_test\(\w+\s+(?P<list>[\w./-]+\.inc)\s+"[^)]*\)"\s+toy_(?P<kind>\w+)\.cpp', re.MULTILINE)


def rows(text):
    """Returns the new files, the files that get lines, and the line of the page, by kind."""
    return {
        row["kind"]: (_PATH.findall(row["new"]), _PATH.findall(row["lines"]), source.line_of(text, row.start()))
        for row in _ROW.finditer(text)
    }


def exists(root, path):
    return any(pathlib.Path(root).glob(path))


def check(root):
    table = rows(source.read(root, PAGE))
    if not table:
        yield f"{PAGE}:1: there is no table of extensions: | a scheme | new files | files that get lines |"
    for new, lines, line in table.values():
        for path in new + lines:
            if not exists(root, path):
                yield f"{PAGE}:{line}: there is no file {path}"
    toys = source.read(root, TOYS)
    for toy in _TOY.finditer(toys):
        new, lines, _ = table.get(toy["kind"], ([], [], 0))
        if len(new) != 1 or lines != [f"src/{toy['list']}"]:
            yield (f"{TOYS}:{source.line_of(toys, toy.start())}: a {toy['kind']} takes one file and one line in "
                   f"src/{toy['list']} here, but not in the table of {PAGE}")


if __name__ == "__main__":
    source.main(__doc__, check)
