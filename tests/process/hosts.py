"""Two network namespaces as hosts, connected by a virtual cable, and sshd on them."""
import os
import shutil
import subprocess
import time
import unittest

import privileges
from jobs import LIMIT, JobTest
from network_test import NIC, Namespace

ADDRESSES = ["10.85.0.1", "10.85.0.2"]


class HostsTest(JobTest):
    """A test on two hosts with a cable between them."""

    def setUp(self):
        super().setUp()
        privileges.linked_networks().require()
        self.hosts = [Namespace(), Namespace()]
        for host in self.hosts:
            self.addCleanup(host.end)
        self.hosts[0].do("ip", "link", "add", NIC, "type", "veth", "peer", "name", NIC, "netns", self.hosts[1].process.pid)
        for address, host in zip(ADDRESSES, self.hosts, strict=True):
            host.do("ip", "address", "add", f"{address}/24", "dev", NIC)
            host.do("ip", "link", "set", NIC, "up")
            host.do("ip", "link", "set", "lo", "up")

    def connect_by_a_fast_cable(self):
        """Connects the hosts by a second cable, and slows the first one down to 50 Mbit/s."""
        self.hosts[0].do("ip", "link", "add", "fast", "type", "veth", "peer", "name", "fast", "netns", self.hosts[1].process.pid)
        for number, host in enumerate(self.hosts):
            host.do("ip", "address", "add", f"10.86.0.{number + 1}/24", "dev", "fast")
            host.do("ip", "link", "set", "fast", "up")
            host.do("ip", "link", "add", "bridge", "type", "bridge")  # as containers have it: the same address on each host
            host.do("ip", "address", "add", "172.17.0.1/16", "dev", "bridge")
            host.do("ip", "link", "set", "bridge", "up")
            host.do("tc", "qdisc", "add", "dev", NIC, "root", "tbf", "rate", "50mbit", "burst", "16kbit", "latency", "2000ms")


class SshHostsTest(HostsTest):
    """The same with sshd on each host, which lets this user in by a key of the test; `ssh` is the command for it."""

    def setUp(self):
        super().setUp()
        if os.getuid() != 0 or shutil.which("sshd", path="/usr/sbin") is None:
            raise unittest.SkipTest("no sshd: it needs root, and the package openssh-server")
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True, timeout=LIMIT)
        known = (self.folder / "host.pub").read_text()
        (self.folder / "known_hosts").write_text("".join(f"{address} {known}" for address in ADDRESSES))
        (self.folder / "sshd_config").write_text(
            f"HostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/user.pub\nPidFile none\n"
            "StrictModes no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n")
        (self.folder / "ssh_config").write_text(
            f"IdentityFile {self.folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {self.folder}/known_hosts\nBatchMode yes\n")
        self.ssh = ["ssh", "-F", self.folder / "ssh_config"]
        os.makedirs("/run/sshd", exist_ok=True)  # sshd refuses to start without it
        for address, host in zip(ADDRESSES, self.hosts, strict=True):
            self.start_sshd(host, address)

    def start_sshd(self, host, address):
        log = open(self.folder / f"sshd-{address}.log", "wb")  # noqa: SIM115 - closed by the cleanup
        self.addCleanup(log.close)
        daemon = subprocess.Popen(host.words("/usr/sbin/sshd", "-D", "-e", "-f", self.folder / "sshd_config",
                                             "-o", f"ListenAddress={address}"), stderr=log)
        self.addCleanup(daemon.wait, LIMIT)
        self.addCleanup(daemon.terminate)
        deadline = time.monotonic() + LIMIT
        while "Server listening" not in (self.folder / f"sshd-{address}.log").read_text():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((self.folder / f"sshd-{address}.log").read_text())
            time.sleep(0.05)  # polls: sshd has no event for this
