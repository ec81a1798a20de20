"""Goal: a job runs in a restricted environment: one processor, no home, a read-only home, no IPv6.
Method: short real jobs under one restriction each, which must end as usual."""
import os
import unittest

import privileges
from jobs import SMALL, JobTest

FOUR = ["--network", "mlp", "--data", "synthetic", "--workers", "4"]
WITHOUT_IPV6 = 'ip link set lo up && echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && exec "$@"'
HOMES = ("HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


class JobsWithLittle(JobTest):
    def assert_trained(self, *options, workers=2, **more):
        done = self.train(*options, "--max-steps", "20", **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([worker["steps"] for worker in self.summary()["workers"]], [20] * workers)

    def test_one_processor(self):
        one = {min(os.sched_getaffinity(0))}
        self.assert_trained(*FOUR, workers=4, preexec_fn=lambda: os.sched_setaffinity(0, one))

    def test_no_home(self):
        environment = {name: value for name, value in os.environ.items() if name not in HOMES}
        self.assert_trained(*SMALL, env=environment)

    def test_a_home_that_cannot_be_written_to(self):
        self.assert_trained(*SMALL, env={**os.environ, "HOME": "/proc"})
        self.assertEqual([path.name for path in self.folder.iterdir()], ["run"])

    def test_no_ipv6(self):
        namespace = privileges.network().require()
        self.assert_trained(*SMALL, "--transport", "tcp", through=[*namespace, "sh", "-c", WITHOUT_IPV6, "sh"])

    def test_a_folder_that_cannot_be_written_to_is_refused(self):
        self.assert_refused(self.train(*SMALL, run_dir="/proc/run"), "cannot make the run folder /proc/run: ")


if __name__ == "__main__":
    unittest.main()
