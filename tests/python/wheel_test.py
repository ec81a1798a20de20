#!/usr/bin/python3
"""Goal:   the wheel alone gives the module, the library and `syncopate run`, and carries no part of torch.
Method: script/wheel; its result is installed into an empty folder, from which two workers run, with the torch of this
        interpreter.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(__file__).parents[2]
SCRIPTS = pathlib.Path(__file__).with_name("scripts.py")
LIMIT = 600  # seconds, of one command
OWN = {name: value for name, value in os.environ.items() if name not in ("SYNCOPATE_LIBRARY", "PYTHONPATH")}


def run(*words, **environment):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LIMIT, check=False, env={**OWN, **environment})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        built = run(SOURCE / "script/wheel", SYNCOPATE_NO_BOOTSTRAP="1")
        cls.wheel = SOURCE / re.findall(r"^build/wheel/\S+\.whl$", built, re.MULTILINE)[-1]

    def test_serves_every_python_and_has_no_torch(self):
        self.assertRegex(self.wheel.name, r"^syncopate_torch-[0-9.]+-py3-none-manylinux_\S+\.whl$")
        names = zipfile.ZipFile(self.wheel).namelist()
        self.assertIn("syncopate_torch/lib/libsyncopate.so.0", names)
        self.assertEqual([name for name in names if re.search("torch_cpu|libc10|openblas", name)], [])

    def test_is_all_that_a_script_needs(self):
        with tempfile.TemporaryDirectory(prefix="syncopate-wheel-") as folder:
            run(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--target", folder,
                self.wheel)
            output = run(f"{folder}/bin/syncopate", "run", "-n", 2, "--run-dir", f"{folder}/run", "--", sys.executable, "-B",
                         SCRIPTS, "collectives", PYTHONPATH=folder, PYTHONWARNINGS="ignore")
            self.assertEqual(output.count('"columns": [[3.0'), 2, output)
            output = run(f"{folder}/bin/syncopate", "run", "--cluster", "mixed", "--run-dir", f"{folder}/run2", "--",
                         sys.executable, "-B", SCRIPTS, "learns", "esync", PYTHONPATH=folder, PYTHONWARNINGS="ignore")
            self.assertEqual(output.count('"accuracy"'), 4, output)


if __name__ == "__main__":
    unittest.main()
