"""Training scripts for lower_precision_test.py: lower_precision_scripts.py NAME [ARGUMENT...]. Each prints what the test
checks."""
import torch
from torch.nn import functional

import syncopate_torch as syncopate
from calls import run_calls, say
from scripts import accuracy, problem

STEPS = 12
LOCAL_STEPS = 3
BATCH = 8


class Network(torch.nn.Module):
    """A base of one type, a head of another, and a mean of what the base returns, of its type. It computes in float32, as torch
    1.13 does not multiply matrices of float16 on a CPU."""

    def __init__(self, base, head):
        super().__init__()
        _, _, layers = problem()
        self.base, self.head = layers[0].to(base), layers[2].to(head)
        self.register_buffer("mean", torch.zeros(8, dtype=base))

    def forward(self, points):
        features = in_float(self.base, points).tanh()
        if torch.is_grad_enabled():
            with torch.no_grad():
                self.mean += 0.25 * (features.mean(0) - self.mean)
        return in_float(self.head, features)


def in_float(layer, values):
    return functional.linear(values, layer.weight.float(), layer.bias.float())


def batches(rank):
    """Returns the points and labels of the steps of one of two workers."""
    points, labels, _ = problem()
    begins = [2 * BATCH * step % len(points) + BATCH * rank for step in range(STEPS)]
    return [(points[begin:begin + BATCH], labels[begin:begin + BATCH]) for begin in begins]


def sgd_of(network):
    return torch.optim.SGD(network.parameters(), lr=0.125, momentum=0.5)


def state_of(network):
    return {name: value.tolist() for name, value in network.state_dict().items()}


def trains(scheme, base, head, passes=1):
    """Takes steps with a network of two types, in which worker 1 begins with other values."""
    options = {"local-steps": LOCAL_STEPS} if scheme in ("local-sgd", "diloco") else {}
    job = syncopate.init(scheme, options)
    network = Network(getattr(torch, base), getattr(torch, head))
    if job.rank == 1:
        torch.nn.init.ones_(network.base.weight)
    job.broadcast_parameters(network)
    own = sgd_of(network)
    optimizer = job.DistributedOptimizer(own, network, batch_size=BATCH)
    for points, labels in batches(job.rank) * int(passes):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        optimizer.step()
    optimizer.finish()
    points, labels, _ = problem()
    say(rank=job.rank, state=state_of(network), types=sorted({str(value.dtype) for value in network.state_dict().values()}),
        accuracy=accuracy(network, points, labels), of_gradient=str(network.base.weight.grad.dtype))


def sums():
    """Takes the mean of gradients whose sum bfloat16 would round, of which one worker has none."""
    job = syncopate.init()
    network = torch.nn.Linear(1, 2, bias=False).bfloat16()
    unused = torch.nn.Linear(1, 1, bias=False).bfloat16()
    both = torch.nn.ModuleList([network, unused])
    optimizer = job.DistributedOptimizer(torch.optim.SGD(both.parameters(), lr=0), both, batch_size=1)
    (network.weight.sum() * (256 if job.rank == 0 else 1)).backward()
    if job.rank == 2:
        unused.weight.grad = torch.full_like(unused.weight, 8.0)
    optimizer.step()
    say(rank=job.rank, mean=network.weight.grad.flatten().tolist(), only_one=unused.weight.grad.tolist())
    optimizer.finish()


def overlaps():
    """Asks for gradients that leave during the backward pass."""
    job = syncopate.init(options={"overlap": "on"})
    network = Network(torch.bfloat16, torch.float32)
    try:
        job.DistributedOptimizer(sgd_of(network), network, batch_size=BATCH)
    except syncopate.ConfigError as error:
        say(rank=job.rank, refused=str(error))


if __name__ == "__main__":
    run_calls(globals())
