#!/usr/bin/python3
"""Goal:   if the user trusts the network, ranks on two hosts exchange values over backend "syncopate" and train by the five
        calls; each rank finds its own address in the network, or says what is missing. On one host only the user of a job
        can read its key.
Method: two network namespaces with different host names, connected by a virtual cable; scripts without a launcher.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from forked_scripts import ForkServer

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "process"))
import privileges  # noqa: E402
from network_test import Namespace  # noqa: E402

from torch import distributed  # noqa: E402
from syncopate_torch import ConfigError, TimedOut  # noqa: E402
from syncopate_torch.core import library  # noqa: E402
from syncopate_torch.distributed import rendezvous  # noqa: E402

LIMIT = 200  # seconds for a rank
RECORDER = """
import socket, sys
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # of every protocol
packets.bind(("nic", 0))
print("ready", flush=True)
with open(sys.argv[1], "wb", buffering=0) as file:
    while True:
        file.write(packets.recv(65536))
"""


class HostsTest(unittest.TestCase):
    """Two hosts with a cable between them."""
    server = ForkServer()

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

    def start(self, trusted, script, *arguments, names=("host-0", "host-1"), master="10.84.0.1", keys=(None, None), each=1,
              **more):
        """Runs a script on both hosts, in `each` ranks on each; returns the outputs of the ranks and their exit statuses.
        more: further variables of the environment."""
        running = []
        for rank in range(2 * each):
            number = rank // each
            host = self.hosts[number]
            place = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(2 * each), "MASTER_ADDR": master, "MASTER_PORT": "29500",
                     "LOCAL_RANK": str(rank % each), "LOCAL_WORLD_SIZE": str(each), "SYNCOPATE_UNENCRYPTED": trusted,
                     "GLOO_SOCKET_IFNAME": "nic", "PYTHONWARNINGS": "ignore", **more}
            if master is None:
                del place["MASTER_ADDR"]
            if keys[number] is not None:
                place["SYNCOPATE_KEY_FILE"] = str(keys[number])
            named = ["unshare", "--uts", "sh", "-c", f'hostname {names[number]} && exec "$@"', "sh"]
            command = host.words(*named, *self.server.python, HERE / script, *arguments)
            running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=place,
                                            cwd=self.folder))
        outputs = [rank.communicate(timeout=LIMIT)[0] for rank in running]
        return outputs, [rank.returncode for rank in running]

    def key(self, name, text="a key that each host has"):
        path = pathlib.Path(self.folder) / name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(text)
        return path


class Hosts(HostsTest):
    server = ForkServer(real_first=True)

    def test_two_hosts(self):
        for names in (("host-0", "host-1"), ("debian", "debian")):
            with self.subTest(names=names):
                outputs, statuses = self.start("1", "backend_scripts.py", "more_than_gloo", names=names)
                self.assertEqual(statuses, [0, 0], outputs)
                for output in outputs:
                    self.assertIn('"mean": [0.5, 0.5, 0.5]', output)

    def test_two_hosts_that_the_script_names(self):
        outputs, statuses = self.start("1", "backend_scripts.py", "by_address", "tcp://10.84.0.1:29501", master=None)
        self.assertEqual(statuses, [0, 0], outputs)
        for output in outputs:
            self.assertIn('"sum": 2.0', output)

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
        key = self.key("job.key")
        for coordinator in ({}, {"SYNCOPATE_COORDINATOR": "10.84.0.1:9091"}):
            with self.subTest(coordinator):
                outputs, statuses = self.start("0", "horovod_scripts.py", "places", keys=[key, key], **coordinator)
                self.assertEqual(statuses, [0, 0], outputs)
                for rank, output in enumerate(outputs):
                    facts = json.loads(output.splitlines()[-1])
                    self.assertEqual((facts["local"], facts["cross"], facts["homogeneous"]), ([0, 1], [rank, 2], True))

    def test_two_hosts_without_trust(self):
        outputs, statuses = self.start("0", "backend_scripts.py", "more_than_gloo")
        self.assertEqual(statuses, [1, 1], outputs)
        for output in outputs:
            self.assertIn("the ranks are on several hosts (host-0, host-1)", output)
            self.assertIn("set SYNCOPATE_KEY_FILE=FILE; or set SYNCOPATE_UNENCRYPTED=1", output)

    def test_five_calls_on_two_hosts_encrypted_by_a_key(self):
        outputs, statuses = self.start("0", "scripts.py", "learns", "esync", keys=[self.key("one"), self.key("other")])
        self.assertEqual(statuses, [0, 0], outputs)
        for output in outputs:
            self.assertGreater(json.loads(output.splitlines()[-1])["accuracy"], 0.6)

    def test_a_key_on_one_host_alone(self):
        outputs, statuses = self.start("1", "scripts.py", "learns", "esync", keys=[self.key("one"), None])
        self.assertEqual(statuses, [1, 1], outputs)
        for output in outputs:
            self.assertIn("SYNCOPATE_KEY_FILE is set on some ranks of the job: set it on all, or on none", output)


class PrivateNetwork(HostsTest):
    def encrypt(self):
        """Connects the hosts by WireGuard, as 10.86.0.1 and 10.86.0.2."""
        privileges.tunnels().require()
        keys = [subprocess.run(["wg", "genkey"], capture_output=True, check=True, timeout=LIMIT).stdout for _ in self.hosts]
        public = [subprocess.run(["wg", "pubkey"], input=key, capture_output=True, check=True, timeout=LIMIT).stdout.decode().strip()
                  for key in keys]
        for number, host in enumerate(self.hosts):
            name, other = f"wg{os.getpid()}-{number}", 1 - number
            path = pathlib.Path(self.folder) / f"wireguard-{number}"
            path.write_bytes(keys[number])
            host.do("wireguard-go", name)  # returns when the interface is there, and ends with it
            self.addCleanup(host.do, "ip", "link", "delete", name)
            host.do("wg", "set", name, "private-key", path, "listen-port", "51820", "peer", public[other],
                    "allowed-ips", f"10.86.0.{other + 1}/32", "endpoint", f"10.84.0.{other + 1}:51820")
            host.do("ip", "address", "add", f"10.86.0.{number + 1}/24", "dev", name)
            host.do("ip", "link", "set", name, "up")

    def recorded(self, master):
        """Runs a job without a key; returns the bytes that passed through the cable."""
        path = pathlib.Path(self.folder) / "recorded"
        with subprocess.Popen(self.hosts[1].words(sys.executable, "-c", RECORDER, path), stdout=subprocess.PIPE) as recorder:
            self.assertEqual(recorder.stdout.readline(), b"ready\n")
            outputs, statuses = self.start("1", "hosts_scripts.py", "sends_known_values", master=master)
            recorder.kill()
        self.assertEqual(statuses, [0, 0], outputs)
        self.assertIn("between the hosts (host-0, host-1) travels in clear", outputs[0])
        self.assertNotIn("travels in clear", outputs[1])
        return path.read_bytes()

    def test_wireguard_hides_what_a_job_without_a_key_sends(self):
        values = struct.pack("<f", 1.2345678) * 8
        self.assertIn(values, self.recorded("10.84.0.1"))
        self.encrypt()
        hidden = self.recorded("10.86.0.1")
        self.assertGreater(len(hidden), 40000, "the bytes of the values")
        self.assertNotIn(values, hidden)


class Addresses(unittest.TestCase):
    """The address of a rank in a job on several hosts, given their names, boots and networks."""
    several = ["host-0 1 net:[1]", "host-1 2 net:[1]"]

    def address(self, master, store=None, hosts=None):
        with mock.patch.dict(os.environ, {"MASTER_ADDR": master, "SYNCOPATE_UNENCRYPTED": "1"}):
            return rendezvous._address_here(hosts or self.several, store)

    def store(self, port=0):
        return distributed.TCPStore("localhost", port, 1, True, wait_for_workers=False)

    def refusal(self, *arguments):
        with self.assertRaises(ConfigError) as caught:
            self.address(*arguments)
        return str(caught.exception)

    def test_without_master_addr_the_host_of_the_store_shows_the_network(self):
        """In this test the store is on this host, so its address is refused as a loopback address."""
        nested = distributed.PrefixStore("one", distributed.PrefixStore("two", self.store()))
        self.assertIn("'localhost' is a loopback address on this host", self.refusal("", nested))

    def test_a_store_without_a_host(self):
        with tempfile.TemporaryDirectory() as folder:
            message = self.refusal("", distributed.FileStore(os.path.join(folder, "store"), 1))
        self.assertEqual(message, "the ranks are on several hosts (host-0, host-1), and the store of torch.distributed has "
                                  "no address: set MASTER_ADDR on all ranks to that of one of the hosts")

    def test_an_address_that_other_hosts_do_not_reach(self):
        self.assertRegex(self.refusal("127.0.1.1"), r"'127.0.1.1' is a loopback address .* ranks on other hosts "
                         r"\(host-0, host-1\) cannot reach it: set MASTER_ADDR .* /etc/hosts")

    def test_several_names_in_one_network(self):
        one_network = ["host-0 1 net:[1]", "host-1 1 net:[1]"]
        self.assertEqual(self.address("127.0.0.1", hosts=one_network), "127.0.0.1:0")

    def test_addresses_of_ipv6(self):
        with mock.patch.object(rendezvous, "_address_towards") as address_towards:
            address_towards.return_value = "fd00::1"
            self.assertEqual(self.address("node1"), "[fd00::1]:0")
            address_towards.return_value = "::1"
            self.assertIn("'node1' is a loopback address on this host", self.refusal("node1"))

    def test_a_host_that_does_not_exist(self):
        self.assertIn("this host finds no way to 'nowhere.invalid': set MASTER_ADDR", self.refusal("nowhere.invalid"))


class Coordinators(unittest.TestCase):
    """Joining through a store that still names the coordinator of a failed attempt."""

    def setUp(self):
        self.store, self.entry, self.tried = distributed.HashStore(), mock.Mock(), []
        self.store.set("syncopate/coordinator", "10.0.0.1:1 old")

    def join(self, named_meanwhile):
        def refused_once():
            self.tried.append((self.entry.coordinator, self.entry.key))
            self.store.set("syncopate/coordinator", named_meanwhile)
            if self.entry.key == b"old":
                raise TimedOut("nobody answers at 10.0.0.1:1")
            return "a job"

        return rendezvous._joined(self.store, self.entry, refused_once)

    def test_the_one_of_this_attempt(self):
        self.assertEqual(self.join("10.0.0.1:2 new"), "a job")
        self.assertEqual(self.tried, [(b"10.0.0.1:1", b"old"), (b"10.0.0.1:2", b"new")])

    def test_no_other_one(self):
        with self.assertRaisesRegex(TimedOut, "nobody answers at 10.0.0.1:1"):
            self.join("10.0.0.1:1 old")
        self.assertEqual(len(self.tried), 1)


class Keys(unittest.TestCase):
    """The key of a job on one host. Other users can read torch's store, so the store must not contain the key."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for variable in (mock.patch.dict(os.environ, {"TMPDIR": folder.name}), mock.patch.object(tempfile, "tempdir", None)):
            variable.start()
            self.addCleanup(variable.stop)
        self.folder = pathlib.Path(folder.name, f"syncopate-{os.getuid()}")

    def test_the_store_names_a_file_that_the_user_alone_may_read(self):
        shown = {}
        store = mock.Mock(get=lambda name: shown[name].encode(), set=shown.__setitem__)
        modes, joined = [], rendezvous.Job

        def join(*arguments):
            modes.extend(path.stat().st_mode & 0o777 for path in self.folder.iterdir())
            return joined(*arguments)

        with mock.patch.object(rendezvous, "Job", join):
            job = rendezvous._join_by_store(store, 0, 1, lambda host: library.call("host_close", host))
        job.leave()
        self.assertRegex(shown["syncopate/coordinator"], r"\A[0-9a-f]{32}\Z")
        self.assertEqual((modes, self.folder.stat().st_mode & 0o777), ([0o600], 0o700))
        self.assertEqual(list(self.folder.iterdir()), [], "it is gone once all have joined")

    def test_what_another_process_writes_into_the_store_is_refused(self):
        rendezvous.leave_key_file("127.0.0.1:1 key")
        for name in ("127.0.0.1:1 own-key", "../elsewhere", "0" * 32):
            with self.assertRaisesRegex(ConfigError, "no rank of this user has left"):
                rendezvous.read_key_file(name)

    def test_a_folder_that_others_may_read_is_refused(self):
        self.folder.mkdir()
        self.folder.chmod(0o755)
        with self.assertRaisesRegex(ConfigError, "must be a folder that only this user may read"):
            rendezvous.leave_key_file("text")


if __name__ == "__main__":
    unittest.main()
