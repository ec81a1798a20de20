#!/usr/bin/env python3
"""Prints the page of all tests in Markdown: the goal of each file of tests, which its head states, and its cases.

Usage: tests_page.py ROOT    (the root of the repository)
"""
import ast
import pathlib
import re
import sys

_CASE = re.compile(r"^(?:TYPED_TEST|TEST(?:_[FP])?)\(\s*\w+,\s*(\w+)\s*\)", re.MULTILINE)
_HEAD = re.compile(r"\A(?://[^\n]*\n)+")
_LABEL = re.compile(r"\b(Goal|Method):\s*")


def words_of(name):
    """`HasTheSameBits` and `test_has_the_same_bits` as "has the same bits"."""
    words = re.sub(r"^test_", "", name).replace("_", " ")
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", words)
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words.split())


def goal_in(text):
    """The goal that the head of a file of tests states; its first paragraph where it has no such label."""
    labelled = _LABEL.split(" ".join(text.split("\n\n")[0].split()))
    return labelled[labelled.index("Goal") + 1].strip() if "Goal" in labelled else labelled[0].strip()


def cpp_test(text):
    head = _HEAD.match(text)
    return goal_in(re.sub(r"^// ?", "", head[0], flags=re.MULTILINE)) if head else "", _CASE.findall(text)


def python_test(text):
    tree = ast.parse(text)
    cases = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return goal_in(ast.get_docstring(tree) or ""), cases


def _is_test(path):
    checks = path.parent.name == "style" and path.suffix == ".py"
    return checks or path.stem.endswith(("_test", "_contract")) and path.suffix in (".py", ".cpp", ".hpp")


def page(root):
    lines = ["# Tests", "", "Each file of tests, with its goal and its cases. The page is made from the files themselves.", ""]
    folder = None
    for path in sorted(filter(_is_test, pathlib.Path(root, "tests").rglob("*"))):
        goal, cases = (python_test if path.suffix == ".py" else cpp_test)(path.read_text(encoding="utf-8"))
        where = path.relative_to(root).parent.as_posix()
        if where != folder:
            folder = where
            lines += [f"## `{folder}`", ""]
        lines += [f"**{path.name}**: {_literal(goal)}", "", *(f"- {words_of(case)}" for case in cases), ""]
    return "\n".join(lines)


def _literal(text):
    """Keeps what Markdown would read as markup, outside backticks."""
    pieces = text.split("`")
    return "`".join(piece if index % 2 else re.sub(r"([*_<\[])", r"\\\1", piece) for index, piece in enumerate(pieces))


if __name__ == "__main__":
    print(page(pathlib.Path(sys.argv[1]).resolve()))
