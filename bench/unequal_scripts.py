#!/usr/bin/python3
"""Two workers of one script, of which the second has half the speed: it sleeps as long as a step computes. With
--slowdown 0 both are equal. Prints a line of JSON.

    unequal_scripts.py ddp                             DistributedDataParallel over Gloo; starts both processes
    unequal_scripts.py none                            no synchronization: what the two devices have together
    unequal_scripts.py ddp-rank                        the same, one of two processes, whose rank is in the environment
    syncopate run -n 2 -- unequal_scripts.py five      one of two workers, by five calls; the scheme is that of the job
"""
import argparse
import json
import os
import statistics
import time

import torch
from torch import distributed, multiprocessing, nn
from torch.nn import functional

from peer_ddp import free_port
from torch_local import NETWORKS, WARM_UP_STEPS, training_set


class Loop:
    """A replica on random data. A slow worker's replica sleeps before each pass."""

    def __init__(self, options, rank):
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.network, self.features, self.labels = training_set(options)
        self.sgd = torch.optim.SGD(self.network.parameters(), lr=0.001, momentum=0.9)
        self.batch_size = options.batch_size
        self.pause = 0.0
        times = [self.timed_pass() for _ in range(3 * WARM_UP_STEPS)]
        self.pause = options.slowdown * statistics.median(times[WARM_UP_STEPS:]) if rank == 1 else 0.0

    def backward(self, network):
        if self.pause > 0:
            time.sleep(self.pause)
        functional.cross_entropy(network(self.features), self.labels).backward()

    def timed_pass(self):
        begun = time.perf_counter()
        self.backward(self.network)
        return time.perf_counter() - begun


def ddp(rank, method, options):
    distributed.init_process_group("gloo", init_method=method, rank=rank, world_size=2)
    loop = Loop(options, rank)
    network = nn.parallel.DistributedDataParallel(loop.network)
    distributed.barrier()
    begun, steps, goes_on = time.perf_counter(), 0, torch.ones(1)
    while goes_on.item():
        loop.sgd.zero_grad()
        loop.backward(network)
        loop.sgd.step()
        steps += 1
        if steps % 10 == 0:
            goes_on.fill_(time.perf_counter() - begun < options.seconds)
            distributed.broadcast(goes_on, 0)
    distributed.barrier()
    if rank == 0:
        print(json.dumps({"images_per_second": 2 * steps * loop.batch_size / (time.perf_counter() - begun)}), flush=True)
    os._exit(0)  # the destruction of Gloo's groups sometimes hangs


def unsynchronized(rank, method, options):
    distributed.init_process_group("gloo", init_method=method, rank=rank, world_size=2)
    loop = Loop(options, rank)
    distributed.barrier()
    begun, steps = time.perf_counter(), 0
    while time.perf_counter() - begun < options.seconds:
        loop.sgd.zero_grad()
        loop.backward(loop.network)
        loop.sgd.step()
        steps += 1
    images = torch.tensor([steps * loop.batch_size / (time.perf_counter() - begun)])
    distributed.all_reduce(images)
    if rank == 0:
        print(json.dumps({"images_per_second": images.item()}), flush=True)
    os._exit(0)


def five_calls(options):
    import syncopate_torch as syncopate

    job = syncopate.init(options={"overlap": options.overlap} if options.overlap else None)
    loop = Loop(options, job.rank)
    job.broadcast_parameters(loop.network)
    optimizer = job.DistributedOptimizer(loop.sgd, loop.network, batch_size=loop.batch_size)
    begun, steps = time.perf_counter(), 0
    while time.perf_counter() - begun < options.seconds:
        optimizer.zero_grad()
        loop.backward(loop.network)
        optimizer.step()
        steps += 1
    optimizer.finish()
    elapsed = time.perf_counter() - begun
    samples = job.allreduce(torch.tensor([float(steps * loop.batch_size)]))
    if job.rank == 0:
        print(json.dumps({"images_per_second": samples.item() / elapsed}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=("ddp", "ddp-rank", "none", "five"))
    parser.add_argument("--network", choices=NETWORKS, default="lenet5")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--batch-size", type=int, default=64, help="of each worker")
    parser.add_argument("--slowdown", type=float, default=1, help="seconds that worker 1 sleeps for each that it computes")
    parser.add_argument("--overlap", help="option of the job")
    options = parser.parse_args()
    started = {"ddp": ddp, "none": unsynchronized}.get(options.way)
    if started is not None:
        multiprocessing.spawn(started, args=(f"tcp://127.0.0.1:{free_port()}", options), nprocs=2)
    elif options.way == "ddp-rank":
        ddp(int(os.environ["RANK"]), "env://", options)
    else:
        five_calls(options)


if __name__ == "__main__":
    main()
