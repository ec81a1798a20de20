"""Training scripts for gradients_test.py: gradients_scripts.py NAME [ARGUMENT...]. Each prints what the test checks."""
import math

import torch
import syncopate_torch as syncopate
from syncopate_torch.amp import GradScaler

from calls import run_calls, say
from scripts import parameters_of


def ones(value=0.0):
    """Returns a network of one weight, whose gradient a script sets by `pull`, and its optimizer."""
    network = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(network.weight, value)
    return network, torch.optim.SGD(network.parameters(), lr=1.0)


def pull(network, gradient):
    (network.weight.sum() * gradient).backward()


def weighed(*weights):
    """Takes one step with this worker's weight."""
    job = syncopate.init()
    network, sgd = ones()
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=1)
    pull(network, 1.0 + 2 * job.rank)
    weight = float(weights[job.rank])
    try:
        optimizer.synchronize(weight=weight)
    except syncopate.ConfigError as error:
        say(rank=job.rank, refused=str(error))
        return
    pulled = network.weight.grad.item()
    optimizer.step(weight=torch.tensor(weight))
    optimizer.finish()
    say(rank=job.rank, pulled=pulled, parameters=parameters_of(network), samples=optimizer.samples)


def looked_at(policy, synchronizes):
    """Takes three steps; in the second one the gradient of worker 1 is not finite."""
    job = syncopate.init(options={"on-nan": policy})
    network, sgd = ones()
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=1)
    for step in range(3):
        optimizer.zero_grad()
        pull(network, math.nan if (job.rank, step) == (1, 1) else 1.0 + 2 * job.rank)
        if synchronizes == "yes":
            optimizer.synchronize(weight=1)
            torch.nn.utils.clip_grad_norm_(network.parameters(), 100)
        optimizer.step(weight=1)
    optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(network))


def of_another_default(kind):
    """Worker 0 takes fewer steps than worker 1, in a script that has set another default type of tensors."""
    job = syncopate.init()
    network, sgd = ones()
    torch.set_default_dtype(getattr(torch, kind))
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=1)
    for _ in range(2 + job.rank):
        optimizer.zero_grad()
        pull(network, 1.0)
        optimizer.synchronize(weight=257)
        optimizer.step(weight=257)
    optimizer.finish()
    torch.set_default_dtype(torch.float32)
    say(rank=job.rank, parameters=parameters_of(network))


def waits(scheme, how, *options):
    """Worker 1 waits while worker 0 takes further steps with a gradient of zero; then both print their parameters."""
    job = syncopate.init(scheme, options=dict(option.split("=") for option in options))
    network = torch.nn.Linear(1, 1, bias=False)
    sgd = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=1)
    for step in range(4 if job.rank else 8):
        optimizer.zero_grad()
        pull(network, 1.0 if step < 4 else 0.0)
        optimizer.step()
    optimizer.align() if how == "align" else optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(network))


def keeps_back(scheme, codec, momentum):
    """A codec keeps values back: steps without samples must not send them, later steps with samples must."""
    job = syncopate.init(scheme, options={"compress": codec, **({"local-steps": 1} if scheme == "local-sgd" else {})})
    torch.manual_seed(3)
    gradient = torch.randn(20, 10)
    network = torch.nn.Linear(10, 20, bias=False)
    torch.nn.init.zeros_(network.weight)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=1.0, momentum=float(momentum)), network,
                                         batch_size=1)
    (network.weight * gradient).sum().backward()
    optimizer.step()
    before = network.weight.detach().clone()
    for _ in range(4):
        optimizer.align()
    waited = (network.weight - before).abs().max().item()
    for _ in range(60):
        optimizer.zero_grad()
        (network.weight * 0).sum().backward()
        optimizer.step()
    error = (network.weight + gradient / (1 - float(momentum))).abs().max().item()
    optimizer.finish()
    say(rank=job.rank, waited=waited, error=error)


def overflows(order, policy):
    """Takes five steps with a loss scale and clipping; in the third one the gradient of worker 1 overflows."""
    job = syncopate.init(options={"on-nan": policy})
    network, sgd = ones()
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=1)
    scaler = GradScaler(job, "cpu", init_scale=4.0, growth_interval=100)
    for step in range(5):
        optimizer.zero_grad()
        scaler.scale(network.weight.sum() * (math.inf if (job.rank, step) == (1, 2) else 1.0 + 2 * job.rank)).backward()
        steps = [lambda: scaler.unscale_(optimizer), lambda: optimizer.synchronize(weight=1)]
        for each in steps if order == "unscale first" else reversed(steps):
            each()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        scaler.step(optimizer, weight=1)
        scaler.update()
    optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(network), scale=scaler.get_scale())


def of_weights(kind, synchronizes):
    """Takes one step with very different weights, in which a gradient times its weight overflows a float."""
    job = syncopate.init(options={"weights": kind})
    network, sgd = ones()
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=1)
    weight = 1 if job.rank == 0 else 2**24
    pull(network, (1.0 + 2 * job.rank) * 2.0**124)
    try:
        if synchronizes == "yes":
            optimizer.synchronize(weight=weight)
    except syncopate.ConfigError as error:
        say(rank=job.rank, refused=str(error))
        return
    optimizer.step(weight=weight)
    optimizer.finish()
    say(rank=job.rank, parameters=[value / 2.0**124 for value in parameters_of(network)])


def weighs_nothing():
    job = syncopate.init()
    network, sgd = ones(1.0)
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=1)
    pull(network, 1.0)
    optimizer.step(weight=0)
    optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(network))


def many_tokens(scheme):
    """Takes steps with more samples than a job of a billion epochs of one sample has."""
    job = syncopate.init(scheme)
    network, sgd = ones()
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=1)
    for _ in range(3):
        optimizer.zero_grad()
        pull(network, 1.0)
        optimizer.step(weight=2**32 - 1)
    optimizer.finish()
    say(rank=job.rank, samples=optimizer.samples)


def changes_rule(what, value):
    job = syncopate.init("asgd")
    network, sgd = ones()
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=1)
    pull(network, 1.0)
    optimizer.step()
    optimizer.param_groups[0][what] = float(value)
    try:
        optimizer.step()
    except syncopate.ConfigError as error:
        say(rank=job.rank, refused=str(error))


def changes_rate(group, kind):
    """Changes the learning rate of one of two parameter groups, while a server takes the steps."""
    job = syncopate.init("asgd")
    network = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    rate = torch.tensor(0.5) if kind == "tensor" else 0.5
    groups = [{"params": list(layer.parameters())} for layer in network]
    optimizer = job.DistributedOptimizer(torch.optim.SGD(groups, lr=rate), network, batch_size=1)
    network(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    changed = optimizer.param_groups[int(group)]
    if kind == "tensor":
        changed["lr"].fill_(0.25)
    else:
        changed["lr"] = 0.25
    try:
        optimizer.step()
    except syncopate.ConfigError as error:
        say(rank=job.rank, refused=str(error))


if __name__ == "__main__":
    run_calls(globals())
