"""Goal: between hosts, a two-level allreduce sends less than a flat ring, and every algorithm gives the right result.
Method: three hosts of two ranks each. A host is a network namespace with a network card of 1 Gbit/s, connected to a switch
in another namespace. Each namespace ends with a child process of the test, so that nothing is left behind. The test reads
the bytes that the network cards have sent in /proc."""
import collections
import json
import os
import pathlib
import subprocess
import unittest

import privileges
from jobs import LIMIT

RANK = os.environ.get("SYNCOPATE_NETWORK_RANK", "syncopate_network_rank")
HOSTS, RANKS_OF_HOST = 3, 2
RANKS = HOSTS * RANKS_OF_HOST
SHAPED = ["root", "tbf", "rate", "1gbit", "burst", "64kb", "latency", "100ms"]
COORDINATOR = "10.83.0.1:9091"
NIC = "nic"


class Namespace:
    """A network namespace, which exists as long as a child process that waits for the end of its input."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        if self.process.stdout.readline() != b"ready\n":
            raise AssertionError("cannot make a network namespace")

    def words(self, *command):
        return ["nsenter", "--net", f"--target={self.process.pid}", *map(str, command)]

    def do(self, *command):
        subprocess.run(self.words(*command), check=True, timeout=LIMIT)

    def bytes_sent(self, nic):
        for line in pathlib.Path(f"/proc/{self.process.pid}/net/dev").read_text(encoding="ascii").splitlines():
            name, _, counted = line.partition(":")
            if name.strip() == nic:
                return int(counted.split()[8])
        raise AssertionError(f"there is no network card {nic}")

    def end(self):
        self.process.communicate(timeout=LIMIT)  # ends the child's input


class Network(unittest.TestCase):
    def setUp(self):
        privileges.linked_networks().require()
        switch = self.namespace()
        switch.do("ip", "link", "add", "switch", "type", "bridge")
        switch.do("ip", "link", "set", "switch", "up")
        self.hosts = [self.host(switch, number) for number in range(HOSTS)]

    def namespace(self):
        namespace = Namespace()
        self.addCleanup(namespace.end)
        return namespace

    def host(self, switch, number):
        host = self.namespace()
        port = f"port{number}"
        switch.do("ip", "link", "add", port, "type", "veth", "peer", "name", NIC, "netns", host.process.pid)
        switch.do("ip", "link", "set", port, "master", "switch", "up")
        switch.do("tc", "qdisc", "add", "dev", port, *SHAPED)
        host.do("tc", "qdisc", "add", "dev", NIC, *SHAPED)
        host.do("ip", "address", "add", f"10.83.0.{number + 1}/24", "dev", NIC)
        host.do("ip", "link", "set", NIC, "up")
        host.do("ip", "link", "set", "lo", "up")
        return host

    def sum(self, hosts_of_ranks, size, rounds, *algorithms, transport="shm"):
        """Runs allreduces. Returns the seconds of each round by algorithm, and the bytes that each host sent in all."""
        before = [host.bytes_sent(NIC) for host in self.hosts]
        ranks = []
        for rank, number in enumerate(hosts_of_ranks):
            own = f"10.83.0.{number + 1}:0"
            words = [RANK, transport, rank, len(hosts_of_ranks), COORDINATOR, own, size, rounds, *algorithms]
            process = subprocess.Popen(
                self.hosts[number].words(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            ranks.append(process)
        outputs = [process.communicate(timeout=LIMIT) for process in ranks]
        for process, (_, errors) in zip(ranks, outputs, strict=True):
            self.assertEqual((process.returncode, errors), (0, ""))
        sent = [host.bytes_sent(NIC) - counted for host, counted in zip(self.hosts, before, strict=True)]
        return json.loads(outputs[0][0]), sent

    def bytes_of_a_sum(self, hosts_of_ranks, size, algorithm):
        """Returns the bytes that each host sends for one allreduce, without those that measure the links."""
        (_, one), (_, three) = (self.sum(hosts_of_ranks, size, rounds, algorithm) for rounds in (1, 3))
        return [(more - less) / 2 for more, less in zip(three, one, strict=True)]

    def test_two_levels_send_less_than_a_flat_ring(self):
        size = 16 * 2**20
        in_order = [rank // RANKS_OF_HOST for rank in range(RANKS)]
        by_turns = [rank % HOSTS for rank in range(RANKS)]
        # A ring sends 2 (P - 1) / P of the vector over each link, and 1 or 2 of its links leave each host. In the two-level
        # algorithm the hosts form a ring.
        vector_ring, vector_hosts = 2 * (RANKS - 1) / RANKS, 2 * (HOSTS - 1) / HOSTS
        for placement, links in ((in_order, 1), (by_turns, 2)):
            with self.subTest(placement=placement):
                expected = {"ring": links * vector_ring, "two-level": vector_hosts}
                for algorithm, vectors in expected.items():
                    for of_host in self.bytes_of_a_sum(placement, size // 4, algorithm):
                        # The runs of one and of three rounds also differ in small messages.
                        self.assertGreater(of_host, 0.95 * vectors * size / 4, algorithm)
                        self.assertLess(of_host, 1.2 * vectors * size / 4, algorithm)  # with headers and acknowledgements

    def test_every_sum_is_right_between_hosts(self):
        for transport in ("shm", "tcp"):
            for size in (4, 100_000):
                algorithms = ("auto", "ring", "binary-blocks", "tree", "two-level")
                seconds, _ = self.sum([0, 0, 1, 1, 2], size, 2, *algorithms, transport=transport)
                self.assertEqual(collections.Counter(map(len, seconds.values())), {2: len(algorithms)})


if __name__ == "__main__":
    unittest.main()
