"""Calls with wrong arguments for arguments_test.py: arguments_scripts.py NAME."""
import torch
import syncopate_torch as syncopate
from calls import run_calls, say


class Refused:
    """Collects the error message of each refused call, by name."""

    def __init__(self):
        self.messages = {}

    def add(self, name, call, *arguments, **options):
        try:
            self.messages[name] = f"taken: {call(*arguments, **options)}"
        except syncopate.ConfigError as error:
            self.messages[name] = str(error)


def messages():
    """Passes ranks and tags that 32 bits cannot hold, and values of wrong types."""
    job = syncopate.init()
    group, other, values = job.open_group(range(2)), 1 - job.rank, torch.ones(2)
    refused = Refused()
    refused.add("tag", group.send_async, values, other, tag=2**32 + 7)
    refused.add("to", group.send_async, values, 2**32 + other)
    refused.add("to none", group.send_async, values, None)
    refused.add("sender", group.receive_async, values, -1)
    refused.add("sender of a kind", group.receive_async, values, "1")
    refused.add("ranks", job.open_group, [0, 2**32 + 1])
    refused.add("root", job.broadcast, values, 0.5)
    refused.add("timeout", job.open_group, [0, 1], timeout="soon")
    refused.add("timeout of init", syncopate.init, timeout="soon")
    sent = group.send_async(torch.full((2,), float(job.rank)), float(other), tag=torch.tensor(7))
    group.receive(values, other, tag=7.0)
    sent.wait()
    say(rank=job.rank, refused=refused.messages, received=values.tolist())


def unequal_calls():
    """Workers call collectives with tensors of different types but equal length in bytes, or with different roots. Each call has
    its own group, since a group cannot be used after such a call."""
    job = syncopate.init()
    own = torch.full((2,), 7, dtype=torch.int32 if job.rank == 0 else torch.float32)
    refused = Refused()
    for name, call in (("allgather", lambda group: group.allgather(own)), ("broadcast", lambda group: group.broadcast(own)),
                       ("roots", lambda group: group.broadcast(torch.ones(2), job.rank))):
        group = job.open_group(range(2))
        refused.add(name, lambda group=group, call=call: [call(group), group.barrier()])
    say(rank=job.rank, refused=refused.messages)


def unequal_calls_of_torch():
    """Does the same by torch.distributed."""
    distributed = torch.distributed
    distributed.init_process_group("syncopate")
    rank = distributed.get_rank()
    own = torch.full((4,), 7, dtype=torch.int32 if rank == 0 else torch.float32)
    parts = [torch.empty_like(own[:2]) for _ in range(2)]
    refused = Refused()
    for name, call in (
            ("all_gather", lambda group: distributed.all_gather([torch.empty_like(own) for _ in range(2)], own, group=group)),
            ("broadcast", lambda group: distributed.broadcast(own, 0, group=group)),
            ("scatter", lambda group: distributed.scatter(own[:2].clone(), parts if rank == 0 else None, 0, group=group)),
            ("all_to_all_single", lambda group: distributed.all_to_all_single(torch.empty_like(own), own, group=group))):
        group = distributed.new_group()
        refused.add(name, lambda group=group, call=call: [call(group), distributed.barrier(group=group)])
    say(rank=rank, refused=refused.messages)


def unequal_reductions_of_torch():
    """Workers call reductions of equal values with different operations, types or layouts."""
    distributed = torch.distributed
    distributed.init_process_group("syncopate")
    rank = distributed.get_rank()
    op = (distributed.ReduceOp.SUM, distributed.ReduceOp.AVG)[rank]
    parts = [torch.ones(2), torch.ones(2)]
    truth = torch.ones(3, dtype=torch.uint8 if rank == 0 else torch.bool)
    rows = torch.ones(3) if rank == 0 else torch.ones(3).to_sparse()
    refused = Refused()
    for name, call in (
            ("mean", lambda group: distributed.all_reduce(torch.ones(4), op, group=group)),
            ("mean of blocks", lambda group: distributed.reduce_scatter(torch.zeros(2), parts, op, group=group)),
            ("truth", lambda group: distributed.all_reduce(truth, distributed.ReduceOp.MAX, group=group)),
            ("sparse", lambda group: distributed.all_reduce(rows, group=group)),
            ("mean of sparse", lambda group: distributed.all_reduce(torch.ones(3).to_sparse(), op, group=group))):
        group = distributed.new_group()
        refused.add(name, lambda group=group, call=call: [call(group), distributed.barrier(group=group)])
    say(rank=rank, refused=refused.messages)


def group_messages():
    """Passes wrong tags to torch.distributed."""
    torch.distributed.init_process_group("syncopate")
    other, refused = 1 - torch.distributed.get_rank(), Refused()
    refused.add("tag", torch.distributed.isend, torch.ones(2), other, tag=2**32 + 7)
    refused.add("tag of a receive", torch.distributed.irecv, torch.ones(2), tag=-1)
    say(rank=1 - other, refused=refused.messages)


def state():
    """Broadcasts the state of a module whose values differ between workers."""
    job = syncopate.init()
    network = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1))
    for value in network.state_dict().values():
        value.fill_(job.rank + 1)
    job.broadcast_parameters(network.state_dict())
    refused = Refused()
    refused.add("other keys", job.broadcast_parameters, {f"of {job.rank}": torch.ones(1)})
    say(rank=job.rank, values=[float(each) for each in network.state_dict().values()], refused=refused.messages)


def both_levels():
    """Makes a process group of torch.distributed, and then uses the five calls."""
    torch.distributed.init_process_group("syncopate")
    job = syncopate.init()
    network = torch.nn.Linear(1, 1)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=1)
    shares = optimizer.shares_gradients
    optimizer.finish()
    say(rank=job.rank, shares=shares)


def horovod(first):
    """Initializes Horovod's interface; with `first` = "init" after syncopate_torch.init."""
    import syncopate_torch.horovod as hvd  # noqa: PLC0415 (only this script needs it)
    job = syncopate.init() if first == "init" else None
    hvd.init()
    say(rank=hvd.rank(), has_joined_before=job is not None)


if __name__ == "__main__":
    run_calls(globals())
