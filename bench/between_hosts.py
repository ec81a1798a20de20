"""The suite of links: sums of two ranks on two hosts, over links of given rates."""
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from hosts import NIC, two_hosts
from measuring import Contestant, interleave, table, with_spread
from peers import TCP_ONLY, Peers, by_size, listed
from programs import HERE

SIZES = (1_000, 100_000, 1_000_000, 44_695_848)
LINKS = {"1 Gbit/s": ("1gbit", "1mb"), "10 Gbit/s": ("10gbit", "4mb"), "no limit": ("1000gbit", "64mb")}
BITS = {"1 Gbit/s": 1e9, "10 Gbit/s": 1e10}
ENCRYPTED, PLAIN = "Syncopate, encrypted", "Syncopate, not encrypted"


def between_hosts(programs, options):
    """Allreduce of float32 between two hosts at 1 and 10 Gbit/s and without a limit, encrypted and not."""
    yield (
        "Two ranks in network namespaces joined by a virtual cable, limited by `tc tbf` each way; one rank a host. The limit of the\n"
        "link: each rank sends and receives the whole vector once.\n"
    )
    for link, (rate, burst) in LINKS.items():
        with two_hosts(rate, burst) as hosts, tempfile.TemporaryDirectory() as folder:
            sides = Sides(programs, options, hosts, pathlib.Path(folder))
            results = interleave(
                [Contestant(name, lambda side=side: figures(side())) for name, side in sides.by_name().items()], options.rounds)
        yield f"## {link}\n"
        yield times(results, BITS.get(link)) + "\n"
        yield f"## {link}: CPU time of a round, both ranks together\n"
        yield cpu_times(results) + "\n"


class Sides:
    """Each side measures sums of all sizes once, and returns its results by size."""

    def __init__(self, programs, options, hosts, folder):
        self.programs, self.options, self.hosts, self.folder = programs, options, hosts, folder
        self.peers = Peers(options.build, options.python, programs.environment)
        self.seconds = options.seconds / len(SIZES)
        key = folder / "job.key"
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write("the key of a measurement")

    def by_name(self):
        return {ENCRYPTED: lambda: self.ours("tcp-encrypted"), PLAIN: lambda: self.ours("tcp"), "Open MPI": self.open_mpi,
                "torch.distributed, Gloo": self.gloo}

    def ours(self, transport):
        return self.ranks([self.programs.bin / "syncopate", "bench", "allreduce", "--transport", transport, "--ranks", 2,
                           "--bytes", ",".join(f"{size}B" for size in SIZES), "--seconds", self.seconds, "--json"])

    def gloo(self):
        return self.ranks([self.options.python, HERE / "peer_allreduce.py", "--bytes", listed(SIZES), "--seconds", self.seconds])

    def ranks(self, command):
        """Runs a program on each host, with the variables of torch.distributed; returns the results of rank 0."""
        ranks = [
            subprocess.Popen(host.words(*command), stdout=subprocess.PIPE, text=True, env={
                **self.programs.environment, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                "MASTER_ADDR": self.hosts[0].address, "MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": NIC,
                "SYNCOPATE_COORDINATOR": f"{self.hosts[0].address}:9091", "SYNCOPATE_KEY_FILE": str(self.folder / "job.key"),
            }) for rank, host in enumerate(self.hosts)
        ]
        outputs = [rank.communicate()[0] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            raise SystemExit(f"{command[0]} has failed")
        return by_size(json.loads(outputs[0].splitlines()[-1])["results"])

    def open_mpi(self):
        """mpirun's daemon on the other host starts by a command in place of ssh. Both would bind their rank to the first core."""
        start = self.folder / "start"
        start.write_text(f'#!/bin/sh\nshift\nexec nsenter --net --target={self.hosts[1].process.pid} sh -c "$*"\n')
        start.chmod(0o755)
        interfaces = ["--mca", "btl_tcp_if_include", NIC, "--mca", "oob_tcp_if_include", NIC, "--mca", "plm_rsh_agent", start]
        places = ["--host", ",".join(host.address for host in self.hosts)]
        program = self.peers.compiled("peer_mpi.cpp", "mpicxx.openmpi")
        command = ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", *TCP_ONLY, *interfaces, *places, "-n", 2, program, self.seconds,
                   listed(SIZES)]
        return by_size(self.peers.run(self.hosts[0].words(*command), self.options.seconds))


def figures(results):
    return {**{f"{size}": result["median_seconds"] for size, result in results.items()},
            **{f"cpu {size}": result["cpu_seconds"] for size, result in results.items()}}


def named(size):
    return {1_000: "1 KB", 100_000: "100 KB", 1_000_000: "1 MB", 44_695_848: "44.7 MB"}[size]


def time_of(values):
    scale, unit = (1e3, "ms") if statistics.median(values) >= 1e-3 else (1e6, "µs")
    return f"{with_spread([scale * value for value in values])} {unit}"


def times(results, bits):
    """A table of the medians; the last columns are the fastest peer's time over ours, and the share of the link's limit."""
    rows = []
    for size in SIZES:
        medians = {name: statistics.median(found[f"{size}"]) for name, found in results.items()}
        peer = min(median for name, median in medians.items() if name not in (ENCRYPTED, PLAIN))
        row = [named(size), *(time_of(found[f"{size}"]) for found in results.values()), f"{peer / medians[ENCRYPTED]:.2f}",
               f"{peer / medians[PLAIN]:.2f}"]
        if bits:
            row += [f"{8 * size / bits / medians[side]:.2f}" for side in (ENCRYPTED, PLAIN)]
        rows.append(row)
    ours = ["encrypted", "not encrypted"]
    header = ["", *results, *(f"fastest peer / ours, {each}" for each in ours)]
    return table(header + ([f"limit of the link / ours, {each}" for each in ours] if bits else []), rows)


def cpu_times(results):
    return table(["", *results], [[named(size), *(time_of(found[f"cpu {size}"]) for found in results.values())]
                                  for size in SIZES])
