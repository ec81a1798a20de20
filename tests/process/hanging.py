"""Base class of the tests of hangs: it starts jobs that train until the test stops one of their threads."""
import re
import signal

import jobs
import privileges


class HangTest(jobs.JobTest):
    wait_limit = 4  # seconds

    def setUp(self):
        privileges.debugger().require()
        super().setUp()

    def start_all(self, cases):
        """Starts a job for each of `cases`, {name: options}, and waits until all train."""
        endless = [*jobs.SMALL, *self.steady(), "--epochs", "100000", "--wait-limit", self.wait_limit]
        running = {name: self.start(*endless, *options, run_dir=name)
                   for name, options in cases.items()}
        for job in running.values():
            job.wait_for_round(5)
        return running

    def end_of(self, job):
        """Waits until a job ends by itself and returns the last line that it prints, which names the reason."""
        job.wait_for("failed")
        status, errors = job.finish()
        self.assertEqual(status, 1, errors)
        return errors.splitlines()[-1]

    def assert_named(self, name, pid, text):
        """Asserts that `text` names this process as the culprit, and no other."""
        culprits = re.findall(r"((?:worker|server) \d+|the \w+) \(pid (\d+) on [^)]*\)"
                              r"(?: hangs:|, last heard| no longer answers;)", text)
        self.assertEqual(culprits, [(name, str(pid))], text)

    def assert_left_out(self, name, pid, job):
        """Asserts that the job goes on without this process; then interrupts the job."""
        self.assert_named(name, pid, job.wait_for_note("the job goes on without it"))
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish()[0], 130)
