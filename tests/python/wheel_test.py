#!/usr/bin/python3
"""Goal:   the wheel contains the module, the library and `syncopate run`, needs nothing else, and contains no part of torch.
Method: `pip wheel` in the repository runs script/wheel; the test installs the wheel into an empty folder and runs workers from
        there, with the torch of this interpreter.
"""
import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(__file__).parents[2]
SCRIPTS = pathlib.Path(__file__).with_name("scripts.py")
LIMIT = 600  # seconds for one command
OWN = {name: value for name, value in os.environ.items() if name not in ("SYNCOPATE_LIBRARY", "PYTHONPATH")}

BY_NAME_ALONE = """
import sys, torch
from torch import distributed
loaded = "syncopate_torch" in sys.modules
distributed.init_process_group("syncopate")
values = torch.tensor([1.0 + distributed.get_rank()])
distributed.all_reduce(values)
print(f"sum {values.tolist()}, loaded before: {loaded}")
distributed.destroy_process_group()
"""


def run(*words, **environment):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LIMIT, check=False, env={**OWN, **environment})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="syncopate-wheel-")
        cls.addClassCleanup(folder.cleanup)
        run(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--wheel-dir", folder.name, SOURCE)
        [cls.wheel] = pathlib.Path(folder.name).glob("*.whl")
        cls.installed = pathlib.Path(folder.name, "installed")
        run(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--target", cls.installed, cls.wheel)

    def started(self, *words):
        """Runs workers from the folder with the wheel. Returns what they have written."""
        with tempfile.TemporaryDirectory(prefix="syncopate-wheel-") as folder:
            return run(self.installed / "bin/syncopate", "run", "--run-dir", f"{folder}/run", *words, PYTHONPATH=str(self.installed),
                       PYTHONWARNINGS="ignore")

    def test_serves_every_python_and_has_no_torch(self):
        page = (SOURCE / "docs/start/install.md").read_text(encoding="utf-8")
        [tag] = set(re.findall(r"manylinux_[0-9]+_[0-9]+", page))  # the oldest glibc that the page promises
        self.assertRegex(self.wheel.name, rf"^syncopate_torch-[0-9.]+-py3-none-{tag}_{platform.machine()}\.whl$")
        names = zipfile.ZipFile(self.wheel).namelist()
        self.assertIn("syncopate_torch/lib/libsyncopate.so.0", names)
        self.assertEqual([name for name in names if re.search("torch_cpu|libc10|openblas", name)], [])

    def test_its_extras_are_the_versions_that_are_tested(self):
        [metadata] = [name for name in zipfile.ZipFile(self.wheel).namelist() if name.endswith(".dist-info/METADATA")]
        extras = re.findall(r'^Requires-Dist: (\w+)==([\d.]+) ?; extra == ', zipfile.ZipFile(self.wheel).read(metadata).decode(),
                            re.MULTILINE)
        self.assertEqual(sorted(name for name, _ in extras), ["accelerate", "lightning"])
        for name, version in extras:
            if importlib.util.find_spec(name):  # the environment of script/test --torch pip has both
                self.assertEqual(importlib.metadata.version(name), version)

    def test_is_all_that_a_script_needs(self):
        output = self.started("-n", 2, "--", sys.executable, "-B", SCRIPTS, "learns", "esync")
        self.assertEqual(output.count('"accuracy"'), 2, output)

    def test_a_script_of_torch_distributed_needs_no_import(self):
        output = self.started("--cluster", "mixed", "--", sys.executable, "-c", BY_NAME_ALONE)
        self.assertEqual(output.count("sum [10.0], loaded before: False"), 4, output)

    def test_missing_packages_are_named_in_one_line(self):
        with tempfile.TemporaryDirectory(prefix="syncopate-pip-") as folder:
            copy = pathlib.Path(folder)
            (copy / "script").mkdir()
            bootstrap = copy / "script/bootstrap"
            bootstrap.write_text("#!/bin/sh\necho cmake\nexit 1\n", encoding="ascii")
            bootstrap.chmod(0o755)
            shutil.copy(SOURCE / "pyproject.toml", copy)
            shutil.copytree(SOURCE / "python", copy / "python")
            done = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", copy],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False,
                                  cwd=folder, env=OWN)
            self.assertNotEqual(done.returncode, 0)
            # Reading name and version needs no build.
            self.assertIn("Preparing metadata (pyproject.toml): finished with status 'done'", done.stdout)
            self.assertIn("the build needs Debian packages that are missing: cmake; install them by script/bootstrap", done.stdout)
            self.assertNotIn("Traceback", done.stdout)


if __name__ == "__main__":
    unittest.main()
