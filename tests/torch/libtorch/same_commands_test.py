"""Goal:   a build with another libtorch compiles only the sources that include its headers; ccache provides the other objects.
Method: the test compares the compiler commands of the build with Debian's libtorch with those of this build. Equal commands
        give equal objects.
"""
import json
import os
import pathlib
import unittest

BUILD = pathlib.Path(os.environ["SYNCOPATE_BUILD"])
OTHER = BUILD.parent / "release"


def commands_of(build):
    """Returns {object: words of its compiler command}, without the path of the build folder."""
    entries = json.loads((build / "compile_commands.json").read_text())
    words = [entry["command"].replace(str(build), "BUILD").split() for entry in entries]
    return {row[row.index("-o") + 1]: row for row in words}


@unittest.skipUnless((OTHER / "compile_commands.json").exists(), "no build with Debian's libtorch in build/release")
class SameCommands(unittest.TestCase):
    def test_only_what_includes_libtorch_differs(self):
        ours, others = commands_of(BUILD), commands_of(OTHER)
        own_headers = "BUILD/own-headers"
        different = [name for name, row in ours.items() if name in others and own_headers not in row and row != others[name]]
        self.assertEqual(different, [])
        others_as_well = sum(own_headers not in row for row in ours.values())
        self.assertGreater(others_as_well, 150)
        self.assertLess(len(ours) - others_as_well, others_as_well / 4)


if __name__ == "__main__":
    unittest.main()
