"""Training scripts for gradients_test.py: gradients_scripts.py NAME [ARGUMENT...]. Each prints what the test looks at."""
import math
import sys

import torch
import syncopate_torch as syncopate

from scripts import parameters_of, say


def ones(value=0.0):
    """A parameter whose gradient is what a script gives it."""
    network = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(network.weight, value)
    return network, torch.optim.SGD(network.parameters(), lr=1.0)


def pull(network, gradient):
    (network.weight.sum() * gradient).backward()


def weighed(*weights):
    """One step, by the weight of this worker."""
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
    """In the second of three steps the gradient of worker 1 is not finite."""
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
    """Worker 0 takes fewer steps than worker 1, in a script whose tensors are of another type by default."""
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
    say(rank=job.rank, parameters=parameters_of(network))


def changes_rate(group, kind):
    """Of an optimizer with two groups, where a server takes the steps."""
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
    torch.set_num_threads(1)
    globals()[sys.argv[1]](*sys.argv[2:])
