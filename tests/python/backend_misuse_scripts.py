"""Scripts with mistakes for backend_misuse_test.py: backend_misuse_scripts.py NAME."""
import inspect
import threading
import types

import syncopate_torch
import torch
from backend_scripts import say, small_network
from calls import run_calls
from syncopate_torch.distributed import works
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel


def refused(calls):
    """Makes the calls, which must be refused; returns their error messages by name."""
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
        "mean of truth": lambda: dist.all_reduce(truth, op=dist.ReduceOp.AVG),
        "bits": lambda: dist.all_reduce(torch.ones(3), op=dist.ReduceOp.BOR),
        "complex": lambda: dist.reduce(torch.ones(3, dtype=torch.complex64), 0, op=dist.ReduceOp.PRODUCT),
        "sparse": lambda: dist.broadcast(torch.ones(3).to_sparse(), 0),
        "sparse rows": lambda: dist.all_reduce(torch.eye(3).to_sparse_csr()),
        "sparse maximum": lambda: dist.all_reduce(torch.ones(3).to_sparse(), op=dist.ReduceOp.MAX),
        "sparse truth": lambda: dist.all_reduce(truth.to_sparse(), op=dist.ReduceOp.AVG),
        "sparse shapes": lambda: dist.all_reduce(torch.ones(3 + dist.get_rank()).to_sparse()),
        "sparse dimensions": lambda: dist.all_reduce(torch.ones(3, 2).to_sparse(1 + dist.get_rank())),
        "tag": lambda: dist.isend(torch.ones(3), to, tag=5000),
        "root": lambda: dist.broadcast(torch.ones(3), -1),
    })
    say(rank=dist.get_rank(), **found)


def sizes():
    """Makes calls that are refused without other ranks; calls with a root use a group of one rank."""
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


def destroyed():
    """Uses a group after its end."""
    dist.init_process_group("syncopate")
    rank, group = dist.get_rank(), dist.group.WORLD
    model = DistributedDataParallel(small_network())
    model(torch.ones(4, 6)).sum().backward()
    dist.barrier()
    end(group)
    model.eval()
    found = refused({
        "collective": lambda: group.allreduce([torch.ones(2)]),
        "barrier": group.barrier,
        "message": lambda: group.recv([torch.ones(2)], 1 - rank),
        "evaluation": lambda: model(torch.ones(4, 6)),
    })
    say(rank=rank, evaluated=list(model.module(torch.ones(4, 6)).shape), **found)


def aborted():
    """Aborts a collective that rank 1 does not call; and makes calls that torch 2.14 has for groups whose members may change."""
    dist.init_process_group("syncopate")
    rank, group = dist.get_rank(), dist.group.WORLD
    found = {"supports": group.supports_reconfigure, **refused({
        "reconfigure": lambda: group.reconfigure(None),
        "handle": group.get_reconfigure_handle,
        "option": lambda: type(group).with_options(types.SimpleNamespace(enable_reconfigure=True), None),
    })}
    dist.barrier()
    error, store = None, dist.distributed_c10d._get_default_store()
    if rank == 0:
        work = dist.all_reduce(torch.ones(2), async_op=True)
        group.abort()
        try:
            work.wait()
        except syncopate_torch.Error as caught:
            error = type(caught).__name__
        store.set("aborted", "yes")
        store.get("seen")  # rank 0 hosts the store, so it waits for rank 1
    else:
        store.get("aborted")  # if rank 1 ended earlier, its end would end the collective
        store.set("seen", "yes")
    say(rank=rank, error=error, **found)


def end(group):
    """Ends a group. In torch 1.13 and 2.0 destroy_process_group does not shut down a group that is still referenced."""
    if "shutdown()" not in inspect.getsource(dist.destroy_process_group):
        group.shutdown()
    elif group is dist.group.WORLD:
        dist.destroy_process_group()
    else:
        dist.destroy_process_group(group)


def callback_after_the_end():
    """A callback runs longer than the end of its group waits for it, and then calls a collective."""
    dist.init_process_group("syncopate")
    works._LONGEST_END = 0.01
    rank, group = dist.get_rank(), dist.group.WORLD
    has_ended, messages = threading.Event(), []

    def late(_future):
        has_ended.wait()
        messages.append(refused({"callback": lambda: group.allreduce([torch.ones(2)])}))

    after = dist.all_reduce(torch.ones(1), async_op=True).get_future().then(late)
    dist.barrier()
    end(group)
    has_ended.set()
    after.wait()
    say(rank=rank, **messages[0])


def receives_of_a_group_that_ends():
    """Ends a group with three receives: two got no message, and a thread waits for one of these. The job goes on."""
    dist.init_process_group("syncopate")
    rank = dist.get_rank()
    pair = dist.new_group([0, 1])
    places = [torch.zeros(2) for _ in range(3)]
    receives = [dist.irecv(place, 1 - rank, group=pair, tag=tag) for tag, place in enumerate(places)]
    dist.isend(torch.ones(2), 1 - rank, group=pair, tag=2).wait()
    dist.barrier()
    messages = []

    def wait_for(receive):
        try:
            receive.wait()
            messages.append("got it")
        except syncopate_torch.Error as error:
            messages.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=wait_for, args=[receives[0]])
    thread.start()
    end(pair)
    thread.join()
    for receive in receives[1:]:
        wait_for(receive)
    total = torch.ones(1)
    dist.all_reduce(total)
    say(rank=rank, messages=messages, places=[place.tolist() for place in places], total=total.item(),
        done=[receive.is_completed() for receive in receives])


if __name__ == "__main__":
    run_calls(globals())
