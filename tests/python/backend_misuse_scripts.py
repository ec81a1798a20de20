"""Scripts with mistakes for backend_misuse_test.py: backend_misuse_scripts.py NAME."""
import sys

import syncopate_torch
import torch
from backend_scripts import say
from torch import distributed as dist


def refused(calls):
    """The messages of calls that begin nothing, by their names."""
    found = {}
    for name, call in calls.items():
        try:
            call()
            found[name] = "no error"
        except syncopate_torch.ConfigError as error:
            found[name] = str(error)
    return found


def types_and_operations():
    dist.init_process_group("syncopate")
    to = (dist.get_rank() + 1) % dist.get_world_size()
    truth = torch.tensor([True, False])
    found = refused({
        "dtype": lambda: dist.all_reduce(torch.ones(3, dtype=torch.int16)),
        "mean": lambda: dist.all_reduce(torch.ones(3, dtype=torch.int32), op=dist.ReduceOp.AVG),
        "mean of truth": lambda: dist.all_reduce(truth, op=dist.ReduceOp.AVG),
        "bits": lambda: dist.all_reduce(torch.ones(3), op=dist.ReduceOp.BOR),
        "complex": lambda: dist.reduce(torch.ones(3, dtype=torch.complex64), 0, op=dist.ReduceOp.PRODUCT),
        "sparse": lambda: dist.all_reduce(torch.ones(3).to_sparse()),
        "tag": lambda: dist.isend(torch.ones(3), to, tag=5000),
    })
    say(rank=dist.get_rank(), **found)


def sizes():
    """Each call is wrong on this rank alone: those to or from a root are of a group of one."""
    dist.init_process_group("syncopate")
    rank, size = dist.get_rank(), dist.get_world_size()
    alone = [dist.new_group([each]) for each in range(size)][rank]
    memory = torch.zeros(64)
    output, two, three = memory[:4], torch.ones(2), torch.ones(3)
    doubles = torch.ones(2, dtype=torch.float64)
    found = refused({
        "into small": lambda: dist.all_gather_into_tensor(output, torch.full((20,), 7.0)),
        "into type": lambda: dist.all_gather_into_tensor(torch.ones(4, dtype=torch.int32), two),
        "of small": lambda: dist.reduce_scatter_tensor(torch.zeros(20), two),
        "long list": lambda: dist.all_gather([two.clone() for _ in range(size + 1)], two),
        "short list": lambda: dist.all_gather([two.clone() for _ in range(size - 1)], two),
        "small place": lambda: dist.all_gather([two.clone(), three], two),
        "parts": lambda: dist.reduce_scatter(two, [two, two, two]),
        "small part": lambda: dist.reduce_scatter(two, [two, three]),
        "gather": lambda: dist.gather(two, [two, two], rank, group=alone),
        "gather small": lambda: dist.gather(two, [three], rank, group=alone),
        "scatter": lambda: dist.scatter(two, [two, two], rank, group=alone),
        "scatter small": lambda: dist.scatter(torch.zeros(30), [two], rank, group=alone),
        "exchange": lambda: dist.all_to_all([two], [two]),
        "splits": lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), [1, 2], [2, 2]),
        "negative": lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), [2, 2], [5, -1]),
        "scalar": lambda: dist.all_to_all_single(torch.ones(4), torch.tensor(1.0)),
    })
    group = dist.distributed_c10d._get_default_group()  # torch 2 refuses some of these before the backend does
    found.update(refused({
        "place type": lambda: group.allgather([[two.clone(), doubles]], [two]),
        "outputs": lambda: group.allgather([[two.clone(), two.clone()]], [two, two]),
        "coalesced": lambda: group.allgather_coalesced([[two.clone()]], [two]),
        "exchange type": lambda: group.alltoall([two, two], [two, doubles]),
    }))
    everyone = torch.ones(1)
    dist.all_reduce(everyone)
    say(rank=rank, overwritten=memory.sum().item(), afterwards=everyone.item(), **found)


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](*sys.argv[2:])
