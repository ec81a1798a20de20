"""Training scripts for overlap_test.py: overlap_scripts.py NAME [ARGUMENT...]. Each prints what the test checks."""
import time

import torch
import syncopate_torch as syncopate
from torch.nn import functional

from calls import run_calls, say

SAMPLES, FEATURES, CLASSES = 44, 256, 8  # steps have 8 samples, the last one has 4
LIMIT = 60  # seconds after which gradients must have arrived


class Net(torch.nn.Module):
    """Three layers of 5.3 MB in all, which are reduced in several buckets, and one layer that only some passes use."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(FEATURES, 1024)
        self.middle = torch.nn.Linear(1024, 1024)
        self.sometimes = torch.nn.Linear(1024, 1024, bias=False)
        self.last = torch.nn.Linear(1024, CLASSES)

    def forward(self, x, detour=False):
        hidden = self.middle(self.first(x).tanh()).tanh()
        return self.last(self.sometimes(hidden).tanh() if detour else hidden)


def problem():
    torch.manual_seed(5)
    points = torch.randn(SAMPLES, FEATURES)
    labels = (points @ torch.randn(FEATURES, CLASSES)).argmax(1)
    return torch.utils.data.TensorDataset(points, labels), Net()


def bits_of(network):
    """Returns numbers that change with any bit of any parameter, and with the order of the values."""
    each = [parameter.detach().flatten().view(torch.int32).long() for parameter in network.parameters()]
    return [int((bits * torch.arange(1, len(bits) + 1)).sum()) for bits in each]


def loss_of(network, x, y, detour=False):
    return functional.cross_entropy(network(x, detour), y)


def started(batch_size=8, **options):
    job = syncopate.init(**options)
    dataset, network = problem()
    data = job.partition_dataset(dataset, batch_size)
    own = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    return job, data, network, own, job.DistributedOptimizer(own, network)


def trains(overlap):
    """Trains with what scripts use: partial batches, unused parameters, gradients set to None, several passes per step, loops
    of unequal length, and an `align` in the middle."""
    job, data, network, own, optimizer = started(options={"overlap": overlap})
    for epoch in range(2):
        for step, (x, y) in enumerate(data):
            own.zero_grad(set_to_none=step % 2 == 0)
            loss_of(network, x, y, detour=(step + job.rank) % 2 == 0).backward()
            optimizer.step(weight=len(x))
        optimizer.align(f"epoch {epoch}")
    batches = [batch for batch in data]
    for _ in range(3 + job.rank):  # worker 1 takes one step more
        optimizer.zero_grad()
        optimizer.expect(sum(len(x) for x, _ in batches))
        with optimizer.no_sync():
            for x, y in batches[1:]:
                loss_of(network, x, y).backward()
        loss_of(network, *batches[0]).backward()
        optimizer.step()
    optimizer.finish()
    own.zero_grad()
    loss_of(network, *batches[0]).backward()  # after `finish` the gradient is no longer reduced
    say(rank=job.rank, bits=bits_of(network))


def accumulates(overlap):
    """Accumulates two batches per step. With overlap it passes no weight, since the loader knows the samples."""
    job, data, network, _, optimizer = started(options={"overlap": overlap})
    for _ in range(3):
        batches = iter(data)
        for first in batches:
            second = next(batches)
            optimizer.zero_grad()
            with optimizer.no_sync():
                loss_of(network, *first).backward()
            loss_of(network, *second).backward()
            optimizer.step(weight=None if overlap == "on" else len(first[0]) + len(second[0]))
    optimizer.finish()
    say(rank=job.rank, bits=bits_of(network))


def leaves_early():
    """After the first step, which determines the buckets, the mean gradient arrives before any worker calls `step`."""
    job, data, network, _, optimizer = started(options={"overlap": "on"})
    batches = iter(data)
    x, y = next(batches)
    loss_of(network, x, y).backward()
    optimizer.step()
    x, y = next(batches)
    apart = Net()
    apart.load_state_dict(network.state_dict())
    loss_of(apart, x, y, detour=True).backward()
    mine = flat_gradient(apart)
    expected = sum(job.allgather(mine)) / job.size
    optimizer.zero_grad()
    loss_of(network, x, y, detour=True).backward()
    began = time.monotonic()
    while not torch.allclose(flat_gradient(network), expected, atol=1e-6):
        assert time.monotonic() - began < LIMIT, "the mean gradient has not arrived before step"
    optimizer.step()
    optimizer.finish()
    say(rank=job.rank, differs=not torch.allclose(mine, expected, atol=1e-6))


def flat_gradient(network):
    return torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten().clone()
                      for p in network.parameters()])


def fails(how):
    """Worker 1 leaves its loop in the middle of a step, or has a gradient that is not finite."""
    job, data, network, _, optimizer = started(options={"overlap": "on"})
    for step, (x, y) in enumerate(data):
        optimizer.zero_grad()
        bad = job.rank == 1 and step == 1
        loss_of(network, x * float("nan") if bad and how == "nan" else x, y).backward()
        if bad and how == "raises":
            raise RuntimeError("the disk is full")
        optimizer.step(weight=len(x))
    optimizer.finish()


if __name__ == "__main__":
    run_calls(globals())
