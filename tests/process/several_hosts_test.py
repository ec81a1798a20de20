"""Goal: roles that are started by hand on two hosts train one model, encrypted by the job's key; without it nobody takes part.
Method: two network namespaces, connected by a virtual cable."""
import pathlib
import subprocess
import unittest

from hosts import ADDRESSES, HostsTest
from jobs import LIMIT, SMALL, SYNCOPATE
from network_test import NIC


class SeveralHostsTest(HostsTest):
    def coordinator(self, *options, **more):
        """On the first host; returns the job and its address."""
        job = self.coordinate(*SMALL, *options, address=f"{ADDRESSES[0]}:0", through=self.hosts[0].words(), **more)
        return job, job.address()

    def joined(self, address, host, role="worker", *options):
        return self.join(role, address, *options, through=self.hosts[host].words(), run_dir=f"host-{host}")

    def assert_trained(self, job, *members):
        self.assert_all_end_well(job, *members)
        self.assertGreater(self.summary()["accuracy"], 0.2)

    def test_workers_that_average_and_a_server_on_the_other_host(self):
        for number, options in enumerate((["--scheme", "esync"], ["--scheme", "asgd", "--servers", "1"])):
            with self.subTest(options):
                job, address = self.coordinator(*options, "--max-steps", "20", run_dir=f"run{number}")
                members = [self.joined(address, host) for host in (0, 1)]
                if "--servers" in options:
                    members.append(self.joined(address, 1, "server"))
                self.assert_all_end_well(job, *members)
                summary = self.summary(f"run{number}")
                self.assertGreater(summary["accuracy"], 0.2)
                self.assertEqual(len(summary["workers"]), 2)

    def test_by_name_and_by_an_interface(self):
        job, address = self.coordinator("--max-steps", "10")
        port = address.rpartition(":")[2]
        named = self.hosts[1].words("unshare", "--mount", "sh", "-c",
                                    f'echo {ADDRESSES[0]} first >names; mount --bind names /etc/hosts; exec "$@"', "sh")
        other = self.join("worker", f"first:{port}", "--interface", NIC, through=named, cwd=self.folder, run_dir="other")
        self.assert_trained(job, self.joined(address, 0), other)

    def test_gradients_take_the_fastest_link_unless_an_interface_is_named(self):
        self.connect_by_a_fast_cable()  # the address of the coordinator is that of the slow one
        for number, (options, used, spared) in enumerate((([], "fast", NIC), (["--interface", NIC], NIC, "fast"))):
            with self.subTest(options):
                before = {nic: [host.bytes_sent(nic) for host in self.hosts] for nic in (NIC, "fast")}
                job, address = self.coordinator("--scheme", "ssgd", "--max-steps", "20", run_dir=f"run{number}")
                self.assert_all_end_well(job, *[self.joined(address, host, "worker", *options) for host in (0, 1)])
                sent = {nic: [host.bytes_sent(nic) - since for host, since in zip(self.hosts, before[nic], strict=True)]
                        for nic in before}
                for host in (0, 1):
                    self.assertGreater(sent[used][host], 5 * sent[spared][host], sent)

    def test_a_member_listens_at_a_port_that_a_firewall_lets_pass(self):
        job, address = self.coordinator("--max-steps", "10")
        ports = ["--ports", "9100-9100"]
        first = self.joined(address, 1, "worker", *ports)
        first.wait_for_line("joins the job at")
        sockets = pathlib.Path(f"/proc/{self.hosts[1].process.pid}/net/tcp").read_text(encoding="ascii")
        self.assertRegex(sockets, r"\b0200550A:238C 00000000:0000 0A\b", "10.85.0.2:9100 listens")
        status, errors = self.joined(address, 1, "worker", *ports).finish()
        self.assertEqual(status, 2)
        self.assertIn("expected a free port from 9100 to 9100 at 10.85.0.2, found all in use", errors)
        self.assert_trained(job, first, self.joined(address, 0))

    def test_another_key_and_none(self):
        job, address = self.coordinator("--max-steps", "10")
        wrong = self.key_file("wrong.key", "another key than that of the job")
        status, errors = self.joined(address, 1, "worker", "--secret", wrong).finish()
        self.assertEqual(status, 2)
        self.assertIn("the job's key is not that of the other side", errors)
        done = subprocess.run(self.hosts[1].words(SYNCOPATE, "worker", "--join", address),
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("beyond this host, streams must be encrypted by a key that each host has", done.stderr)
        self.assert_trained(job, self.joined(address, 0), self.joined(address, 1))


if __name__ == "__main__":
    unittest.main()
