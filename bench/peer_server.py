#!/usr/bin/python3
"""The peer of the parameter server: the isend/irecv pattern over torch.distributed with Gloo.

Each worker sends its gradient to every server and receives the parameters; a server receives from
all of its workers at once, applies each gradient, and sends back. Prints figures as JSON.
"""
import argparse
import json
import os
import socket
import statistics
import time

import torch
from torch import distributed, multiprocessing

WARM_UP = 5


def serve(options, values):
    """Runs one shard: applies each gradient when it arrives, and replies with the parameters."""
    params = torch.zeros(values)
    gradients = {worker: torch.zeros(values) for worker in workers_of(options)}
    answers = {worker: torch.zeros(values) for worker in workers_of(options)}
    arriving = {worker: distributed.irecv(gradients[worker], src=worker) for worker in gradients}
    left = {worker: WARM_UP + options.rounds for worker in gradients}
    leaving = {}
    while arriving:
        worker = next((each for each in arriving if arriving[each].is_completed()), next(iter(arriving)))
        arriving.pop(worker).wait()
        params.sub_(gradients[worker], alpha=1e-6)
        if worker in leaving:
            leaving[worker].wait()
        answers[worker].copy_(params)
        leaving[worker] = distributed.isend(answers[worker], dst=worker)
        left[worker] -= 1
        if left[worker] > 0:
            arriving[worker] = distributed.irecv(gradients[worker], src=worker)
    for sending in leaving.values():
        sending.wait()


def work(options, sizes):
    """Pushes and pulls; returns the seconds of each exchange."""
    gradients = [torch.full((size,), 1e-3) for size in sizes]
    params = [torch.zeros(size) for size in sizes]
    seconds = []
    for number in range(WARM_UP + options.rounds):
        begun = time.monotonic()
        transfers = [distributed.irecv(params[server], src=server) for server in range(options.servers)]
        transfers += [distributed.isend(gradients[server], dst=server) for server in range(options.servers)]
        for transfer in transfers:
            transfer.wait()
        if number >= WARM_UP:
            seconds.append(time.monotonic() - begun)
    return seconds


def workers_of(options):
    return range(options.servers, options.servers + options.workers)


def member(rank, options, port, results):
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"})
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=options.servers + options.workers)
    ends = [options.values * shard // options.servers for shard in range(options.servers + 1)]
    sizes = [end - begin for begin, end in zip(ends, ends[1:])]
    distributed.barrier()
    if rank < options.servers:
        serve(options, sizes[rank])
    else:
        results.put(work(options, sizes))
    distributed.barrier()
    results.close()
    results.join_thread()
    os._exit(0)  # the destruction of Gloo's groups sometimes hangs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--values", type=int, default=11_175_370)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    members = [
        context.Process(target=member, args=(rank, options, port, results))
        for rank in range(options.servers + options.workers)
    ]
    for process in members:
        process.start()
    seconds = [value for _ in range(options.workers) for value in results.get()]
    for process in members:
        process.join()
    print(json.dumps({"median_seconds": statistics.median(seconds), "min_seconds": min(seconds)}))


if __name__ == "__main__":
    main()
