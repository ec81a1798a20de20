#!/usr/bin/python3
"""Goal:   if a thread of the evaluator hangs while its heartbeats continue, the job names the evaluator with its process
        id and goes on without it. The test runs beside other tests: the duration of a first evaluation is not known, so
        the coordinator finds the hang late.
Method: the test stops the main thread of a running evaluator as a debugger does.
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
