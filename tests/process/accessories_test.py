"""Goal: failures outside training do not end a job. If the evaluator dies (it is restarted a few times), if a log cannot
be written, or if an outsider forges messages, the job reports it, goes on, and writes its checkpoints.
Method: the test kills the evaluator of a real job, points logs at /dev/full, and lets a raw node send messages that it may
not send."""
import os
import pathlib
import signal
import struct
import unittest

import raw_node
from jobs import SMALL, JobTest, wait_until_gone

EVALUATION, CHECKPOINT = 6, 8  # the bodies of ToCoordinator


def niceness_of_threads(pid):
    """{thread name: niceness}; the main thread is "main"."""
    nices = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name, fields = (task / "stat").read_text(encoding="ascii").split("(", 1)[1].rsplit(")", 1)
        nices["main" if task.name == str(pid) else name] = int(fields.split()[16])
    return nices


def evaluation(accuracy):
    return raw_node.message({EVALUATION: b"\x29" + struct.pack("<d", accuracy)})


class Accessories(JobTest):
    def evaluator_of(self, job):
        """The process of a job without servers that is neither the coordinator nor a worker."""
        (pid,) = [pid for pid in job.children()[1:] if pid not in job.worker_pids()]
        return pid

    def assert_last_round_saved(self):
        last = self.checkpoints()[-1].stem
        self.assertEqual(int(last.removeprefix("round-")), self.summary()["rounds"])

    def kill_evaluator(self, job, evaluator):
        os.kill(evaluator, signal.SIGKILL)
        note = job.wait_for_note(f"the evaluator (pid {evaluator} on")
        self.assertIn("the job goes on without it", note)

    def wait_for_restart(self, job):
        """Waits until the new evaluator has tested a model, and returns its process id."""
        note = job.wait_for_note("the evaluator runs again (pid ")
        job.wait_for("evaluation")
        return int(note.split("(pid ")[1].split()[0])

    def test_a_killed_evaluator_is_started_again(self):
        job = self.start(*SMALL, *self.steady(), "--epochs", "100000", "--max-time", "8", "--eval-every", "1epoch")
        job.wait_for("evaluation")
        evaluator = self.evaluator_of(job)
        niceness = niceness_of_threads(evaluator)  # its tests yield to training, its heartbeats do not
        self.assertEqual([niceness[thread] for thread in ("main", "heartbeat", "control", "tcp")], [19, *[os.nice(0)] * 3])
        self.kill_evaluator(job, evaluator)
        again = self.wait_for_restart(job)
        self.assertEqual(self.evaluator_of(job), again)
        children = job.children()
        status, errors = job.finish()
        self.assertEqual(status, 0, errors)
        self.assertIn(f"evaluator (process {evaluator}) was killed by signal 9 (Killed); it is started again (1 of 3)",
                      errors)
        summary = self.summary()
        self.assertEqual(summary["evaluator_restarts"], 1)
        self.assertIsNone(summary["evaluator_dropped_because"])
        self.assertEqual(summary["ended_because"], "the limit of time is reached")
        self.assertEqual(summary["evaluations"][-1]["round"], summary["rounds"])
        self.assert_last_round_saved()
        wait_until_gone(children)

    def test_an_evaluator_that_dies_again_and_again_leaves_the_others_training(self):
        job = self.start(*SMALL, *self.steady(), "--epochs", "100000", "--eval-every", "1epoch")
        job.wait_for("evaluation")
        evaluator = self.evaluator_of(job)
        for _ in range(3):
            self.kill_evaluator(job, evaluator)
            evaluator = self.wait_for_restart(job)
        self.kill_evaluator(job, evaluator)
        status = job.wait_for("status")
        job.wait_for_round(status["round"] + 100)
        job.process.send_signal(signal.SIGINT)
        status, errors = job.finish()
        self.assertEqual(status, 130, errors)
        self.assertEqual(errors.count("it is started again"), 3, errors)
        summary = self.summary()
        self.assertEqual(summary["evaluator_restarts"], 3)
        self.assertIn(f"the evaluator (pid {evaluator} on", summary["evaluator_dropped_because"])
        self.assertIn("died; last heard", summary["evaluator_dropped_because"])
        self.assertGreater(len(summary["evaluations"]), 3)
        self.assert_last_round_saved()

    def test_logs_that_cannot_be_written_end_no_training(self):
        run = self.folder / "run"
        (run / "workers").mkdir(parents=True)
        for log in ("evaluations.jsonl", "pacer.jsonl"):
            (run / log).symlink_to("/dev/full")
        (run / "workers" / "0.jsonl").symlink_to("/nowhere/0.jsonl")
        done = self.train(*SMALL, "--scheme", "esync", "--epochs", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        for log in ("evaluations.jsonl", "pacer.jsonl"):
            self.assertEqual(done.stderr.count(f"cannot write {run / log}: No space left on device"), 1, done.stderr)
        self.assertIn(f"cannot open {run / 'workers' / '0.jsonl'}", done.stderr)
        self.assertGreater(len(self.summary()["evaluations"]), 0)
        self.assertGreater((run / "workers" / "1.jsonl").stat().st_size, 0)
        self.assert_last_round_saved()

    def test_an_outsider_reaches_no_target_and_ends_no_job(self):
        job = self.coordinate(*SMALL, "--workers", "1", "--epochs", "100", "--max-steps", "1000", "--target-accuracy", "1")
        address = job.address()
        worker = self.join("worker", address)
        with raw_node.RawNode(address, self.key_file().read_text()) as outsider:
            self.assertEqual(outsider.say_hello()[0], raw_node.WELCOME)
            job.wait_for("started")
            for _ in range(3):
                outsider.send(raw_node.MESSAGE, evaluation(1.0), tag=raw_node.TO_COORDINATOR)
            outsider.send(raw_node.MESSAGE, raw_node.message({CHECKPOINT: raw_node.message({1: "/tmp/forged"})}),
                          tag=raw_node.TO_COORDINATOR)
            note = job.wait_for_note("sent a message that it may not send (evaluation)")
            self.assertRegex(note, "^node [0-9]+ sent")
            finished = job.wait_for("finished")
        for process in (worker, job):
            status, errors = process.finish()
            self.assertEqual(status, 0, errors)
        self.assertEqual(finished["reason"], "the limit of steps is reached")
        self.assertNotIn("/tmp/forged", [event.get("path") for event in job.events])


if __name__ == "__main__":
    unittest.main()
