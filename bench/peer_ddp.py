#!/usr/bin/python3
"""The peer of `syncopate train --scheme ssgd`: PyTorch's DistributedDataParallel over Gloo, on loopback.

With --json it prints a line when all processes have done their first step, and a line of figures at
its end. With --backend alone each process is in a group of one, so DistributedDataParallel does everything except
communication: the speed that a backend without any cost would reach. With --backend none the processes train without
DistributedDataParallel.
"""
import argparse
import json
import os
import socket
import time

import torch
from torch import distributed, multiprocessing, nn
from torch.nn import functional

from backends import init_group
from torch_local import NETWORKS, WARM_UP_STEPS, peak_resident_bytes, training_set


class Trainer:
    """One process of the group: a replica on random data, with the optimizer of torch_local.py."""

    def __init__(self, options):
        torch.manual_seed(1)
        network, self.features, self.labels = training_set(options)
        self.network = network if options.backend == "none" else distributed_parallel(network, options)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.01, momentum=0.9)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.network(self.features), self.labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def seconds_of(self, steps):
        """Runs `steps` steps between two barriers."""
        distributed.barrier()
        start = time.monotonic()
        for _ in range(steps):
            self.step()
        distributed.barrier()
        return time.monotonic() - start


def distributed_parallel(network, options):
    if options.backend != "alone":
        return nn.parallel.DistributedDataParallel(network)
    groups = [distributed.new_group([rank]) for rank in range(options.processes)]
    return nn.parallel.DistributedDataParallel(network, process_group=groups[distributed.get_rank()])


def agreed_steps(seconds_per_step, seconds):
    """Returns the number of steps that fill `seconds` on rank 0. All processes must run the same number."""
    steps = torch.tensor([max(1, round(seconds / seconds_per_step))])
    distributed.broadcast(steps, 0)
    return int(steps)


def greatest(value):
    values = torch.tensor([value], dtype=torch.float64)
    distributed.all_reduce(values, distributed.ReduceOp.MAX)
    return float(values)


def train(rank, port, options):
    torch.set_num_threads(options.threads)
    backend = "gloo" if options.backend in ("none", "alone") else options.backend
    init_group(backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=options.processes)
    trainer = Trainer(options)
    trainer.seconds_of(1)
    if rank == 0 and options.json:
        print(json.dumps({"event": "first_step"}), flush=True)
    warm_up = trainer.seconds_of(WARM_UP_STEPS)
    steps = agreed_steps(warm_up / WARM_UP_STEPS, options.seconds)
    elapsed = trainer.seconds_of(steps)
    peak = greatest(float(peak_resident_bytes()))
    if rank == 0:
        report(options, options.processes * options.batch_size * steps / elapsed, peak)
    # The destruction of Gloo's groups sometimes hangs, after all measurements.
    distributed.barrier()
    os._exit(0)


def report(options, speed, peak):
    if options.json:
        result = {
            "program": "pytorch-ddp",
            "network": options.network,
            "batch_size": options.batch_size,
            "processes": options.processes,
            "threads": options.threads,
            "images_per_second": speed,
            "peak_resident_bytes": peak,
        }
        print(json.dumps(result), flush=True)
    else:
        print(f"{options.network}: {speed:.0f} images/s, at most {peak / 2**20:.0f} MiB resident")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=NETWORKS, default="resnet18-v1")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--backend", choices=("gloo", "syncopate", "alone", "none"), default="gloo",
                        help="of torch.distributed; alone: a group for each process; none: no DistributedDataParallel")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--batch-size", type=int, default=64, help="of each process")
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    multiprocessing.spawn(train, args=(free_port(), options), nprocs=options.processes)


if __name__ == "__main__":
    main()
