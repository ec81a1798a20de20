#!/usr/bin/python3
"""One of two workers on two hosts that train ResNet-18 on random images for a time; worker 0 prints a line of JSON: samples/s
of both.

    process_group_scripts.py ddp                       DistributedDataParallel over Gloo
    process_group_scripts.py SCHEME AGGREGATE OPTION=VALUE...   five calls; AGGREGATE torch: over Gloo's group
"""
import json
import os
import sys
import time

import torch
from torch import distributed
from torch.nn import functional

from torch_local import NETWORKS

BATCH, IMAGES, WARM_UP_STEPS = 32, 2048, 3


class Watch:
    """Counts samples from the end of the first steps on, until the time of the measurement is over."""

    def __init__(self, seconds):
        self.seconds, self.steps, self.samples, self.begun = seconds, 0, 0, None

    def took_step(self, samples):
        self.steps += 1
        if self.begun is not None:
            self.samples += samples
        elif self.steps == WARM_UP_STEPS:
            self.begun = time.monotonic()

    def is_over(self):
        return self.begun is not None and time.monotonic() - self.begun > self.seconds


def ready():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dataset = torch.utils.data.TensorDataset(torch.randn(IMAGES, 1, 28, 28), torch.randint(10, (IMAGES,)))
    network = NETWORKS["resnet18-v1"](1, 28, 10)
    return dataset, network, torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)


def ddp(seconds):
    distributed.init_process_group("gloo")
    dataset, network, sgd = ready()
    wrapped, watch, over = torch.nn.parallel.DistributedDataParallel(network), Watch(seconds), torch.zeros(1)
    loader = torch.utils.data.DataLoader(dataset, BATCH, shuffle=True)
    while not over:
        for images, labels in loader:
            sgd.zero_grad()
            functional.cross_entropy(wrapped(images), labels).backward()
            sgd.step()
            watch.took_step(len(images))
            if watch.steps % 5 == 0:
                over[0] = watch.is_over()
                distributed.broadcast(over, 0)
            if over:
                break
    print(json.dumps({"samples/s": 2 * watch.samples / (time.monotonic() - watch.begun)}), flush=True)
    distributed.destroy_process_group()


def five_calls(seconds, scheme, aggregate, *given):
    import syncopate_torch as syncopate

    if aggregate == "torch":
        distributed.init_process_group("gloo")
    dataset, network, sgd = ready()
    options = {"aggregate": aggregate, "run-dir": os.environ["RUN_DIR"], **dict(option.split("=") for option in given)}
    with syncopate.init(scheme, options) as job:
        loader = job.partition_dataset(dataset, batch_size=2 * BATCH)
        optimizer = job.DistributedOptimizer(sgd, network)
        watch, stopped = Watch(seconds), None
        while stopped is None:
            for images, labels in loader:
                optimizer.zero_grad()
                functional.cross_entropy(network(images), labels).backward()
                optimizer.step(weight=len(images))
                watch.took_step(len(images))
                if watch.is_over():
                    stopped = watch.samples / (time.monotonic() - watch.begun)
                    break
        optimizer.finish()
        rates = [float(rate) for rate in job.allgather(torch.tensor([stopped]))]
    if int(os.environ["RANK"]) == 0:
        print(json.dumps({"samples/s": sum(rates)}), flush=True)


def main():
    way, *rest = sys.argv[1:]
    seconds = float(os.environ["SECONDS_OF_RUN"])
    if way == "ddp":
        ddp(seconds)
    else:
        five_calls(seconds, way, *rest)


if __name__ == "__main__":
    main()
