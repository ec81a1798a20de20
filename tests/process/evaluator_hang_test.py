#!/usr/bin/python3
"""Goal:   an evaluator of which one thread hangs, while its heartbeats come, is named by its number, and the job goes on
        without it. It runs beside other tests, since nobody knows how long a first evaluation takes, and the hang is found late.
Method: a debugger's stop of the main thread of a running process.
"""
import unittest

import hanging
import threads


class EvaluatorHangs(hanging.HangTest):
    wait_limit = 20  # seconds: other tests run beside this one

    def test_the_job_goes_on_without_it(self):
        [job] = self.start_all({"evaluator": ["--scheme", "ssgd"]}).values()
        job.wait_for("evaluation")
        pid = job.children()[-1]
        threads.stop_thread(pid)
        self.assert_left_out("the evaluator", pid, job)


if __name__ == "__main__":
    unittest.main()
