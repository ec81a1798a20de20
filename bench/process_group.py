"""The suite of process groups: scripts on two hosts whose rounds a group of torch carries, beside the job's own streams."""
import json
import os
import pathlib
import subprocess
import tempfile

from hosts import NIC, two_hosts
from measuring import Contestant, comparison, interleave, table, with_spread
from programs import HERE

WAYS = {
    "DistributedDataParallel, Gloo": ("ddp",),
    "five calls, ssgd, overlap on": ("ssgd", "auto", "overlap=on"),
    "five calls, ssgd, overlap on, over Gloo": ("ssgd", "torch", "overlap=on"),
    "five calls, esync": ("esync", "auto"),
    "five calls, esync, over Gloo": ("esync", "torch"),
}


def process_group(programs, options):
    """Scripts between two hosts at 1 Gbit/s: DistributedDataParallel, and five calls over TLS and over a group of Gloo."""
    yield (
        "Two workers of one thread in network namespaces joined by a virtual cable of 1 Gbit/s each way (`tc tbf`), ResNet-18, 32 random\n"
        "images each a step. The job's own streams are encrypted, Gloo's are not.\n"
    )
    with two_hosts("1gbit", "1mb") as hosts, tempfile.TemporaryDirectory() as folder:
        runs = Runs(programs, options, hosts, pathlib.Path(folder))
        results = interleave([Contestant(name, lambda way=way: runs.measure(way)) for name, way in WAYS.items()], options.rounds)
    yield comparison(results, "samples/s", next(iter(WAYS))) + "\n"
    yield table(["share of the time in which a device computes", "least", "most"],
                [[name, *(with_spread(found[f"computing, {which}, %"]) + " %" for which in ("least", "most"))]
                 for name, found in results.items() if "computing, least, %" in found])


class Runs:
    def __init__(self, programs, options, hosts, folder):
        self.programs, self.seconds, self.hosts, self.folder, self.number = programs, options.seconds, hosts, folder, 0
        self.key = folder / "job.key"
        with open(os.open(self.key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write("the key of a measurement")

    def measure(self, way):
        self.number += 1
        run = self.folder / f"run-{self.number}"
        ranks = [
            subprocess.Popen(
                host.words("unshare", "--uts", "sh", "-c", 'hostname $0; exec "$@"', f"host-{rank}", self.programs.python,
                           HERE / "process_group_scripts.py", *way), stdout=subprocess.PIPE, text=True,
                env={**self.programs.environment, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                     "MASTER_ADDR": self.hosts[0].address, "MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": NIC,
                     "SYNCOPATE_KEY_FILE": str(self.key), "RUN_DIR": str(run), "SECONDS_OF_RUN": str(self.seconds)})
            for rank, host in enumerate(self.hosts)]
        outputs = [rank.communicate()[0] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            raise SystemExit(f"{' '.join(way)} has failed")
        found = json.loads(next(line for line in outputs[0].splitlines() if line.startswith("{")))
        if run.exists():
            computing = [100 * worker["computing_time_ratio"] for worker in json.loads((run / "summary.json").read_text())["workers"]]
            found |= {"computing, least, %": min(computing), "computing, most, %": max(computing)}
        return found
