#!/usr/bin/env python3
"""A member that a mutex guards is accessed only while that mutex is held: clang's thread-safety analysis.

The check compiles every source that includes base/mutex.hpp, directly or through a header, with
-Wthread-safety and without generating code. Exit status 77 (skipped) if clang 14 is not installed.

The second argument is the build folder, which holds compile_commands.json and generated headers.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import source

SKIPPED = 77
COMPILER = "clang++-14"
_SOURCE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
_MUTEX = re.compile(r"\b(?:MutexLock|Mutex|GUARDED_BY)\b")


def uses_mutex(root, path):
    """Returns True if a source, or the header of its name, uses a mutex."""
    header = path.with_suffix(".hpp")
    texts = [source.read(root, path)] + ([source.read(root, header)] if (root / header).is_file() else [])
    return any(_MUTEX.search(text) for text in texts)


def sources_of(entry, build):
    """Returns the sources that an entry of compile_commands.json compiles; a unity build compiles many as one."""
    path = pathlib.Path(entry["file"])
    if not path.is_relative_to(build):
        return [path]
    return [pathlib.Path(name) for name in _SOURCE.findall(path.read_text())] if path.parent.name == "Unity" else []


def analysis(path, entry):
    """Returns the command that analyses a source with the flags of its entry."""
    words = shlex.split(entry["command"])
    flags = [word for word in words if word.startswith(("-I", "-D", "-isystem", "-std"))]
    after = [words[at + 1] for at, word in enumerate(words) if word == "-isystem"]
    flags = [word for word in flags if word != "-isystem"] + [f"-isystem{path}" for path in after]
    return [COMPILER, *flags, "-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety-analysis", str(path)]


def complaints_of(path, entry):
    done = subprocess.run(analysis(path, entry), cwd=entry["directory"], capture_output=True, text=True)
    found = [line for line in done.stderr.splitlines() if ": error: " in line]
    return found or ([f"{path}:1: clang failed: {done.stderr[-300:]}"] if done.returncode else [])


def check(root, build):
    entries = json.loads((build / "compile_commands.json").read_text())
    ours = {}
    for entry in entries:
        for path in sources_of(entry, build):
            relative = path.relative_to(root) if path.is_relative_to(root) else path
            if relative.parts[0] in ("src", "sim", "torch", "cli") and uses_mutex(root, relative):
                ours[path] = entry
    if not ours:
        yield "src:1: no source uses base/mutex.hpp; tell this check where they are"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(complaints_of, ours.keys(), ours.values()):
            yield from found


if __name__ == "__main__":
    if shutil.which(COMPILER) is None:
        print(f"no {COMPILER}: script/bootstrap --test installs it")
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    repository, build_folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    complaints = list(check(repository, build_folder))
    print("\n".join(complaints) or "ok")
    sys.exit(bool(complaints))
