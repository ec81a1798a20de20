#!/usr/bin/env python3
"""Goal:   a worker that leaves its job releases all resources, and the worker that hosts the job leaves last; collectives of
        a deleted group still end, and a group refuses calls after its job was left. Memory does not grow with the steps.
Method: leaving_scripts.py under `syncopate run`, or with the variables of torch.distributed; the scripts count their threads
        and descriptors after each of several jobs, and delete groups before and after the end of their collectives.
"""
import json
import os
import pathlib
import socket
import subprocess
import unittest

from script_cases import LIMIT, SYNCOPATE, ScriptTest

SCRIPTS = str(pathlib.Path(__file__).with_name("leaving_scripts.py"))


class Leaving(ScriptTest):
    def launch(self, name, *arguments):
        run_folder = "-".join(["run", *arguments])
        done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", run_folder, "--", *self.python, SCRIPTS, name,
                           *arguments])
        return self.facts(done)

    def by_hand(self, *words):
        """Starts two workers with the variables of torch.distributed."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
        ranks = [subprocess.Popen([*self.python, SCRIPTS, *words], cwd=self.folder, text=True,
                                  env={**os.environ, **variables, "RANK": str(rank)}, stdout=subprocess.PIPE)
                 for rank in range(2)]
        self.addCleanup(lambda: [rank.kill() for rank in ranks])
        return ranks

    def test_one_job_after_the_other_leaves_nothing_open(self):
        for scheme in ("ssgd", "esync"):
            for how in ("leave", "drop"):
                with self.subTest(scheme=scheme, how=how):
                    for facts in self.launch("one_after_the_other", scheme, how):
                        self.assertEqual(facts["after"][-1], facts["after"][1])
                        self.assertEqual(facts["after"][-1]["jobs"], 0)

    def test_memory_does_not_grow_with_the_steps(self):
        for facts in self.facts(super().launch(2, "many_steps", "ssgd")):
            before, after = facts["before"], facts["after"]
            self.assertLess(after["own"] - before["own"], 256)  # less than 32 bytes per step
            # Each pair of workers has two rings of 1 MiB in shared memory; a page counts once it was used.
            self.assertLess(after["shared"], 2 * 1024 + 1024)

    def test_the_host_of_a_job_stays_until_the_others_have_left_and_its_record_is_complete(self):
        run_folder = pathlib.Path(self.folder, "run")
        ranks = self.by_hand("with_open_group", run_folder)
        said = [json.loads(rank.communicate(timeout=LIMIT)[0]) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        self.assertRegex(said[1]["lost"], r"worker 0 \(pid \d+ on \S+\) has left the job or ended")
        files = {path.name for path in run_folder.iterdir()}
        self.assertLessEqual({"summary.json", "trace.json.gz"}, files)
        self.assertEqual([name for name in files if name.endswith(".tmp") or name == "run.lock"], [])

    def test_the_others_learn_which_worker_the_host_was_that_has_died(self):
        ranks = self.by_hand("host_dies")
        said = [rank.communicate(timeout=LIMIT)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [5, 0])
        self.assertRegex(json.loads(said[1])["lost"], r"worker 0[ ,(].*pid \d+ on ")

    def test_what_is_under_way_in_a_group_that_nobody_keeps_ends_as_ever(self):
        for facts in self.launch("dropped_group"):
            self.assertEqual(facts["values"], [0, 2, 4, 6])

    def test_the_group_of_all_workers_after_its_job(self):
        for facts in self.launch("everyone_kept"):
            self.assertEqual(facts["said"], ["this worker has left the job; call syncopate_torch.init again"] * 3)


if __name__ == "__main__":
    unittest.main()
