#!/usr/bin/env python3
"""Goal:   the scripts run with a read-only home, with little memory and in a clone of another user, and refuse in one line what
        they cannot do.
Method: the test calls functions of script/common.sh in a bash that sources it, scripts with wrong arguments, and a copy of the
        scripts whose folder `build` cannot be written to.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def bash(commands, root=ROOT, **variables):
    environment = {name: value for name, value in os.environ.items() if name not in ("CCACHE_DIR", "XDG_CACHE_HOME")}
    return subprocess.run(["bash", "-euc", f". script/common.sh\n{commands}", "script"], cwd=root, env={**environment, **variables},
                          capture_output=True, text=True, check=False)  # fmt: skip


class Scripts(unittest.TestCase):
    def test_as_many_compilers_run_as_memory_and_processors_let(self):
        cases = {(400_000, 2): 1, (2_100_000, 2): 1, (4_600_000, 2): 2, (6_100_000, 2): 3, (22_000_000, 2): 3, (22_000_000, 1): 2}
        for (memory, processors), expected in cases.items():
            done = bash(f"compilers_for {memory} {processors}")
            self.assertEqual(done.stdout, f"{expected}\n", (memory, processors, done.stderr))

    def test_memory_is_at_most_that_of_the_machine(self):
        done = bash("available_memory; awk '/^MemTotal:/ { print $2 }' /proc/meminfo")
        available, total = map(int, done.stdout.split())
        self.assertTrue(0 < available <= total, done)

    def test_the_compilers_cache_is_in_build_where_the_home_is_read_only(self):
        shown = 'place_ccache; echo "${CCACHE_DIR:-the usual one}"'
        self.assertEqual(bash(shown, HOME="/proc").stdout, f"{ROOT}/build/ccache\n")
        with tempfile.TemporaryDirectory() as home:
            self.assertEqual(bash(shown, HOME=home).stdout, "the usual one\n")
            self.assertEqual(bash(shown, HOME="/proc", CCACHE_DIR=f"{home}/own").stdout, f"{home}/own\n")

    def test_a_clone_that_cannot_be_written_to_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "script", f"{folder}/script")
            pathlib.Path(folder, "build").touch()
            done = bash("build release", root=folder)
            self.assertEqual(done.returncode, 2, done)
            self.assertRegex(done.stderr, r"^\w+: cannot write to \S+/build/release as user \w+: clone the repository .*\n$")

    @unittest.skipUnless(shutil.which("git") and (ROOT / ".git").exists(), "this is no clone, or Git is not installed")
    def test_tables_name_the_commit_of_a_clone_that_another_user_owns(self):
        done = subprocess.run([sys.executable, "-Bc", "import measuring; print(measuring.commit())"], cwd=ROOT / "bench",
                              env={**os.environ, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}, capture_output=True, text=True,
                              check=True)  # fmt: skip
        self.assertRegex(done.stdout, "^[0-9a-f]{12}")

    def test_wrong_arguments_are_refused(self):
        cases = {
            ("script/test", "--only", "style"): "test: --only 'style': expected libtorch",
            ("script/docs", "one", "two"): "docs: at most one folder expected, found one two",
            ("script/release", "--now"): "release: unknown argument '--now' (see --help)",
            ("script/check", "fresh", "vm"): "fresh: unknown surroundings 'vm': expected chroot, container, user, demo or packages (see --help)",
        }
        for words, expected in cases.items():
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (2, f"{expected}\n"))


if __name__ == "__main__":
    unittest.main()
