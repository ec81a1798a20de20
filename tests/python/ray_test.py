#!/usr/bin/python3
"""Goal:   under Ray Train the five calls train on workers that Ray places on two hosts and restarts after a failure.
Method: PyPI's Ray with real actors: the example on two network namespaces with a node of Ray each, and a training by ssgd of
        which one worker is killed, compared with one process.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "process"))
from hosts import ADDRESSES, HostsTest  # noqa: E402
from jobs import descendants, wait_until_gone  # noqa: E402
from network_test import NIC  # noqa: E402
from script_cases import SYNCOPATE, ScriptTest, needs, reference  # noqa: E402

EXAMPLE = HERE.parents[1] / "examples/python/ray_train.py"
LIMIT = 400  # seconds for a command
PORT = 6390


def place(folder):
    """The environment of Ray's processes, which else have less priority than other tests. The paths of its sockets have a small
    maximum length."""
    return {**os.environ, "RAY_TMPDIR": folder, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_DEDUP_LOGS": "0", "RAY_worker_niceness": "0", "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{HERE}"}


def short_folder(test):
    folder = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True)
    test.addCleanup(folder.cleanup)
    return folder.name


@needs("ray")
class OneHost(ScriptTest):
    def test_a_job_that_ray_restarts_trains_as_one_process(self):
        folder = short_folder(self)
        done = subprocess.run([sys.executable, "-B", HERE / "ray_scripts.py", self.folder], env=place(folder), cwd=self.folder,
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(pathlib.Path(self.folder, "killed").exists())
        for parameters in json.loads(done.stdout.splitlines()[-1])["parameters"]:
            self.assert_near(parameters, reference())


@needs("ray")
class TwoHosts(HostsTest):
    def start_node(self, host, environment, *words):
        """Starts a node of Ray with one processor, which ends with the test."""
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1", "--disable-usage-stats",
                   "--object-store-memory=100000000", *words]
        node = subprocess.Popen(host.words(*command), env=environment, cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        said = []
        for line in node.stdout:
            said.append(line)
            if "Ray runtime started" in line:
                break
        drain = threading.Thread(target=node.stdout.read)

        def end():
            processes = descendants(node.pid)  # asked to end, Ray takes a quarter of a minute
            for process in processes:
                os.kill(process, signal.SIGKILL)
            node.wait(LIMIT)
            wait_until_gone(processes)
            drain.join(LIMIT)
            node.stdout.close()

        drain.start()
        self.addCleanup(end)
        self.assertIn("Ray runtime started", "".join(said[-1:]), "".join(said))

    def test_the_example_on_two_hosts_with_a_key(self):
        key = self.folder / "job.key"
        subprocess.run([SYNCOPATE, "key", "new", key], check=True, timeout=LIMIT)
        environment = {**place(short_folder(self)), "GLOO_SOCKET_IFNAME": NIC, "SYNCOPATE_KEY_FILE": str(key),
                       "RAY_ADDRESS": f"{ADDRESSES[0]}:{PORT}"}
        head = {name: value for name, value in environment.items() if name != "RAY_ADDRESS"}
        self.start_node(self.hosts[0], head, "--head", f"--node-ip-address={ADDRESSES[0]}", f"--port={PORT}",
                        "--include-dashboard=false")
        self.start_node(self.hosts[1], head, f"--address={ADDRESSES[0]}:{PORT}", f"--node-ip-address={ADDRESSES[1]}")
        command = [sys.executable, "-B", EXAMPLE, "--samples", "8000", "--storage", self.folder / "results"]
        done = subprocess.run(self.hosts[0].words(*command), env=environment, cwd=self.folder, capture_output=True, text=True,
                              timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # Each node has one processor, which a worker takes: there is one on each host, and without the key they would refuse.
        said = re.search(r"2 workers, test accuracy ([0-9.]+), model in (\S+)", done.stdout)
        self.assertGreater(float(said[1]), 0.5)
        self.assertTrue(pathlib.Path(said[2], "model.pt").exists())


if __name__ == "__main__":
    unittest.main()
