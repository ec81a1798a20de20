"""Scripts of torch.distributed for backend_test.py: backend_scripts.py NAME [ARGUMENT...]."""
import atexit
import datetime
import os
import sys
import threading
import warnings
import weakref

import syncopate_torch
import torch
from syncopate_torch.distributed import rendezvous
from syncopate_torch.distributed.rendezvous import close_later
from torch import distributed as dist
from torch.distributed.distributed_c10d import _get_default_store
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from calls import run_calls, say


def begin():
    """Makes the default group unless an earlier call in this process has made it."""
    if not dist.is_initialized():
        dist.init_process_group("syncopate")


def leave():
    """Ends a script that used Gloo. Otherwise Gloo of torch 2 may abort the process, since its threads free tensors while the
    interpreter ends."""
    dist.barrier()
    dist.destroy_process_group()


def more_than_gloo():
    """Uses types, operations and objects that Gloo of torch 1.13 does not support."""
    dist.init_process_group("syncopate")
    rank, size = dist.get_rank(), dist.get_world_size()
    mean = torch.full((3,), float(rank))
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    counts = torch.tensor([5, -5]) if rank == 0 else torch.tensor([0, 0])
    dist.all_reduce(counts, op=dist.ReduceOp.AVG)
    halves = torch.full((3,), rank + 0.5, dtype=torch.bfloat16)
    dist.all_reduce(halves)
    truth = torch.tensor([True, rank == 0, False])
    every = truth.clone()
    dist.all_reduce(truth, op=dist.ReduceOp.MAX)
    dist.all_reduce(every, op=dist.ReduceOp.MIN)
    complex_sum = torch.tensor([1 + 2j * rank])
    dist.all_reduce(complex_sum)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    heard = [f"by {rank}"]
    dist.broadcast_object_list(heard, src=size - 1)
    into = torch.empty(2 * size)
    dist.all_gather_into_tensor(into, torch.full((2,), float(rank)))
    part = torch.empty(2)
    dist.reduce_scatter_tensor(part, torch.arange(2.0 * size))
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.tensor([rank]), (rank + 1) % size),
                                    dist.P2POp(dist.irecv, received := torch.tensor([-1]), (rank - 1) % size)])
    for work in works:
        work.wait()
    say(rank=rank, mean=mean.tolist(), halves=halves.tolist(), truth=truth.tolist(), every=every.tolist(),
        complex=[complex_sum.real.item(), complex_sum.imag.item()], objects=objects, heard=heard, into=into.tolist(),
        part=part.tolist(), received=received.item(), counts=counts.tolist())
    dist.destroy_process_group()


def plain_calls():
    """Calls methods of the process group itself, with a tensor in place of a list and values in place of options."""
    begin()
    rank, group, limit, op = dist.get_rank(), dist.group.WORLD, datetime.timedelta(seconds=100), dist.ReduceOp
    own, found = torch.tensor([rank + 1.0]), {}

    def call(name, tensor, *arguments, **named):
        getattr(group, name)(*arguments, **named).wait()
        found.setdefault(name, []).append(tensor.tolist())

    for plain in ([], [op.MAX], [op.MAX, limit]):
        call("allreduce", value := own.clone(), value, *plain)
    call("allreduce", value := own.clone(), [value], op=op.MAX)
    call("broadcast", value := own.clone(), value, 1)
    call("broadcast", value := own.clone(), [value])
    call("reduce", value := own.clone(), value, 1)
    call("reduce", value := own.clone(), value, 1, op.PRODUCT, timeout=limit)
    pair = torch.zeros(2)
    call("allgather", pair, list(pair.split(1)), own)
    call("gather", pair, list(pair.split(1)) if rank == 1 else [], 10 * own, 1)
    call("scatter", value := torch.zeros(1), value, [own, 10 * own] if rank == 1 else [], root=1)
    call("reduce_scatter", value := torch.zeros(1), value, [own, 10 * own], op.MAX)
    call("_reduce_scatter_base", value := torch.zeros(1), value, torch.cat([own, 10 * own]))
    call("alltoall", pair, list(pair.split(1)), [own, 10 * own], limit)
    found["barrier"] = group.barrier(limit).wait() and group.barrier(timeout=limit).wait()
    say(rank=rank, **found)


def futures_of_ended_works():
    begin()
    work = dist.all_reduce(torch.ones(2), async_op=True)
    work.wait()
    future = work.get_future()
    say(rank=dist.get_rank(), done=future.done(), value=future.value()[0].tolist(),
        after=future.then(lambda ended: ended.value()[0].sum().item()).wait())


def trained(model, steps=5):
    """Trains by the loop of a stock script on this rank's part of 24 samples; returns the parameters."""
    torch.manual_seed(5)
    points, labels = torch.randn(24, 6), torch.randint(0, 3, (24,))
    own = slice(24 * dist.get_rank() // dist.get_world_size(), 24 * (dist.get_rank() + 1) // dist.get_world_size())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        functional.cross_entropy(model(points[own]), labels[own]).backward()
        optimizer.step()
    return [value for parameter in model.parameters() for value in parameter.detach().flatten().tolist()]


def small_network():
    torch.manual_seed(dist.get_rank())  # DistributedDataParallel then gives all ranks the parameters of rank 0
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def data_parallel():
    """Trains by DistributedDataParallel on our backend and on Gloo, and accumulates gradients under `no_sync`."""
    dist.init_process_group("syncopate")
    gloo = dist.new_group(backend="gloo")
    ours = trained(DistributedDataParallel(small_network()))
    theirs = trained(DistributedDataParallel(small_network(), process_group=gloo))
    model = DistributedDataParallel(small_network(), bucket_cap_mb=0.0001)
    with model.no_sync():
        model(torch.ones(4, 6)).sum().backward()
    model(torch.ones(4, 6)).sum().backward()
    many_buckets = model.module[0].weight.grad.sum().item()
    say(rank=dist.get_rank(), ours=ours, gloo=theirs, many_buckets=many_buckets)
    leave()


def rank_raises():
    """Rank 1 raises while the others are in a collective, which then cannot end."""
    dist.init_process_group("syncopate")
    model = DistributedDataParallel(small_network())
    for step in range(1000):
        if dist.get_rank() == 1 and step == 3:
            raise ValueError("the loss of this script is strange")
        model(torch.ones(4, 6)).sum().backward()


def comes_too_late():
    dist.init_process_group("syncopate")
    impatient = dist.new_group(timeout=datetime.timedelta(seconds=1))
    if dist.get_rank() == 0:
        try:
            dist.all_reduce(torch.ones(3), group=impatient)
        except syncopate_torch.TimedOut as error:
            say(rank=0, caught=str(error))
        _get_default_store().set("caught", "1")
    else:
        _get_default_store().get("caught")


def late_for_a_barrier():
    """Rank 1 does not call the barrier."""
    dist.init_process_group("syncopate")
    if dist.get_rank() == 0:
        dist.barrier(group=dist.new_group([0]), timeout=datetime.timedelta(seconds=100))
        try:
            dist.barrier(timeout=datetime.timedelta(seconds=0.5))
        except syncopate_torch.TimedOut as error:
            say(rank=0, caught=str(error))
        _get_default_store().set("caught", "1")
    else:
        dist.new_group([0])
        _get_default_store().get("caught")


def results_that_the_caller_drops():
    begin()
    rank, size = dist.get_rank(), dist.get_world_size()
    places = [torch.empty(4) for _ in range(size)]
    kept = torch.full((4,), float(rank))
    dropped = [weakref.ref(place) for place in places]
    work = dist.all_reduce(kept, async_op=True)
    dist.all_gather(places, torch.ones(4))
    del places
    dist.barrier()
    work.wait()
    say(rank=rank, alive=[place() is not None for place in dropped], result=work.result()[0].tolist())


def device_mesh():
    from torch.distributed.device_mesh import init_device_mesh
    begin()
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("all",))
    total = torch.ones(1)
    dist.all_reduce(total, group=mesh.get_group("all"))
    group = dist.new_group(list(range(size)), group_desc="of two")
    names = [dist.group.WORLD.group_name, dist.group.WORLD.group_desc, group.group_desc]
    is_named = group.group_name in dist.distributed_c10d._world.pg_names.values()
    dist.destroy_process_group(group)
    say(rank=rank, total=total.item(), names=names, is_named=is_named)


def checkpoints():
    """Saves and loads by torch's distributed checkpoints and FSDP, which use the device that they find for the group."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
    from torch.distributed.fsdp import FullyShardedDataParallel
    dist.init_process_group("syncopate")
    rank, group = dist.get_rank(), dist.group.WORLD
    model, whole = torch.nn.Linear(3, 2), {"weight": torch.ones(2, 3), "bias": torch.zeros(2)}
    set_model_state_dict(model, whole if rank == 0 else {},
                         options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    checkpoint.async_save({"weight": model.weight.detach()}, checkpoint_id="saved").result()
    loaded = {"weight": torch.zeros(2, 3)}
    checkpoint.load(loaded, checkpoint_id="saved")
    sharded = FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    optimizer = torch.optim.Adam(sharded.parameters())
    sharded(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = FullyShardedDataParallel.optim_state_dict(sharded, optimizer)["state"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=9), group)
    say(rank=rank, weight=loaded["weight"].sum().item(), states=sorted(state),
        devices=[str(each) for each in group._device_types], of_timeout=[str(each.message) for each in caught])


def default_device():
    """Sets another default device for new tensors."""
    begin()
    rank, size = dist.get_rank(), dist.get_world_size()
    model, points, own = small_network(), torch.ones(4, 6), torch.full((2,), float(rank))
    places = [torch.zeros(2) for _ in range(size)]
    job = syncopate_torch.init()
    torch.set_default_device("meta")
    DistributedDataParallel(model)(points).sum().backward()
    dist.all_gather(places, own)
    dist.all_to_all_single(exchanged := own.clone(), own)
    dist.reduce_scatter(part := own.clone(), [own, own])
    dist.barrier()
    gathered = job.everyone.allgather(own)
    halves = job.everyone.reduce_scatter(own)
    say(rank=rank, gathered=[each.tolist() for each in (*places, *gathered)], exchanged=exchanged.tolist(), part=part.tolist(),
        halves=halves.tolist(), is_finite=all(each.grad.isfinite().all().item() for each in model.parameters()))
    torch.set_default_device("cpu")


def light():
    """Checks that the module does not import torch's compiler."""
    begin()
    dist.all_reduce(torch.ones(2))
    say(rank=dist.get_rank(), is_light="torch._dynamo" not in sys.modules)


def compiled():
    """Trains by DistributedDataParallel with and without torch.compile."""
    begin()
    found, expected = [trained(change(DistributedDataParallel(small_network())))
                       for change in (lambda model: torch.compile(model, backend="eager"), lambda model: model)]
    say(rank=dist.get_rank(), found=found, expected=expected)


def functional_collectives():
    from torch.distributed import _functional_collectives as functional
    begin()
    rank, group = dist.get_rank(), dist.group.WORLD
    own = torch.tensor([rank, rank + 10.0])
    say(rank=rank, total=functional.all_reduce(own, "sum", group).tolist(),
        gathered=functional.all_gather_tensor(own, 0, group).tolist(),
        part=functional.reduce_scatter_tensor(own, "sum", 0, group).tolist())


def promised_tensors():
    """Passes the results of functional collectives, which wrap a tensor that is filled in later, to collectives."""
    from torch.distributed import _functional_collectives as functional
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    begin()
    rank, group = dist.get_rank(), dist.group.WORLD

    def promised():
        return functional.all_reduce(torch.arange(4.0) + rank, "sum", group)  # 1, 3, 5, 7

    reduced, everyone, block = promised(), torch.zeros(8), torch.zeros(2)
    kind = type(reduced).__name__
    dist.all_reduce(reduced)
    sent = promised()
    dist.broadcast(sent, 0)
    dist.all_gather_into_tensor(everyone, promised())
    dist.reduce_scatter_tensor(block, promised())
    parts = [torch.zeros(4), torch.zeros(4)]
    dist.all_gather(parts, promised())
    if rank == 0:
        dist.send(promised(), 1)
        here = torch.tensor([1.0, 3, 5, 7])
    else:
        here = promised()
        dist.recv(here.zero_(), 0)
    mesh = init_device_mesh("cpu", (2,))
    try:
        dist.all_reduce(distribute_tensor(torch.ones(4), mesh, [Shard(0)]))
        refused = ""
    except syncopate_torch.ConfigError as error:
        refused = str(error)
    say(rank=rank, kind=kind, reduced=reduced.tolist(), sent=sent.tolist(), everyone=everyone.tolist(), block=block.tolist(),
        parts=[each.tolist() for each in parts], here=here.tolist(), refused=refused)


def inference_mode():
    """Begins collectives in inference mode that end outside it, or in a thread without it, and the other way round."""
    begin()
    rank = dist.get_rank()
    with torch.inference_mode():
        own, places = torch.full((2,), rank + 1.0), [torch.empty(2) for _ in range(2)]
        work = dist.all_gather(places, own, async_op=True)
        mean = torch.full((2, 3), rank + 1.0).t()
        divided = dist.all_reduce(mean, dist.ReduceOp.AVG, async_op=True)
        future = dist.all_gather([torch.empty(2) for _ in range(2)], own, async_op=True).get_future()
        ended = threading.Event()
        future.add_done_callback(lambda _: ended.set())
        ended.wait()
        said = sum(each.sum().item() for each in future.value())
    work.wait()
    divided.wait()
    outside = torch.zeros(3, 2).t()
    with torch.inference_mode():
        late = dist.all_reduce(outside, dist.ReduceOp.AVG, async_op=True)
    late.wait()
    say(rank=rank, places=[each.tolist() for each in places], mean=mean.tolist(), future=said, outside=outside.tolist())


def tensors_in_parts():
    """Uses a tensor, a network and its training that are divided over the ranks, and the same undivided."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    begin()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def network():
        torch.manual_seed(3)
        return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))

    rows = distribute_tensor(torch.arange(8.0).view(4, 2), mesh, [Shard(0)])
    points = torch.linspace(-1, 1, 24).view(4, 6)
    parallel = parallelize_module(network(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    sharded, whole = fully_shard(network(), mesh=mesh), network()
    for model, part in ((sharded, points.chunk(dist.get_world_size())[dist.get_rank()]), (whole, points)):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(3):
            optimizer.zero_grad()
            model(part).pow(2).mean().backward()
            optimizer.step()
    everywhere = rows.redistribute(mesh, [Replicate()])
    say(rank=dist.get_rank(), rows=rows.to_local().tolist(), all_rows=everywhere.to_local().tolist(),
        parallel=parallel(points).flatten().tolist(), plain=network()(points).flatten().tolist(),
        sharded=[value for each in sharded.parameters() for value in each.full_tensor().flatten().tolist()],
        whole=[value for each in whole.parameters() for value in each.flatten().tolist()])


def by_address(method):
    """Ranks find each other by an address that the script passes."""
    dist.init_process_group("syncopate", init_method=method, rank=int(os.environ["RANK"]), world_size=2)
    ones = torch.ones(1)
    dist.all_reduce(ones)
    say(rank=dist.get_rank(), sum=ones.item())


def again():
    """Makes two process groups, one after the other. Each has its own port: with any backend, a fast rank might otherwise
    reach the store of the first group. Some ranks keep a smaller group and so remain in the job of the first group."""
    sums, kept = [], []
    for port in (os.environ["MASTER_PORT"], os.environ["SECOND_PORT"]):
        os.environ["MASTER_PORT"] = port
        dist.init_process_group("syncopate")
        kept.append(dist.new_group([1, 2]))
        ones = torch.ones(1)
        dist.all_reduce(ones)
        if dist.get_rank() > 0:
            dist.all_reduce(ones, group=kept[-1])
        sums.append(ones.item())
        dist.barrier()
        dist.destroy_process_group()
    say(rank=int(os.environ["RANK"]), sums=sums)


def restarted():
    """Runs two jobs with one store, as ranks do that torchrun restarts."""
    rank = int(os.environ["RANK"])
    store = dist.TCPStore("127.0.0.1", int(os.environ["SECOND_PORT"]), 2, rank == 0)
    left, sums = [], []
    for _ in range(2):
        job = rendezvous._join_by_store(store, rank, 2, close_later)
        sums.append(job.everyone.allreduce(torch.ones(1)).item())
        left += [name for name in ("syncopate/coordinator", f"syncopate/host/{rank}") if store.delete_key(name)]
        job.everyone.barrier()
        job.leave()
    if rank == 0:
        store.wait(["done"])  # rank 0 serves the store, so it ends last
    else:
        store.set("done", "")
    say(rank=rank, left=left, sums=sums)


def beside_gloo():
    dist.init_process_group("gloo")
    ours = dist.new_group(backend="syncopate")
    ones = torch.ones(1)
    dist.all_reduce(ones, group=ours)
    say(rank=dist.get_rank(), sum=ones.item())
    leave()


def resident_kib():
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def long_run():
    """Runs 10,000 operations in five equal stretches, after a few that allocate memory which the process keeps."""
    dist.init_process_group("syncopate")
    values = torch.ones(1000)
    places = [torch.empty(100_000) for _ in range(dist.get_world_size())]

    def operations(rounds):
        for _ in range(rounds):
            dist.all_reduce(values.fill_(1), async_op=True).get_future().wait()
            dist.all_gather(places, torch.ones(100_000))
            dist.all_reduce(values.fill_(1), async_op=True).wait()
            dist.barrier()

    def growth_of_stretch():
        before = resident_kib()
        operations(500)
        return resident_kib() - before

    operations(300)
    say(rank=dist.get_rank(), growths=[growth_of_stretch() for _ in range(5)])


def callbacks_at_the_end():
    """Ends the script while a callback computes."""
    dist.init_process_group("syncopate")
    begun = threading.Event()

    def compute(future):
        begun.set()
        table = torch.ones(200, 200)
        for _ in range(200):
            table = torch.mm(table, table).clamp(max=1)
        say(rank=dist.get_rank(), found=future.value()[0].item() + table[0, 0].item())

    dist.all_reduce(torch.ones(1), async_op=True).get_future().then(compute)
    begun.wait()


def a_receive_that_waits():
    """Runs many collectives while a receive waits, and prints the number of works that the group keeps."""
    dist.init_process_group("syncopate")
    rank, group = dist.get_rank(), dist.group.WORLD
    stop = torch.zeros(1)
    request = dist.irecv(stop, 1 - rank)
    for _ in range(100):
        dist.all_reduce(torch.ones(10))
    kept = len(list(group._works))
    dist.send(torch.full((1,), 5.0), 1 - rank)
    request.wait()
    say(rank=rank, kept=kept, stop=stop.item())


def at_exit():
    """Uses the process group in an exit handler that was registered before the group was made."""
    atexit.register(lambda: say(rank=dist.get_rank(), total=_total_of_ones()))
    dist.init_process_group("syncopate")


def _total_of_ones():
    ones = torch.ones(1)
    dist.all_reduce(ones)
    return ones.item()


def forked_loaders():
    """Loads data in forked processes."""
    dist.init_process_group("syncopate")
    points = torch.utils.data.TensorDataset(torch.arange(16.0))
    data = torch.utils.data.DataLoader(points, batch_size=4, num_workers=2)
    total = torch.stack([batch[0].sum() for _ in range(2) for batch in data]).sum()
    dist.all_reduce(total)
    say(rank=dist.get_rank(), total=total.item())


if __name__ == "__main__":
    run_calls(globals())
