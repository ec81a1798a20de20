"""Training scripts for batch_norm_test.py: batch_norm_scripts.py NAME [ARGUMENT...]. Each prints what the test checks."""
import copy
import math

import torch
import syncopate_torch as syncopate
from torch.nn import functional

from calls import run_calls, say

STEPS, SAMPLES = 5, 12


def problem(kind, momentum=0.1):
    """Returns batches of points and labels, and a network with a normalization layer of class `kind`."""
    torch.manual_seed(3)
    network = torch.nn.Sequential(torch.nn.Conv1d(2, 6, 3), kind(6, momentum=momentum), torch.nn.Tanh(), torch.nn.Flatten(),
                                  torch.nn.Linear(24, 2))
    return 3 * torch.randn(STEPS, SAMPLES, 2, 6) + 1, torch.randint(0, 2, (STEPS, SAMPLES)), network


def values_of(network):
    return [value for tensor in (*network.parameters(), *network.buffers()) for value in tensor.detach().flatten().tolist()]


def trains(first, momentum):
    """Worker 0 takes the first `first` samples of each batch, worker 1 the others."""
    job = syncopate.init()
    points, labels, network = problem(torch.nn.SyncBatchNorm, None if momentum == "none" else float(momentum))
    own = slice(0, int(first)) if job.rank == 0 else slice(int(first), SAMPLES)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9), network, batch_size=SAMPLES)
    for x, y in zip(points, labels):
        optimizer.zero_grad()
        functional.cross_entropy(network(x[own]), y[own]).backward()
        optimizer.step(weight=len(x[own]))
    copied = copy.deepcopy(network).eval()(points[0]).sum().item()
    optimizer.finish()
    evaluated = network.eval()(points[0]).sum().item()
    say(rank=job.rank, values=values_of(network), kind=type(network[1]).__name__, same=copied == evaluated)


def refused(scheme):
    job = syncopate.init(scheme)
    network = problem(torch.nn.SyncBatchNorm)[2]
    try:
        job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.2), network, batch_size=SAMPLES)
    except syncopate.ConfigError as error:
        say(rank=job.rank, refused=str(error))


def skips(scheme):
    """In one batch of worker 0 a value is not a number."""
    job = syncopate.init(scheme, {"on-nan": "skip"})
    points, labels, network = problem(torch.nn.BatchNorm1d)
    if job.rank == 0:
        points[2, 0, 0, 0] = math.nan
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.2), network, batch_size=SAMPLES)
    for x, y in zip(points, labels):
        optimizer.zero_grad()
        functional.cross_entropy(network(x), y).backward()
        optimizer.step()
    optimizer.finish()
    say(rank=job.rank, values=values_of(network))


if __name__ == "__main__":
    run_calls(globals())
