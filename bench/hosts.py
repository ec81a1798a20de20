"""Makes two hosts on this machine: network namespaces with a link between them. Needs root."""
import contextlib
import shutil
import subprocess

NIC = "nic"


class Host:
    """A network namespace. It exists as long as a process in it, which waits for the end of its input."""

    def __init__(self, number):
        self.address = f"10.84.0.{number}"
        self.process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if self.process.stdout.readline() != b"ready\n":
            raise SystemExit("cannot make a network namespace; run this suite as root")

    def words(self, *command):
        return ["nsenter", "--net", f"--target={self.process.pid}", *map(str, command)]

    def do(self, *command):
        subprocess.run(self.words(*command), check=True)

    def end(self):
        self.process.communicate()  # ends the input of the process, and so the process


@contextlib.contextmanager
def two_hosts(rate, burst):
    """Makes two hosts and a link between them; rate (each way) and burst are written as for `tc tbf`."""
    missing = [program for program in ("ip", "tc", "unshare", "nsenter") if not shutil.which(program)]
    if missing:
        raise SystemExit(f"{', '.join(missing)} is missing; script/bootstrap --bench installs the packages")
    hosts = [Host(1), Host(2)]
    try:
        hosts[0].do("ip", "link", "add", NIC, "type", "veth", "peer", "name", NIC, "netns", hosts[1].process.pid)
        for host in hosts:
            host.do("tc", "qdisc", "add", "dev", NIC, "root", "tbf", "rate", rate, "burst", burst, "latency", "100ms")
            host.do("ip", "address", "add", f"{host.address}/24", "dev", NIC)
            host.do("ip", "link", "set", NIC, "up")
            host.do("ip", "link", "set", "lo", "up")
        yield hosts
    finally:
        for host in hosts:
            host.end()
