#!/usr/bin/python3
"""The peer of `syncopate bench step`: the same networks and options in plain PyTorch."""
import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional

WARM_UP_STEPS = 5


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 256)
        self.fc2 = nn.Linear(256, 128)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x):
        x = functional.relu(self.fc1(x.flatten(1)), inplace=True)
        x = functional.relu(self.fc2(x), inplace=True)
        return self.fc3(x)


class Lenet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = functional.relu(functional.max_pool2d(self.conv1(x), 2), inplace=True)
        x = functional.relu(functional.max_pool2d(self.conv2(x), 2), inplace=True)
        x = functional.relu(self.fc1(x.flatten(1)), inplace=True)
        x = functional.relu(self.fc2(x), inplace=True)
        return self.fc3(x)


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += x if self.downsample is None else self.downsample(x)
        return functional.relu(y, inplace=True)


class Resnet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        blocks = []
        inputs = 64
        for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.blocks(functional.max_pool2d(x, 3, 2, 1))
        return self.fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))


NETWORKS = {"mlp": Mlp, "lenet5": Lenet5, "resnet18-v1": Resnet18}


def images_per_second(options):
    torch.manual_seed(1)
    network = NETWORKS[options.network]()
    features = torch.randn(options.batch_size, 1, 28, 28)
    labels = torch.randint(0, 10, (options.batch_size,))
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
    """The peak memory. Unlike getrusage's figure, it does not include the program that started this one."""
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
