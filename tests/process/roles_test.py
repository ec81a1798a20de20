"""Goal: coordinator, workers and servers that are started by separate commands find each other in any order, train as
`syncopate train` does, and end together.
Method: each role is a separate command, over loopback."""
import signal
import unittest

from jobs import ENDLESS, SMALL, JobTest, free_address, wait_until_gone

SERVED = [*SMALL, "--scheme", "asgd", "--servers", "1"]


class Roles(JobTest):
    def test_start_in_any_order(self):
        for number, order in enumerate((
            ("coordinator", "server", "worker", "worker"),
            ("worker", "server", "coordinator", "worker"),
            ("worker", "worker", "server", "coordinator"),
        )):
            with self.subTest(order):
                address, run_dir = free_address(), f"run{number}"
                processes = [
                    self.coordinate(*SERVED, "--max-steps", "20", address=address, run_dir=run_dir)
                    if role == "coordinator" else self.join(role, address, run_dir=run_dir)
                    for role in order
                ]
                self.assert_all_end_well(*processes)
                self.assertEqual([worker["steps"] for worker in self.summary(run_dir)["workers"]], [20, 20])
                self.assertGreater(self.summary(run_dir)["accuracy"], 0.2)
                self.assertEqual(len(self.checkpoints(run_dir)), 2)  # the first model and the last

    def test_several_servers_and_places_by_number(self):
        job = self.coordinate(*SMALL, "--scheme", "asgd", "--servers", "2", "--max-steps", "10")
        address = job.address()
        places = [("worker", 1), ("server", 1), ("worker", 0), ("server", 0)]
        joiners = [self.join(role, address, "--index", index) for role, index in places]
        started = job.wait_for("started")
        by_rank = {worker["rank"]: worker["pid"] for worker in started["workers"]}
        self.assertEqual(by_rank, {1: joiners[0].process.pid, 0: joiners[2].process.pid})
        self.assert_all_end_well(job, *joiners)

    def test_servers_may_share_the_process_of_the_coordinator(self):
        job = self.coordinate(*SERVED, "--server-process", "shared", "--max-steps", "10")
        address = job.address()
        self.assert_all_end_well(self.join("worker", address), self.join("worker", address), job)

    def test_nobody_waits_for_ever(self):
        job = self.coordinate(*SMALL, "--gather-limit", "5")
        self.join("worker", job.address()).wait_for_line("worker 0 joins")
        status, errors = job.finish()
        self.assertEqual(status, 1)
        self.assertIn("there is still no sign of worker 1", errors)
        status, errors = self.join("worker", free_address(), "--gather-limit", "1.5").finish()
        self.assertEqual(status, 1)
        self.assertIn("waiting for the coordinator at", errors.splitlines()[0])
        self.assertIn("nobody answers at", errors.splitlines()[1])

    def test_an_address_in_use_is_refused_before_anything_is_written(self):
        job = self.coordinate(*SMALL)
        other = self.coordinate(*SMALL, address=job.address(), run_dir="other")
        status, errors = other.finish()
        self.assertEqual((status, len(errors.splitlines())), (2, 1), errors)
        self.assertIn("Address already in use", errors)
        self.assertFalse((self.folder / "other").exists())

    def test_an_interrupt_of_the_coordinator_ends_all_with_a_checkpoint(self):
        job = self.coordinate(*SERVED, *self.steady(), *ENDLESS)
        address = job.address()
        joiners = [self.join(role, address) for role in ("worker", "worker", "server")]
        job.wait_for_round(10)
        children = job.children()
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish()[0], 130)
        self.assert_all_end_well(*joiners)
        # On a fast machine there may also be earlier checkpoints, of whole epochs.
        last = self.checkpoints()[-1].stem
        self.assertEqual(int(last.removeprefix("round-")), self.summary()["rounds"])
        wait_until_gone(children)

    def test_the_death_of_the_coordinator_ends_all(self):
        job = self.coordinate(*SERVED, *self.steady(), *ENDLESS)
        address = job.address()
        joiners = [self.join(role, address) for role in ("worker", "worker", "server")]
        job.wait_for_round(10)
        children = job.children()
        job.process.kill()
        for joiner in joiners:
            status, errors = joiner.finish()
            self.assertEqual(status, 1, errors)
            self.assertIn("the coordinator died", errors)
        wait_until_gone(children)

    def test_a_joiner_writes_below_a_folder_of_its_own_and_says_where_its_checkpoints_are(self):
        job = self.coordinate(*SMALL, "--workers", "1", "--max-steps", "5")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        worker = self.join("worker", job.address(), run_dir=None, cwd=elsewhere)
        note = job.wait_for_note("checkpoints go to")
        self.assert_all_end_well(worker, job)
        (own,) = (elsewhere / "runs").iterdir()
        self.assertIn(str(own), note)
        self.assertEqual(sorted(path.name for path in own.iterdir()), ["checkpoints", "spans", "workers"])
        self.assertEqual(len((own / "workers" / "0.jsonl").read_text().splitlines()), 5)
        self.assertEqual(list((self.folder / "run" / "workers").iterdir()), [])
        self.assertEqual(self.checkpoints(), [])

    def test_a_run_is_resumed_by_hand(self):
        for options in (["--max-steps", "5"], ["--resume", self.folder / "run", "--max-steps", "9"]):
            base = SMALL if "--resume" not in options else []
            job = self.coordinate(*base, *options)
            address = job.address()
            self.assert_all_end_well(self.join("worker", address), self.join("worker", address), job)
        self.assertEqual(self.summary()["rounds"], 9)


if __name__ == "__main__":
    unittest.main()
