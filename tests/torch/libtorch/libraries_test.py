"""Goal:   a build with a libtorch in a separate folder runs with that libtorch, whose symbols do not clash with those of the
        libraries that Syncopate links: libtorch contains other versions of some of them, such as protobuf and fmt.
Method: the test compares the dynamic symbols of both, and the libraries that the loader finds, also for an installation in
        another folder.
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["SYNCOPATE_TORCH_PROGRAM"]
BUILD = os.environ["SYNCOPATE_BUILD"]
LIBTORCH = os.path.realpath(os.environ["SYNCOPATE_LIBTORCH"])
SYSTEM = ("libc.", "libm.", "libgcc_s.", "libstdc++.", "libpthread.", "libdl.", "librt.", "ld-linux")


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def libraries_of(program):
    """Returns the files that the loader finds for the libraries of a program, by name."""
    return {name: os.path.realpath(path) for name, path in re.findall(r"(\S+) => (/\S+)", output("ldd", program))}


def symbols_of(library):
    """Returns the symbols that a library exports, except those that every C++ program has from templates of the standard
    library."""
    lines = output("nm", "--dynamic", "--defined-only", "--demangle", library).splitlines()
    found = (line.split(" ", 2) for line in lines)
    return {words[2] for words in found if len(words) == 3 and not re.search(r"\bstd::|__gnu_cxx::", words[2])}


class Libraries(unittest.TestCase):
    def test_all_of_libtorch_is_that_of_the_folder(self):
        for name, path in libraries_of(PROGRAM).items():
            if re.match(r"lib(torch|c10|gomp)", name):
                self.assertTrue(path.startswith(f"{LIBTORCH}/lib/"), path)

    def test_no_symbol_is_of_two_libraries(self):
        libraries = libraries_of(PROGRAM)
        own = [path for path in libraries.values() if path.startswith(LIBTORCH)]
        of_libtorch = set().union(*(symbols_of(path) for path in own))
        self.assertTrue(any(name.startswith("at::") for name in of_libtorch), own)
        others = {name: path for name, path in libraries.items() if path not in own and not name.startswith(SYSTEM)}
        for wanted in ("libprotobuf", "libfmt", "libspdlog", "libz"):
            self.assertTrue(any(name.startswith(wanted) for name in others), others)
        for name, path in others.items():
            self.assertEqual(symbols_of(path) & of_libtorch, set(), name)

    def test_an_installed_program_finds_it(self):
        with tempfile.TemporaryDirectory(prefix="syncopate-installed-") as prefix:
            output("cmake", "--install", BUILD, "--prefix", prefix)
            program = pathlib.Path(prefix) / "bin/syncopate"
            installed = libraries_of(pathlib.Path(prefix) / "libexec/syncopate/syncopate-torch")
            found = installed["libtorch_cpu.so"]
            self.assertTrue(found.startswith(LIBTORCH), found)
            networks = json.loads(output(program, "networks", "--json"))["networks"]
            self.assertIn(61706, [network["parameters"] for network in networks])


if __name__ == "__main__":
    unittest.main()
