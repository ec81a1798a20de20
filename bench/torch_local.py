#!/usr/bin/python3
"""The peer of `syncopate bench step`: the same networks and options in plain PyTorch."""
import argparse
import json
import pathlib
import sys
import time

import torch
from torch.nn import functional

# The modules that the tests compare with ours.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/torch/libtorch"))
from networks import NETWORKS, SMALLEST_SIDES  # noqa: E402


def dist_mnist(_channels, _side, _classes):
    """The network of examples/dist_mnist."""
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
                         nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))  # fmt: skip


NETWORKS = {**NETWORKS, "dist-mnist": dist_mnist}

WARM_UP_STEPS = 5
CLASSES = 10


def training_set(options):
    """Returns a network and a batch like those of `syncopate bench step`: one channel of 28×28, or of the network's
    smallest size."""
    side = max(28, SMALLEST_SIDES.get(options.network, 1))
    features = torch.randn(options.batch_size, 1, side, side)
    labels = torch.randint(0, CLASSES, (options.batch_size,))
    return NETWORKS[options.network](1, side, CLASSES), features, labels


def images_per_second(options):
    torch.manual_seed(1)
    network, features, labels = training_set(options)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(network(features), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(WARM_UP_STEPS):
        step()
    steps, elapsed = 0, 0.0
    start = time.monotonic()
    while elapsed < options.seconds:
        step()
        steps += 1
        elapsed = time.monotonic() - start
    return steps * options.batch_size / elapsed


def peak_resident_bytes():
    """Returns the peak memory. Unlike getrusage's figure, it does not include the program that started this one."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=NETWORKS, default="lenet5")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    speed = images_per_second(options)
    peak = peak_resident_bytes()
    if options.json:
        result = {
            "program": "pytorch",
            "network": options.network,
            "batch_size": options.batch_size,
            "threads": options.threads,
            "images_per_second": speed,
            "peak_resident_bytes": peak,
        }
        print(json.dumps(result))
    else:
        print(f"{options.network}: {speed:.0f} images/s, at most {peak / 2**20:.0f} MiB resident")


if __name__ == "__main__":
    main()
