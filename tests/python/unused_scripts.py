"""Training scripts for unused_test.py: unused_scripts.py NAME [ARGUMENT...]. Each prints what the test checks."""
import os

import torch
import syncopate_torch as syncopate
from torch.nn import functional

from calls import run_calls, say

STEPS = 6


class Heads(torch.nn.Module):
    """A network whose passes use the base and one of two heads; no pass uses the layer `never`."""

    def __init__(self):
        super().__init__()
        self.base = torch.nn.Linear(4, 3)
        self.heads = torch.nn.ModuleList(torch.nn.Linear(3, 2) for _ in range(2))
        self.never = torch.nn.Linear(3, 2)

    def forward(self, x, head):
        return self.heads[head](self.base(x).tanh())


def problem():
    torch.manual_seed(3)
    return torch.randn(STEPS, 8, 4), torch.randint(0, 2, (STEPS, 8)), Heads()


def parameters_of(module):
    return [value for parameter in module.parameters() for value in parameter.detach().flatten().tolist()]


def head_of(use, step, rank):
    """Returns the head of a pass. nobody: always the first. turns: the same on all workers, alternating. some: different on each
    worker. early: worker 1 uses the second in the first step only; later steps must not apply its momentum."""
    return {"nobody": 0, "turns": step % 2, "some": (step + rank) % 2, "early": int(rank == 1 and step == 0)}[use]


def samples_of(step, rank):
    """Returns the worker's part of the eight samples of a step: five of worker 0, three of worker 1."""
    part = slice(0, 5) if rank == 0 else slice(5, 8)
    points, labels, _ = problem()
    return points[step][part], labels[step][part]


def optimizer_of(module, name):
    made = {"adamw": lambda: torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0.1),
            "momentum": lambda: torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1),
            "sgd": lambda: torch.optim.SGD(module.parameters(), lr=0.1)}
    return made[name]()


def trains(scheme, name, use, *options):
    """Options: NAME=VALUE of the scheme; `clip`: clips the mean gradient; `aligns`: calls `align` between a backward pass and its
    step; `short`: worker 1 does not take the last two steps; `to_zero`: sets gradients to zero instead of None."""
    given = dict(option.split("=") for option in options if "=" in option)
    job = syncopate.init(scheme, options=given)
    module = problem()[2]
    optimizer = job.DistributedOptimizer(optimizer_of(module, name), module, batch_size=8)
    try:
        for step in range(STEPS - 2 * ("short" in options and job.rank == 1)):
            x, y = samples_of(step, job.rank)
            optimizer.zero_grad(set_to_none="to_zero" not in options)
            optimizer.expect(len(x))
            functional.cross_entropy(module(x, head_of(use, step, job.rank)), y).backward()
            if "aligns" in options and step == 2:
                optimizer.align()
            if "clip" in options:
                optimizer.synchronize(weight=len(x))
                torch.nn.utils.clip_grad_norm_(module.parameters(), 0.1)
            optimizer.step(weight=len(x))
            given_up = [parameter.grad is None for parameter in module.never.parameters()]
    except syncopate.ConfigError as error:
        say(rank=job.rank, refused=str(error))
        raise SystemExit(0) from None
    optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(module), never=parameters_of(module.never), given_up=given_up)


def unfreezing_steps(module, optimizer, ranks, step_of, align=lambda: None):
    """Trains only the heads in the first steps, and then also the base, in a parameter group of its own. `align` is called
    between them."""
    module.base.requires_grad_(False)
    for step in range(STEPS):
        if step == STEPS // 2:
            align()
            module.base.requires_grad_(True)
            optimizer.add_param_group({"params": module.base.parameters(), "lr": 0.03})
        optimizer.zero_grad(set_to_none=True)
        for rank in ranks:
            x, y = samples_of(step, rank)
            getattr(optimizer, "expect", int)(len(x))
            (functional.cross_entropy(module(x, 0), y) * (len(x) / 8 if len(ranks) > 1 else 1)).backward()
        step_of(len(x))


def unfreezes(scheme, *options):
    job = syncopate.init(scheme, options=dict(option.split("=") for option in options))
    module = problem()[2]
    heads = torch.optim.SGD(module.heads.parameters(), lr=0.1, momentum=0.9)
    optimizer = job.DistributedOptimizer(heads, module, batch_size=8)
    first = parameters_of(module.base)
    unfreezing_steps(module, optimizer, [job.rank], lambda count: optimizer.step(weight=count), optimizer.align)
    optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(module), has_moved=parameters_of(module.base) != first)


def in_torch(use):
    """Trains on equal parts of the samples by DistributedDataParallel and by a job, and prints the parameters of both."""
    rank = int(os.environ["RANK"])
    torch.distributed.init_process_group("gloo")
    module = torch.nn.parallel.DistributedDataParallel(problem()[2], find_unused_parameters=True)
    adamw = optimizer_of(module, "adamw")
    take_equal_steps(module, adamw, use, rank, lambda _count: adamw.step())
    own = parameters_of(module)
    torch.distributed.destroy_process_group()
    job = syncopate.init()
    module = problem()[2]
    optimizer = job.DistributedOptimizer(optimizer_of(module, "adamw"), module, batch_size=4)
    take_equal_steps(module, optimizer, use, rank, lambda count: optimizer.step(weight=count))
    optimizer.finish()
    say(rank=job.rank, in_torch=own, parameters=parameters_of(module))


def take_equal_steps(module, optimizer, use, rank, step_of):
    points, labels, _ = problem()
    for step in range(STEPS):
        x, y = points[step][4 * rank:4 * rank + 4], labels[step][4 * rank:4 * rank + 4]
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(module(x, head_of(use, step, rank)), y).backward()
        step_of(len(x))


def sparse():
    """Trains an embedding whose sparse gradient has only the rows that a pass has used."""
    job = syncopate.init()
    torch.manual_seed(3)
    bag = torch.nn.EmbeddingBag(20, 4, sparse=True)
    rows = torch.arange(STEPS * 6).reshape(STEPS, 6) * 7 % 20
    optimizer = job.DistributedOptimizer(torch.optim.SGD(bag.parameters(), lr=0.1), bag, batch_size=6)
    for step in range(STEPS):
        own = rows[step].chunk(job.size)[job.rank].reshape(1, -1)
        optimizer.zero_grad()
        bag(own).sum().backward()  # EmbeddingBag returns the mean of its rows
        optimizer.step(weight=own.numel())
    optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(bag))


if __name__ == "__main__":
    run_calls(globals())
