#!/usr/bin/python3
"""Goal:   programs that were built against an earlier version of the C interface still work: no function is removed,
        and none changes its types.
Method: abidiff compares a library of empty functions, made from the header, with libsyncopate.abi, the description of
        such a library of the last release. The description must list every function of the built library;
        `interface_test.py --write` updates it (docs/reference/compatibility.md says when).
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("SYNCOPATE_SOURCE", pathlib.Path(__file__).parents[2]))
LAST = SOURCE / "tests/package/libsyncopate.abi"
LIBRARY = pathlib.Path(os.environ.get("SYNCOPATE_LIBRARY", SOURCE / "build/release/lib/libsyncopate.so"))
DECLARATION = re.compile(r"^SYNCOPATE_API ([^;]+);", re.MULTILINE)


def empty_library(header, folder):
    """Compiles a library with the functions of the header and empty bodies."""
    declarations = DECLARATION.findall(header)
    (folder / "syncopate.h").write_text(header, encoding="utf-8")
    bodies = "".join(f"{declaration} {{ __builtin_trap(); }}\n" for declaration in declarations)
    (folder / "empty.c").write_text("#include \"syncopate.h\"\n" + bodies, encoding="utf-8")
    library = folder / "libsyncopate.so"
    subprocess.run(["cc", "-g", "-fPIC", "-shared", "-Wl,-soname,libsyncopate.so", "empty.c", "-o", library],
                   check=True, cwd=folder)
    return library


def describe(library, into):
    subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", library, "--out-file", into], check=True)


class Interface(unittest.TestCase):
    def setUp(self):
        if shutil.which("abidiff") is None:
            self.skipTest("abidiff is missing")
        if platform.machine() != "x86_64":
            self.skipTest("the last release is described for x86_64")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="syncopate-interface-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.header = (SOURCE / "include/syncopate.h").read_text(encoding="utf-8")

    def differences(self, header):
        """The output of abidiff for the last release and `header`; added functions are no difference."""
        done = subprocess.run(["abidiff", "--no-added-syms", LAST, empty_library(header, self.folder)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode & 3, 0, done.stderr)  # 1: failed; 2: misused
        return done.stdout if done.returncode else ""

    def changed(self, old, new):
        self.assertIn(old, self.header)
        return self.differences(self.header.replace(old, new))

    def test_that_of_the_last_release_still_holds(self):
        self.assertEqual(self.differences(self.header), "")

    def test_the_built_library_has_the_functions_of_the_description(self):
        symbols = subprocess.run(["nm", "--dynamic", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
        built = {line.split()[-1].split("@")[0] for line in symbols.stdout.splitlines()}
        described = set(re.findall(r"<elf-symbol name='(\w+)'", LAST.read_text(encoding="utf-8")))
        self.assertEqual(described - built, set(), "programs that call these would no longer start")
        self.assertEqual(built - described, set(), "new functions: describe them by interface_test.py --write")

    def test_a_function_may_be_added(self):
        added = self.changed("SYNCOPATE_API const char *syncopate_version(void);",
                             "SYNCOPATE_API const char *syncopate_version(void);\nSYNCOPATE_API int syncopate_new(void);")
        self.assertEqual(added, "")

    def test_changes_are_found(self):
        self.assertIn("syncopate_version", self.changed("SYNCOPATE_API const char *syncopate_version(void);\n", ""))
        self.assertIn("syncopate_rank", self.changed("SYNCOPATE_API uint32_t syncopate_rank", "SYNCOPATE_API uint64_t syncopate_rank"))
        self.assertIn("syncopate_entry", self.changed("  uint32_t worker_count;\n  uint32_t local_rank;",
                                                      "  uint64_t worker_count;\n  uint32_t local_rank;"))
        self.assertIn("syncopate_status", self.changed("SYNCOPATE_DATA_ERROR = 3", "SYNCOPATE_DATA_ERROR = 13"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with tempfile.TemporaryDirectory() as place:
            text = (SOURCE / "include/syncopate.h").read_text(encoding="utf-8")
            describe(empty_library(text, pathlib.Path(place)), LAST)
    else:
        unittest.main()
