#!/usr/bin/python3
"""Goal:   ranks on two hosts exchange values over backend "syncopate", and train by five calls, where the user trusts the
        network.
Method: two network namespaces with names of their own, linked by a cable; scripts that are started by hand.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "process"))
import privileges  # noqa: E402
from network_test import Namespace  # noqa: E402

LIMIT = 200  # seconds, of all ranks


class Hosts(unittest.TestCase):
    def setUp(self):
        privileges.linked_networks().require()
        self.hosts = [Namespace(), Namespace()]
        for host in self.hosts:
            self.addCleanup(host.end)
        self.hosts[0].do("ip", "link", "add", "nic", "type", "veth", "peer", "name", "nic", "netns", self.hosts[1].process.pid)
        for number, host in enumerate(self.hosts):
            host.do("ip", "address", "add", f"10.84.0.{number + 1}/24", "dev", "nic")
            host.do("ip", "link", "set", "nic", "up")
            host.do("ip", "link", "set", "lo", "up")

        folder = tempfile.TemporaryDirectory(prefix="syncopate-hosts-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, trusted, script, *arguments, names=("host-0", "host-1")):
        """What the two ranks print, and their exit statuses."""
        running = []
        for rank, host in enumerate(self.hosts):
            place = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "10.84.0.1", "MASTER_PORT": "29500",
                     "LOCAL_WORLD_SIZE": "1", "SYNCOPATE_UNENCRYPTED": trusted, "PYTHONWARNINGS": "ignore"}
            named = ["unshare", "--uts", "sh", "-c", f'hostname {names[rank]} && exec "$@"', "sh"]
            command = host.words(*named, sys.executable, "-B", HERE / script, *arguments)
            running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=place,
                                            cwd=self.folder))
        outputs = [each.communicate(timeout=LIMIT)[0] for each in running]
        return outputs, [each.returncode for each in running]

    def test_two_hosts(self):
        for names in (("host-0", "host-1"), ("debian", "debian")):
            with self.subTest(names=names):
                outputs, statuses = self.start("1", "backend_scripts.py", "more_than_gloo", names=names)
                self.assertEqual(statuses, [0, 0], outputs)
                for output in outputs:
                    self.assertIn('"mean": [0.5, 0.5, 0.5]', output)

    def test_five_calls_on_two_hosts(self):
        for scheme, accuracy in (("esync", 0.6), ("asgd", 0.6)):
            with self.subTest(scheme):
                outputs, statuses = self.start("1", "scripts.py", "learns", scheme)
                self.assertEqual(statuses, [0, 0], outputs)
                for output in outputs:
                    facts = json.loads(output.splitlines()[-1])
                    self.assertGreater(facts["accuracy"], accuracy)
                    self.assertGreater(facts["rounds"], 0)

    def test_horovods_places_on_two_hosts(self):
        outputs, statuses = self.start("1", "horovod_scripts.py", "places")
        self.assertEqual(statuses, [0, 0], outputs)
        for rank, output in enumerate(outputs):
            facts = json.loads(output.splitlines()[-1])
            self.assertEqual((facts["local"], facts["cross"], facts["homogeneous"]), ([0, 1], [rank, 2], True))

    def test_two_hosts_without_trust(self):
        outputs, statuses = self.start("0", "backend_scripts.py", "more_than_gloo")
        self.assertEqual(statuses, [1, 1], outputs)
        for output in outputs:
            self.assertIn("the ranks are on several hosts (host-0, host-1)", output)
            self.assertIn("set SYNCOPATE_UNENCRYPTED=1", output)


if __name__ == "__main__":
    unittest.main()
