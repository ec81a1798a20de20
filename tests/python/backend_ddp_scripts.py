"""Scripts that use the features of DistributedDataParallel, for backend_ddp_test.py: backend_ddp_scripts.py NAME [ARGUMENT...]."""
import os

import syncopate_torch
import torch
from backend_scripts import leave, say
from calls import run_calls
from torch import distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

STEPS = 5


class Branches(torch.nn.Module):
    """A network with a layer that some calls do not use."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.first, self.extra = torch.nn.Linear(6, 40), torch.nn.Linear(40, 40)
        self.last, self.norm = torch.nn.Linear(40, 3), torch.nn.BatchNorm1d(3)

    def forward(self, points, extra=True):
        hidden = torch.tanh(self.first(points))
        return self.norm(self.last(torch.tanh(self.extra(hidden)) if extra else hidden))


def points(step):
    torch.manual_seed(100 * dist.get_rank() + step)
    return torch.randn(8, 6)


def parameters_of(model):
    return [value for parameter in model.parameters() for value in parameter.detach().flatten().tolist()]


def trained(model, optimizer=None, steps=STEPS, **call):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        model(points(step), **call).pow(2).mean().backward()
        optimizer.step()
    return parameters_of(model)


def unused_parameters(group):
    model = DistributedDataParallel(Branches(), process_group=group, find_unused_parameters=True)
    trained(model, extra=dist.get_rank() == 0)
    return trained(model, extra=False)


def static_graph(group):
    return trained(DistributedDataParallel(Branches(), process_group=group, static_graph=True), extra=False)


def bucket_view(group):
    return trained(DistributedDataParallel(Branches(), process_group=group, gradient_as_bucket_view=True, bucket_cap_mb=0.001))


def join(group, unused=False, of_all=True):
    """Trains ranks with unequal numbers of batches. of_all: a mean also counts ranks that have no batches left."""
    model = DistributedDataParallel(Branches(), process_group=group, broadcast_buffers=False, find_unused_parameters=unused)
    with model.join(divide_by_initial_world_size=of_all):
        trained(model, steps=STEPS + 2 * dist.get_rank(), extra=not unused)
    return parameters_of(model)


def join_with_unused_parameters(group):
    return join(group, unused=True)


def join_that_divides_by_those_that_remain(group):
    return join(group, of_all=False)


def no_sync(group):
    model = DistributedDataParallel(Branches(), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        optimizer.zero_grad()
        with model.no_sync():
            model(points(2 * step)).pow(2).mean().backward()
        model(points(2 * step + 1)).pow(2).mean().backward()
        optimizer.step()
    return parameters_of(model)


def hooked(group, hook, state, **options):
    model = DistributedDataParallel(Branches(), process_group=group, **options)
    model.register_comm_hook(state, hook)
    return trained(model)


def allreduce_hook(group):
    return hooked(group, default_hooks.allreduce_hook, group)


def fp16_compress_hook(group):
    return hooked(group, default_hooks.fp16_compress_hook, group)


def power_sgd_hook(group, **options):
    return hooked(group, powerSGD_hook, PowerSGDState(group, 1, start_powerSGD_iter=2, min_compression_rate=1), **options)


def own_hook(group):
    """Uses a communication hook whose callback waits for a second collective."""
    size = dist.get_world_size()

    def halved_twice(_state, bucket):
        first = dist.all_reduce(bucket.buffer().div_(size), group=group, async_op=True).get_future()

        def again(future):
            second = dist.all_reduce(future.value()[0].clone(), group=group, async_op=True)
            return second.get_future().wait()[0] / size

        return first.then(again)

    return hooked(group, halved_twice, None)


def zero_redundancy(group):
    model = DistributedDataParallel(Branches(), process_group=group)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, process_group=group, lr=0.01)
    values = trained(model, optimizer)
    optimizer.consolidate_state_dict(0)
    return values


def sparse_embedding(group, *further):
    """Ranks use different rows, and different numbers of them."""
    torch.manual_seed(7)
    table = torch.nn.EmbeddingBag(30, 5, sparse=True)
    model = DistributedDataParallel(torch.nn.Sequential(table, *further), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        torch.manual_seed(100 * dist.get_rank() + step)
        optimizer.zero_grad()
        model(torch.randint(30, (2 + dist.get_rank(), 4))).pow(2).mean().backward()
        optimizer.step()
    assert table.weight.grad.is_sparse
    return parameters_of(model)


def sparse_embedding_beside_dense_layers(group):
    torch.manual_seed(8)
    return sparse_embedding(group, torch.nn.Linear(5, 5), torch.nn.Tanh())


def sparse_sums():
    """Adds sparse tensors of several shapes and types, some of them empty on one rank, while dense allreduces are under way."""
    dist.init_process_group("syncopate")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    cases = [torch.randint(-2, 3, (7, 6)).float().to_sparse(), torch.randint(-1, 2, (4, 3, 2)).double().to_sparse(2),
             (torch.eye(5) * (rank == 0)).to_sparse(), torch.zeros(3, 2).to_sparse(), torch.randint(9, (11,)).to_sparse(),
             torch.sparse_coo_tensor([[1, 1, rank]], [1.0, 2.0, 3.0], (4,))]
    expected = [case.to_dense() for case in cases]
    works = [dist.all_reduce(case, async_op=True) for case in cases]
    for dense in expected:
        dist.all_reduce(dense)
    works[-1].get_future().wait()
    for work in works:
        work.wait()
    mean = torch.tensor([2.0 * rank, 0.0]).to_sparse()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    mean *= 3 / (size - 1)
    say(rank=rank, equal=[case.is_sparse and torch.equal(case.to_dense(), dense) for case, dense in zip(cases, expected)],
        mean=mean.to_dense().tolist())


def loses_a_rank_in_a_backward_pass():
    """Rank 1 ends in the middle of training. Rank 0 catches torch's error and finds Syncopate's error behind it."""
    dist.init_process_group("syncopate")
    model = DistributedDataParallel(Branches())
    try:
        for step in range(1000):
            if dist.get_rank() == 1 and step == 3:
                os._exit(0)
            model(torch.ones(4, 6)).sum().backward()
    except RuntimeError as error:
        behind = syncopate_torch.error_behind(error)
        say(rank=0, behind=type(behind).__name__, text=str(behind), other=syncopate_torch.error_behind(RuntimeError("another")) is None)
        os._exit(0)


def profiled():
    """Prints the names that a profiler shows for collectives."""
    dist.init_process_group("syncopate")
    values = torch.ones(4)
    dist.all_reduce(values)  # the first call makes the group, with further collectives
    with torch.profiler.profile() as profile:
        dist.all_reduce(values)
        dist.broadcast(values, 0)
        dist.all_gather([torch.empty(4) for _ in range(dist.get_world_size())], values)
        dist.barrier()
    found = [event.name for event in profile.events() if event.name.startswith("syncopate:")]
    say(rank=dist.get_rank(), found=found)


def beside_gloo(*names):
    dist.init_process_group("syncopate")
    gloo = dist.new_group(backend="gloo")
    pairs = {name: [globals()[name](group) for group in (dist.group.WORLD, gloo)] for name in names}
    say(rank=dist.get_rank(), **pairs)
    leave()


def many_buckets_of_power_sgd():
    """Uses one bucket per layer, so that callbacks of one bucket begin collectives while the backward pass begins others."""
    dist.init_process_group("syncopate")
    runs = [power_sgd_hook(dist.group.WORLD, bucket_cap_mb=0.0001) for _ in range(4)]
    say(rank=dist.get_rank(), runs=runs)


if __name__ == "__main__":
    run_calls(globals())
