"""Goal:   with another libtorch only what includes its headers is compiled again; all else comes from ccache.
Method: the commands of the build with Debian's libtorch beside those of this build. The same words give the same objects.
"""
import json
import os
import pathlib
import unittest

BUILD = pathlib.Path(os.environ["SYNCOPATE_BUILD"])
OTHER = BUILD.parent / "release"


def commands_of(build):
    """{object: words of its compiler}, without the folder of the build."""
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
