#!/usr/bin/python3
"""Goal:   the scripts of docs/guides/migrating.md and from-mpi.md run: all that use Syncopate, and those of other frameworks
        that are installed here.
Method: the test extracts each script from its page and runs it on two workers, which learn the line y = 2x + 1. For moves
        that change one word or one import, it makes that change in the script of the other framework.
"""
import pathlib
import re
import unittest

import torch

from script_cases import SYNCOPATE, ScriptTest, reference

PAGES = [pathlib.Path(__file__).parents[2] / "docs/guides" / page for page in ("migrating.md", "from-mpi.md")]
LOSS = re.compile(r"^\[worker (\d)\] worker \1 of 2: loss ([0-9.]+)$", re.MULTILINE)
# For each part of a page, the module that its script of the other framework imports.
PARTS = {"DistributedDataParallel": "torch.nn.parallel", "Horovod": "horovod.torch", "MXNet's KVStore": "mxnet",
         "mpi4py": "mpi4py"}


def parts_of_page():
    """Returns the scripts before and after the move, by the heading of their part."""
    found = {}
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        snippets = re.findall(r"^```python\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
        if snippets:
            found[part.splitlines()[0]] = snippets
    return found


class Migrating(ScriptTest):
    def trains(self, script, *options, scheme="run"):
        """Runs a script on two workers and asserts that both learn the line."""
        path = pathlib.Path(self.folder) / "train.py"
        path.write_text(script, encoding="utf-8")
        done = self.start([SYNCOPATE, "run", "-n", 2, *options, "--run-dir", scheme, "--", *self.python, path])
        self.assertEqual(done.returncode, 0, done.stderr)
        said = LOSS.findall(done.stderr)
        self.assertEqual(sorted(rank for rank, _ in said), ["0", "1"], done.stderr)
        for _, loss in said:
            self.assertLess(float(loss), 0.01)

    def before(self, name):
        return parts_of_page()[name][0]

    def after(self, name):
        return parts_of_page()[name][1]

    def model_of_the_line(self):
        """Asserts that the model that worker 0 has saved is the line."""
        model = torch.nn.Linear(1, 1)
        model.load_state_dict(torch.load(pathlib.Path(self.folder) / "model.pt"))
        self.assertAlmostEqual(model(torch.tensor([[0.5]])).item(), 2, delta=0.1)

    def test_each_part_has_a_script_before_and_one_after(self):
        parts = parts_of_page()
        self.assertEqual(set(parts), set(PARTS))
        for name, module in PARTS.items():
            with self.subTest(name):
                before, after = parts[name]
                self.assertRegex(before, rf"(?m)^(import|from) {re.escape(module)}\b")
                self.assertNotIn("syncopate", before)
                self.assertIn("import syncopate_torch as syncopate", after)
                for script in (before, after):
                    compile(script, name, "exec")

    def test_distributed_data_parallel_before_and_by_one_word(self):
        script = self.before("DistributedDataParallel")
        self.trains(script)
        self.model_of_the_line()
        one_word = script.replace('init_process_group("gloo")', 'init_process_group("syncopate")')
        self.assertNotEqual(one_word, script)
        self.trains("import syncopate_torch\n" + one_word)

    def test_distributed_data_parallel_after(self):
        for scheme in ("ssgd", "esync"):
            with self.subTest(scheme):
                self.trains(self.after("DistributedDataParallel"), "--scheme", scheme, scheme=scheme)
                self.model_of_the_line()

    def test_horovod_by_one_import_and_after(self):
        script = self.before("Horovod")
        one_import = script.replace("import horovod.torch as hvd", "import syncopate_torch.horovod as hvd")
        self.assertNotEqual(one_import, script)
        self.trains(one_import)
        self.trains(self.after("Horovod"), scheme="after")

    def test_mxnets_kvstore_after(self):
        self.trains(self.after("MXNet's KVStore"), scheme="ssgd")
        self.model_of_the_line()
        self.trains(self.after("MXNet's KVStore"), "--scheme", "asgd", "--servers", 2, scheme="asgd")
        self.model_of_the_line()

    def test_mpi4py_after(self):
        self.trains(self.after("mpi4py"))

    def test_training_goes_on_from_a_checkpoint(self):
        """Worker 0 saves after `finish`, and every worker loads the file before `DistributedOptimizer`, as on the page."""
        self.facts(self.launch(2, "saves", options=("--run-dir", "first")))
        for facts in self.facts(self.launch(2, "goes_on", options=("--run-dir", "second"))):
            self.assert_near(facts["parameters"], reference())


if __name__ == "__main__":
    unittest.main()
