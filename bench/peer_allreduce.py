#!/usr/bin/python3
"""The peer of `syncopate bench allreduce`: torch.distributed with Gloo, by the rules of peer_rounds.hpp. Prints one line of
JSON. It starts its ranks itself, on loopback; with RANK in the environment it is that rank, and MASTER_ADDR says where rank 0 is.
"""
import argparse
import json
import math
import os
import socket
import statistics
import time

import torch
from backends import init_group
from torch import distributed, multiprocessing


def greatest(numbers):
    """Returns the maximum of each element over all ranks."""
    everybodys = torch.tensor(numbers, dtype=torch.float64)
    distributed.all_reduce(everybodys, distributed.ReduceOp.MAX)
    return everybodys.tolist()


def run(values, rounds):
    """Returns the seconds of each round on this rank."""
    seconds = []
    for _ in range(rounds):
        distributed.barrier()
        begun = time.perf_counter()
        distributed.all_reduce(values)
        seconds.append(time.perf_counter() - begun)
    return seconds


def rounds_to_fill(values, wanted):
    portion = 1
    while True:
        elapsed = greatest([sum(run(values, portion))])[0]
        if elapsed >= 0.1 * wanted or portion >= 100_000:
            return min(max(5, math.ceil(wanted * portion / elapsed)), 100_000)
        portion *= 2


def measure(rank, ranks, size, wanted):
    pattern = torch.arange(size // 4).remainder(97).add(1).float()
    values = pattern * (rank + 1)
    distributed.all_reduce(values)
    if not torch.equal(values, pattern * (ranks * (ranks + 1) // 2)):
        raise RuntimeError("the sum is wrong")
    values.zero_()
    rounds = rounds_to_fill(values, wanted)
    cpu_before = time.process_time()
    own = run(values, rounds)
    cpu = [0.0] * ranks
    cpu[rank] = time.process_time() - cpu_before
    seconds = sorted(greatest(own))
    return {
        "ranks": ranks,
        "bytes": size,
        "median_seconds": statistics.median(seconds),
        "min_seconds": seconds[0],
        "p90_seconds": seconds[math.ceil(0.9 * rounds) - 1],
        "cpu_seconds": sum(greatest(cpu)) / rounds,
        "rounds": rounds,
    }


def member_here(rank, port, options):
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"})
    member(rank, options)


def member(rank, options):
    torch.set_num_threads(1)
    init_group(options.backend, rank=rank, world_size=options.ranks)
    sizes = [int(size) for size in options.bytes.split(",")]
    results = [measure(rank, options.ranks, size, options.seconds) for size in sizes]
    if rank == 0:
        print(json.dumps({"results": results}), flush=True)
    distributed.barrier()
    os._exit(0)  # the destruction of Gloo's groups sometimes hangs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bytes", default="1000,44700000", metavar="LIST")
    parser.add_argument("--backend", choices=("gloo", "syncopate"), default="gloo")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each size")
    options = parser.parse_args()
    if "RANK" in os.environ:
        member(int(os.environ["RANK"]), options)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(member_here, args=(port, options), nprocs=options.ranks)


if __name__ == "__main__":
    main()
