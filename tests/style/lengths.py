#!/usr/bin/env python3
"""Files, functions and lines stay short, and no two headers have the same name."""
import ast
import collections
import re

import source

LONGEST_FILE = 500
LONGEST_FUNCTION = 70
LONGEST_LINE = 100
REASON = re.compile(r"(?://|#) Length: \w+")

# Braces that do not open a function: those of namespaces, types and initialisers.
_OTHER_BRACE = re.compile(r"^(?:inline\s+)?(?:namespace|class|struct|union|enum|extern)\b|=\s*$")
_TEMPLATE = re.compile(r"template\s*<(?:[^<>]|<[^<>]*>)*>\s*(?:requires\b[^{;]*?\s)?")


def functions(text):
    """Yields (first line, lines) of the outermost blocks of C++ that are functions."""
    text = re.sub(r"^[ \t]*#[^\n]*", "", source.code(text), flags=re.MULTILINE)
    opened, begin = [], 0
    for match in re.finditer(r"[{};]", text):
        if match.group() == "{":
            head = _TEMPLATE.sub("", text[begin : match.start()]).strip()
            inside = any(function for function, _ in opened)
            first = source.line_of(text, begin + len(text[begin:]) - len(text[begin:].lstrip()))
            opened.append((not inside and not _OTHER_BRACE.search(head), first))
        elif match.group() == "}" and opened:
            function, first = opened.pop()
            if function:
                yield first, source.line_of(text, match.start()) - first + 1
        begin = match.end()


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, node.end_lineno - node.lineno + 1


def long_lines(path, text):
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LONGEST_LINE:
            yield f"{path}:{number}: {len(line)} columns; {LONGEST_LINE} is the most"


def headers_of_one_name(root):
    """Complains about headers of equal file name: readers identify a header by it."""
    homes = collections.defaultdict(list)
    for path in source.files(root, {".hpp"}):
        if path.parts[0] not in ("tests", "bench", "include"):
            homes[path.name].append(path)
    for paths in homes.values():
        for path in paths[1:]:
            yield f"{path}:1: {paths[0]} has the same name; give it a telling one"


def check(root):
    yield from headers_of_one_name(root)
    for path in source.files(root, source.CPP | {".py"}):
        text = source.read(root, path)
        lines = text.count("\n")
        if path.suffix in source.CPP:
            yield from long_lines(path, text)
        if lines > LONGEST_FILE and not REASON.search(text):
            yield f"{path}:1: {lines} lines; split it, or say why in a comment `Length: ...`"
        for first, length in (functions if path.suffix in source.CPP else python_functions)(text):
            if length > LONGEST_FUNCTION:
                yield f"{path}:{first}: a function of {length} lines; {LONGEST_FUNCTION} is the most"


if __name__ == "__main__":
    source.main(__doc__, check)
