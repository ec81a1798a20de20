#!/usr/bin/python3
"""Goal:   every Python snippet of the pages that show scripts runs as it is printed.
Method: the test extracts each snippet from its page, adds a preamble that defines what the snippet does not, and runs it on
        two workers. migrating_test.py runs the scripts of docs/guides/migrating.md.
"""
import os
import pathlib
import re
import unittest

from script_cases import SYNCOPATE, TORCH, ScriptTest, needs

SOURCE = pathlib.Path(__file__).parents[2]
PAGES = ("README.md", "python/README.md", "docs/guides/python.md", "docs/guides/torch-distributed.md", "docs/guides/resuming.md",
         "docs/guides/horovod.md", "docs/guides/lightning.md", "docs/guides/accelerate.md", "docs/start/from-ddp.md")

# What a snippet expects from the user: a dataset, a model, an optimizer and a loss.
OWN = """
import torch
torch.set_num_threads(1)
torch.manual_seed(1)
dataset = torch.utils.data.TensorDataset(torch.rand(64, 1), torch.rand(64, 1))
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = torch.nn.functional.mse_loss
before = model.weight.detach().clone()
"""
TRAINED = "\nassert not torch.equal(model.weight, before)\n"
FINISHED = "\noptimizer.finish()" + TRAINED  # a slow worker may take no step before the others end
LOOP = """
data = job.partition_dataset(dataset, batch_size=16)
optimizer = job.DistributedOptimizer(optimizer, model)
for x, y in data:
    optimizer.zero_grad()
    loss(model(x), y).backward()
    optimizer.step()
"""
MODULE = """
import lightning
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(1, 1)
    def training_step(self, batch, _index):
        return loss(self.inner(batch[0]), batch[1])
    def validation_step(self, batch, _index):
        self.log("loss", loss(self.inner(batch[0]), batch[1]))
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
model = Module()
train_dataloader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
val_dataloader = torch.utils.data.DataLoader(dataset, batch_size=16)
"""
RANK = "\nassert torch.distributed.get_world_size() == 2\n"
HOROVOD = "\nhvd.init()\nassert hvd.size() == 2\n"

# A preamble that sets the seed. In save number {} worker 1 is killed after writing half of its file, once worker 0 has saved.
SEEDED = """
import os
import signal
import torch
torch.set_num_threads(1)
torch.manual_seed(1)
numbers, whole_save = iter(range(1, 100)), torch.save
def save(state, file):
    is_last = next(numbers) == {}
    if is_last and state["rank"] == 1:
        open("saved").read()
        open(file, "wb").write(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    whole_save(state, file)
    if is_last:
        open("saved", "w").close()
torch.save = save
"""


def snippets(page):
    """Returns the Python snippets of a page, in order."""
    text = (SOURCE / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


class Snippets(ScriptTest):
    def run_snippet(self, page, mark, before="", after="", workers=2, status=0):
        """Runs the snippet that contains the text `mark`, and returns its output."""
        [snippet] = [each for each in snippets(page) if mark in each]
        script = pathlib.Path(self.folder) / "train.py"
        script.write_text(before + snippet + after, encoding="utf-8")
        run = pathlib.Path(self.folder) / f"run{len(list(pathlib.Path(self.folder).glob('run*')))}"
        done = self.start([SYNCOPATE, "run", "-n", workers, "--run-dir", run, "--", *self.python, script])
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_no_snippet_is_left_out(self):
        marks = {"README.md": ["partition_dataset"], "python/README.md": ["partition_dataset"],
                 "docs/guides/python.md": ['init(scheme="esync")\npoints'],
                 "docs/guides/torch-distributed.md": ['init_process_group("syncopate")', '"aggregate"'], "docs/guides/resuming.md": ["load_state_dict"],
                 "docs/guides/horovod.md": ["horovod"], "docs/guides/lightning.md": ["SyncopateStrategy"],
                 "docs/guides/accelerate.md": ["accelerate"],
                 "docs/start/from-ddp.md": ["init_process_group", "DistributedOptimizer"]}
        for page in PAGES:
            for snippet in snippets(page):
                self.assertEqual(sum(mark in snippet for mark in marks[page]), 1, f"{page}:\n{snippet}")
            self.assertEqual(len(snippets(page)), len(marks[page]))

    def test_of_the_first_pages(self):
        for page in ("README.md", "python/README.md"):
            with self.subTest(page):
                self.run_snippet(page, "partition_dataset", OWN, FINISHED)

    def test_one_word_and_one_import(self):
        self.run_snippet("docs/guides/torch-distributed.md", 'init_process_group("syncopate")', "", RANK)
        self.run_snippet("docs/guides/horovod.md", "horovod", "", HOROVOD)

    def test_a_scheme_over_another_group(self):
        self.run_snippet("docs/guides/torch-distributed.md", '"aggregate"', "import syncopate_torch" + OWN, LOOP + FINISHED)

    def test_from_ddp(self):
        for mark in ("init_process_group", "DistributedOptimizer"):
            output = self.run_snippet("docs/start/from-ddp.md", mark)
            self.assertEqual(len(re.findall(r"[1-9][0-9]* images/s together$", output, re.MULTILINE)), 2, output)

    def test_five_calls(self):
        output = self.run_snippet("docs/guides/python.md", 'init(scheme="esync")\npoints')
        losses = re.findall(r"^\[worker \d\] worker \d of 2: loss (\S+)$", output, re.MULTILINE)
        self.assertEqual(len(losses), 2, output)
        for loss in losses:
            self.assertLess(float(loss), 0.01)

    def test_a_job_that_goes_on(self):
        says = '\nprint("epoch", data.batch_sampler.epoch, "of", job.rank)\n'
        for _ in range(2):  # the second run has nothing left to do
            output = self.run_snippet("docs/guides/resuming.md", "load_state_dict", "", says)
            self.assertEqual(output.count("epoch 20 of"), 2, output)
        self.assertEqual(len(list(pathlib.Path(self.folder).glob("state-*.pt"))), 4)  # two workers, two epochs
        says = '\nassert "x" not in globals(), "began at epoch 0"\n' + says
        output = self.run_snippet("docs/guides/resuming.md", "load_state_dict", "", says, workers=4)
        self.assertEqual(output.count("epoch 20 of"), 4, output)

    def test_a_job_that_is_killed_while_a_worker_saves_goes_on_to_the_same_bits(self):
        says = '\noptimizer.finish()\nprint("ends", job.rank, 21 - next(numbers), model.weight.item().hex(), model.bias.item().hex())\n'
        whole = self.ends(self.run_snippet("docs/guides/resuming.md", "load_state_dict", SEEDED.format(0), says))
        self.assertEqual(whole[0], whole[1])
        self.assertEqual(whole[0][0], "0")
        (pathlib.Path(self.folder) / "newest").unlink()
        os.mkfifo(pathlib.Path(self.folder) / "saved")
        for _ in range(2):  # the second run repeats the epoch in which the first one was killed
            self.run_snippet("docs/guides/resuming.md", "load_state_dict", SEEDED.format(5), says, status=1)
        after = self.ends(self.run_snippet("docs/guides/resuming.md", "load_state_dict", SEEDED.format(0), says))
        self.assertEqual(after, [["8", *bits] for _, *bits in whole])

    def ends(self, output):
        """Returns for each worker the epoch that it began with and its parameters."""
        found = re.findall(r"^\[worker (\d)\] ends \d (\d+) (\S+) (\S+)$", output, re.MULTILINE)
        self.assertEqual(len(found), 2, output)
        return [list(rest) for _, *rest in sorted(found)]

    if TORCH >= (2, 0):

        @needs("lightning")
        def test_lightning(self):
            self.run_snippet("docs/guides/lightning.md", "SyncopateStrategy", OWN + MODULE, "\nassert trainer.current_epoch == 5\n")

        @needs("accelerate")
        def test_accelerate(self):
            self.run_snippet("docs/guides/accelerate.md", "accelerate", OWN, TRAINED)


if __name__ == "__main__":
    unittest.main()
