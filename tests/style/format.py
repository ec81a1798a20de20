#!/usr/bin/env python3
"""C++ is formatted by clang-format 14. Exit status 77 (skipped) if clang-format 14 is not installed."""
import os
import shutil
import subprocess
import sys

import source

SKIPPED = 77


def clang_format():
    return shutil.which("clang-format-14")


def check(root):
    names = [str(root / path) for path in source.files(root, source.CPP)]
    command = [clang_format(), "--style=file", "--dry-run", "--ferror-limit=1", *names]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    for line in found.splitlines():
        if "[-Wclang-format-violations]" in line:
            yield line.split(": ")[0] + ": run clang-format-14 -i on this file"


if __name__ == "__main__":
    if clang_format() is None:
        print("no clang-format-14: script/bootstrap --test installs it")
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    source.main(__doc__, check)
