"""What tests of hangs share: jobs that train until one of their threads is stopped."""
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
        """The reason for which a job ends by itself, as its last line says it."""
        job.wait_for("failed")
        status, errors = job.finish()
        self.assertEqual(status, 1, errors)
        return errors.splitlines()[-1]

    def assert_named(self, name, pid, text):
        """`text` names this process as the culprit, and no other."""
        culprits = re.findall(r"((?:worker|server) \d+|the \w+) \(pid (\d+) on [^)]*\)"
                              r"(?: hangs:|, last heard| no longer answers;)", text)
        self.assertEqual(culprits, [(name, str(pid))], text)

    def assert_left_out(self, name, pid, job):
        """The job goes on without this process, until it is interrupted."""
        self.assert_named(name, pid, job.wait_for_note("the job goes on without it"))
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish()[0], 130)
