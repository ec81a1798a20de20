#!/usr/bin/env python3
"""All commands that the documentation shows exist: scripts with a --help, subcommands and their options.

Usage: commands.py ROOT [PROGRAM]    PROGRAM: the built `syncopate`; without it, only scripts are checked
"""
import functools
import os
import pathlib
import re
import subprocess
import sys

import source

_FENCED = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*((?:\S*/)?syncopate|script/\w+|\.ci/\w+)(?= |$)(.*)$")


def commands(text):
    """Yields (line number, program, arguments) of shell lines, continued lines joined."""
    for block in _FENCED.finditer(text):
        line, parts = source.line_of(text, block.start(1)), []
        for row in block.group(1).splitlines():
            parts.append(row.rstrip("\\"))
            if not row.endswith("\\"):
                match = _COMMAND.match(" ".join(parts).split(" #")[0])
                if match:
                    yield line - len(parts) + 1, match.group(1), match.group(2).split()
                parts = []
            line += 1


@functools.lru_cache(maxsize=None)
def help_of(*command):
    """Returns the help text of a command, or None if it has none."""
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout if done.returncode == 0 and done.stdout.strip() else None


def script_complaint(root, name):
    path = root / name
    if not path.is_file() or not os.access(path, os.X_OK):
        return f"{name} is not an executable script"
    return None if help_of(str(path)) else f"{name} --help says nothing"


def program_complaint(program, arguments):
    names = [word for word in arguments[:1] if not word.startswith("-")]
    text = help_of(program, *names)
    if text is None:
        return f"`syncopate {' '.join(names)}` does not exist"
    for word in arguments:
        option = word.split("=")[0]
        if option.startswith("--") and not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text):
            return f"`syncopate {' '.join(names)}` has no option {option}"
    return None


def check(root, program=None):
    for path in source.files(root, {".md"}):
        for line, name, arguments in commands(source.read(root, path)):
            complaint = None
            if name.startswith("script/"):
                complaint = script_complaint(root, name)
            elif name.endswith("syncopate") and program:
                complaint = program_complaint(program, arguments)
            if complaint:
                yield f"{path}:{line}: {complaint}"
    for path in sorted((root / "script").iterdir()):
        if os.access(path, os.X_OK):
            complaint = script_complaint(root, path.relative_to(root).as_posix())
            if complaint:
                yield f"{path.relative_to(root)}:1: {complaint}"


if __name__ == "__main__":
    built = sys.argv.pop(2) if len(sys.argv) > 2 else None
    source.main(__doc__, lambda root: check(pathlib.Path(root), built))
