"""The suite of overlap: scripts in Python on two hosts, whose gradients pass a slow link during or after the pass."""
import json
import subprocess
import tempfile

from hosts import NIC, two_hosts
from measuring import Contestant, comparison, interleave, speed
from programs import HERE

PEER = "PyTorch DistributedDataParallel, Gloo"
WAYS = {
    "Syncopate, five calls, overlap on": ("five", "--overlap", "on"),
    "Syncopate, five calls": ("five", "--overlap", "off"),
    PEER: ("ddp-rank",),
}


def overlap(programs, options):
    """Scripts in Python on two hosts over 1 Gbit/s: five calls with and without overlap, beside DistributedDataParallel."""
    yield (
        "ResNet-18, two workers of one thread and 64 images a step, in network namespaces joined by 1 Gbit/s each way\n"
        "(`tc tbf`). A gradient of 44.7 MB takes 0.36 s.\n"
    )
    with two_hosts("1gbit", "1mb") as hosts:
        results = interleave(
            [Contestant(name, lambda way=way: speed(trained(programs, hosts, way, options))) for name, way in WAYS.items()],
            options.rounds,
        )
    yield comparison(results, "images/s", PEER)


def trained(programs, hosts, way, options):
    """Returns the figures that worker 0 prints."""
    command = [programs.python, HERE / "unequal_scripts.py", *way, "--network", "resnet18-v1", "--seconds", options.seconds,
               "--slowdown", 0]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        workers = [
            subprocess.Popen(
                host.words(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
                env={**programs.environment, **place_of(rank, hosts)},
            )
            for rank, host in enumerate(hosts)
        ]  # fmt: skip
        outputs = [worker.communicate() for worker in workers]
    if any(worker.returncode for worker in workers):
        raise SystemExit(f"overlap: a worker of {' '.join(way)} has failed:\n{outputs[0][1]}\n{outputs[1][1]}")
    return json.loads(outputs[0][0].splitlines()[-1])


def place_of(rank, hosts):
    """Returns the environment variables by which a worker finds the other one."""
    return {
        "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": hosts[0].address,
        "MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": NIC, "SYNCOPATE_UNENCRYPTED": "1",
    }  # fmt: skip
