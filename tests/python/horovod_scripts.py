"""Scripts that use Horovod's interface, for horovod_test.py: horovod_scripts.py NAME. Each prints what the test checks."""
# Length: one file, so that one start of two workers runs all of them.
import pickle
import sys
import time
import types
import warnings

import syncopate_torch.horovod as hvd
import torch
from torch.nn import functional

from calls import run_calls, say
from scripts import SAMPLES, STEPS, parameters_of, problem, sgd


def own_part(tensor):
    return tensor[SAMPLES * hvd.rank() // hvd.size():SAMPLES * (hvd.rank() + 1) // hvd.size()]


def wrapped(network, **options):
    return hvd.DistributedOptimizer(sgd(network), named_parameters=network.named_parameters(), **options)


def training(compression="none"):
    """Gives each worker an equal part of the whole dataset, so that the mean gradient is that of one process."""
    hvd.init()
    points, labels, network = problem()
    if hvd.rank() == 1:
        for parameter in network.parameters():
            parameter.data.zero_()
    hvd.broadcast_parameters(network.state_dict(), root_rank=0)
    optimizer = wrapped(network, compression=getattr(hvd.Compression, compression))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1000)
    for _ in range(STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(network(own_part(points)), own_part(labels)).backward()
        optimizer.step()
        schedule.step()
    say(rank=hvd.rank(), parameters=parameters_of(network), is_torchs=isinstance(optimizer, torch.optim.SGD))


def two_passes():
    """Takes two passes per step, each with half of the worker's part, and reads the gradients before the step."""
    hvd.init()
    points, labels, network = problem()
    optimizer = wrapped(network, backward_passes_per_step=2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for half in range(2):
            x, y = own_part(points).chunk(2)[half], own_part(labels).chunk(2)[half]
            (functional.cross_entropy(network(x), y) / 2).backward()
        optimizer.synchronize()
        norm = torch.nn.utils.clip_grad_norm_(network.parameters(), 1e6).item()
        with optimizer.skip_synchronize():
            optimizer.step()
    say(rank=hvd.rank(), parameters=parameters_of(network), norm=norm)


def overflows(scale_of):
    """Trains with a loss scale; one step is skipped because the gradient of worker 1 overflows."""
    hvd.init()
    points, labels, network = problem()
    optimizer = wrapped(network)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000) if scale_of == "torch" else ByHand()
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(own_part(points)), own_part(labels))
        if step == 2 and hvd.rank() == 1:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)
        scaler.update()
    say(rank=hvd.rank(), parameters=parameters_of(network), scale=scaler.get_scale())


class ByHand:
    """Does what torch's GradScaler does, which before torch 2.3 works on GPUs only."""

    def __init__(self):
        self._scale, self._finite = 1024.0, True

    def scale(self, loss):
        return loss * self._scale

    def unscale_(self, optimizer):
        gradients = [each.grad.div_(self._scale) for each in optimizer.param_groups[0]["params"]]
        self._finite = all(each.isfinite().all() for each in gradients)

    def step(self, optimizer):
        if self._finite:
            optimizer.step()

    def update(self):
        self._scale *= 1 if self._finite else 0.5

    def get_scale(self):
        return self._scale


def differentiated():
    """Computes gradients through each collective and prints their differences from those of one process. For some collectives
    Horovod divides the gradients by the number of workers, for others it multiplies them by it."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    splits = [[(sender + receiver) % 3 for receiver in range(size)] for sender in range(size)]
    unequal, equal, to_all = range(1, size + 1), [4] * size, [2 * size] * size

    def exchanged(tensors, parts):
        return [torch.cat([each.split(part)[receiver] for each, part in zip(tensors, parts)]) for receiver in range(size)]

    # The rows of each worker; the collective; the results for all workers computed in one process; Horovod's factor.
    cases = {
        "allgather": (unequal, hvd.allgather, lambda all_: [torch.cat(all_)] * size, 1 / size),
        "mean": (equal, hvd.allreduce, lambda all_: [sum(all_) / size] * size),
        "sum": (equal, lambda own: hvd.allreduce(own, op=hvd.Sum, prescale_factor=0.5, postscale_factor=3.0),
                lambda all_: [1.5 * sum(all_)] * size),
        "grouped": (equal, lambda own: hvd.grouped_allreduce([own])[0], lambda all_: [sum(all_) / size] * size),
        "broadcast": (equal, lambda own: hvd.broadcast(own, 1), lambda all_: [all_[1]] * size, 1 / size),
        "any rows": ([size * each for each in unequal], hvd.alltoall,
                     lambda all_: exchanged(all_, [[worker + 1] * size for worker in range(size)])),
        "alltoall": (to_all, hvd.alltoall, lambda all_: exchanged(all_, [[2] * size] * size)),
        "splits": ([sum(each) for each in splits], lambda own: hvd.alltoall(own, splits[rank])[0],
                   lambda all_: exchanged(all_, splits)),
        "rows of the mean": (equal, hvd.reducescatter, lambda all_: (sum(all_) / size).tensor_split(size), size),
        "rows of the sum": (equal, lambda own: hvd.reducescatter(own, op=hvd.Sum),
                            lambda all_: sum(all_).tensor_split(size), size),
    }
    errors = {name: error_of(*case) for name, case in cases.items()}
    say(rank=rank, errors=errors)


def error_of(rows, collective, plain, factor=1):
    def contrast(worker, own, result):
        return ((own.detach() @ result.T).logsumexp(1).sum() if len(result) else 0) + (worker + 1) * result.square().sum()

    torch.manual_seed(7)
    tensors = [torch.randn(count, 2, dtype=torch.float64, requires_grad=True) for count in rows]
    own = tensors[hvd.rank()]
    sum(contrast(worker, *pair) for worker, pair in enumerate(zip(tensors, plain(tensors)))).backward()
    assert sum(each.grad.abs().sum() for each in tensors if each.grad is not None) > 0
    expected, own.grad = torch.zeros_like(own) if own.grad is None else own.grad, None
    contrast(hvd.rank(), own, collective(own)).backward()
    return (own.grad - expected * factor).abs().max().item()


def of_float64():
    """Reduces a gradient that float32 cannot represent."""
    hvd.init()
    exact = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    other = torch.nn.Parameter(torch.zeros(1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([other, exact], lr=1.0))
    exact.grad = torch.tensor([1.0 + hvd.rank() * 2.0**-40], dtype=torch.float64)
    optimizer.synchronize()
    say(rank=hvd.rank(), gradient=exact.grad.item(), type=str(other.grad.dtype))


def calls_of_horovod():
    """Makes calls with all of Horovod's arguments, and waits twice for a handle."""
    hvd.init()
    rank, network = hvd.rank(), problem()[2]
    hvd.DistributedOptimizer(sgd(network), num_groups=2, groups=None, sparse_as_dense=True)
    listed = [torch.tensor([rank + 5.0]), torch.tensor([rank + 7.0])]
    hvd.broadcast_parameters(listed, root_rank=1)
    hvd.broadcast_parameters([("first", listed[0])], root_rank=0)
    handle = hvd.allreduce_async(torch.tensor([1.0 + rank]))
    ones = [torch.ones(1), torch.tensor([rank])]
    say(rank=rank, twice=[hvd.synchronize(handle).item() for _ in range(2)], listed=[each.item() for each in listed],
        grouped=[each.item() for each in hvd.grouped_allreduce(ones, op=hvd.Sum, prescale_factor=2.0, postscale_factor=3.0)],
        integers=hvd.allreduce(torch.tensor([4]), op=hvd.Sum, prescale_factor=0.5).item(),
        object=hvd.broadcast_object(obj=bytes(range(256)) if rank == 0 else None) == bytes(range(256)),
        objects=hvd.allgather_object(obj=[rank]), last=hvd.join(device=rank))


def two_optimizers(order):
    """Worker 1 takes fewer steps of both optimizers than worker 0, and joins. With order "unequal" the workers step different
    optimizers first."""
    hvd.init()
    small, large = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1000))
    optimizers = [hvd.DistributedOptimizer(torch.optim.SGD([each], lr=0.5)) for each in (small, large)]
    if order == "unequal":
        optimizers[hvd.rank()].step()
    steps = [0, 1, 0, 1, 1, 0, 0] if hvd.rank() == 0 else [0, 1]
    for chosen in steps:
        optimizers[chosen].zero_grad()
        (small if chosen == 0 else large).sum().backward()
        optimizers[chosen].step()
    last = hvd.join()
    say(rank=hvd.rank(), last=last, values=[small.item(), large[0].item(), large[-1].item()])


def unequal_counts():
    """Worker 1 takes two steps fewer than worker 0, and joins."""
    hvd.init()
    points, labels, network = problem()
    optimizer = wrapped(network)
    steps = STEPS if hvd.rank() == 0 else STEPS - 2
    for _ in range(steps):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        optimizer.step()
    say(rank=hvd.rank(), last=hvd.join(), parameters=parameters_of(network))


def refusal_of(call):
    """Returns the error message of a call that the library refuses."""
    try:
        call()
    except hvd.ConfigError as error:
        return str(error)
    return None


def named(order):
    """Begins two named collectives of equal shape; with order "unequal" worker 1 calls them in the other order."""
    hvd.init()
    tensors = {"a": torch.tensor([1.0]), "b": torch.tensor([10.0])}
    names = ["b", "a"] if order == "unequal" and hvd.rank() == 1 else ["a", "b"]
    handles = [hvd.allreduce_async_(tensors[name], name=f"{name} of {'layer ' * 20}", op=hvd.Sum) for name in names]
    refused = [refusal_of(handle.wait) for handle in handles]
    hvd.barrier()
    say(rank=hvd.rank(), refused=refused, values=[each.item() for each in tensors.values()],
        others=[hvd.allgather(torch.tensor([hvd.rank()]), name="rows").tolist(),
                hvd.alltoall(torch.arange(2), name="exchange").tolist(),
                hvd.broadcast(torch.tensor([7]), 0, name="root").item(),
                hvd.broadcast_object("x", name="object"), hvd.allgather_object(1, name="objects")],
        unequal=refusal_of(lambda: hvd.broadcast(torch.ones(1), 0, name=f"of {hvd.rank()}")))


def unequal_use(what):
    """Both workers reduce equal values, but with different operations or factors."""
    hvd.init()
    op = (hvd.Sum, hvd.Average)[hvd.rank()]
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    calls = {"op": lambda: hvd.allreduce(torch.ones(3), op=op), "named op": lambda: hvd.allreduce(torch.ones(3), op=op, name="n"),
             "factor": lambda: hvd.allreduce(torch.ones(3), op=hvd.Sum, prescale_factor=1.0 + hvd.rank()),
             "sparse": lambda: hvd.sparse_allreduce_async(torch.eye(2).to_sparse(), "s", op)(),
             "optimizer": lambda: hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1), op=op).step()}
    say(rank=hvd.rank(), refused=refusal_of(lambda: [calls[what](), hvd.barrier()]))


def names_at_once():
    """Worker 0 calls two collectives of one name before worker 1 calls any."""
    hvd.init()
    everyone, values = hvd._own_job().everyone, torch.ones(2)
    if hvd.rank() == 1:
        everyone.receive(torch.empty(1), 0)
    handle = hvd.allreduce_async(values, name="loss", op=hvd.Sum)
    refused = refusal_of(lambda: hvd.allreduce_async(values, name="loss")) if hvd.rank() == 0 else None
    if hvd.rank() == 0:
        everyone.send(torch.ones(1), 1)
    sums = [handle.wait().tolist(), hvd.allreduce(values, name="loss", op=hvd.Sum).tolist()]
    group = [each.tolist() for each in hvd.grouped_allreduce([values, values], name="loss", op=hvd.Sum)]
    say(rank=hvd.rank(), refused=refused, sums=sums + group)


def joins_early(count):
    """Worker 1 takes one step and joins; the others take two more, and reduce further numbers after each."""
    hvd.init()
    weights = [torch.nn.Parameter(torch.zeros(3)) for _ in range(int(count))]
    optimizers = [hvd.DistributedOptimizer(torch.optim.SGD([each], lr=1.0)) for each in weights]
    said = []
    for step in range(1 if hvd.rank() == 1 else 3):
        for weight, optimizer in zip(weights, optimizers):
            weight.grad = torch.full((3,), step + 1.0)
            optimizer.step()
        said.append(reduced_numbers(hvd.rank(), step))
    refused = refusal_of(lambda: hvd.allgather(torch.ones(1))) if hvd.rank() == 0 else None
    last = hvd.join()
    say(rank=hvd.rank(), said=said, refused=refused, last=last, weight=weights[-1][0].item(),
        after=hvd.allgather(torch.tensor([hvd.rank()]), name="rank").tolist())


def reduced_numbers(rank, step):
    own = torch.tensor([rank + 1.0, -1.0])
    return [hvd.allreduce(own, name="loss").tolist(), hvd.allreduce(own.long() * 3, op=hvd.Sum, name="samples").tolist(),
            hvd.allreduce(own - 8, op=hvd.Max).tolist(), hvd.allreduce(own.int() + 8, op=hvd.Min).tolist(),
            hvd.allreduce(own + step, op=hvd.Product, compression=hvd.Compression.fp16).tolist(),
            hvd.reducescatter(torch.ones(4), op=hvd.Sum).tolist()]


def joins_before_a_metric():
    """Worker 1 joins, and the next call of worker 0 is not a step but an allreduce."""
    hvd.init()
    weight = torch.nn.Parameter(torch.zeros(3))
    hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0)).step()
    call = hvd.join if hvd.rank() == 1 else lambda: hvd.allreduce(torch.ones(1), name="loss")
    say(rank=hvd.rank(), refused=refusal_of(call))


def integers():
    hvd.init()
    exact = torch.tensor([2**60 + 1, -2**60 - 1, 2 * hvd.rank() - 2])
    say(rank=hvd.rank(), mean=hvd.allreduce(exact).tolist(),
        half=hvd.allreduce(torch.tensor([4097]), op=hvd.Sum, compression=hvd.Compression.fp16).item(),
        scaled=hvd.allreduce(torch.tensor([2**53 + 1]), op=hvd.Sum, prescale_factor=3.0, postscale_factor=2).item(),
        parts=[hvd._scale(torch.arange(1000) * count, 1.0, count).equal(torch.arange(1000)) for count in range(1, 100)])


def hooks():
    """Counts the calls of step hooks of a distributed optimizer that has loaded a state."""
    hvd.init()
    network = problem()[2]
    optimizer = wrapped(network)
    hvd.broadcast_optimizer_state(optimizer)
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    network(problem()[0]).sum().backward()
    optimizer.step()
    say(rank=hvd.rank(), calls=calls)


def scheduler_before():
    """Uses a scheduler of the optimizer that hvd.DistributedOptimizer wraps; then also one of the optimizer that it returns."""
    hvd.init()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ends = [scheduled(again) for again in (False, True)]
    say(rank=hvd.rank(), warned=[str(each.message) for each in warned if "step" in str(each.message)], ends=ends)


def scheduled(again):
    weight = torch.nn.Parameter(torch.zeros(1))
    plain = torch.optim.SGD([weight], lr=1.0)
    schedules = [torch.optim.lr_scheduler.StepLR(plain, step_size=1, gamma=0.5)]
    optimizer = hvd.DistributedOptimizer(plain)
    if again:
        schedules.append(torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=1.0))
    for _ in range(2):
        weight.grad = torch.tensor([1.0 + 2 * hvd.rank()])
        optimizer.step()
        for schedule in schedules:
            schedule.step()
    return [weight.item(), optimizer.param_groups[0]["lr"]]


def later_parameters():
    """Unfreezes a parameter after hvd.DistributedOptimizer was called, and adds another one."""
    hvd.init()
    first, frozen, added = (torch.nn.Parameter(torch.zeros(2, dtype=dtype))
                            for dtype in (torch.float32, torch.float32, torch.float64))
    frozen.requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([first, frozen], lr=1.0))
    own = hvd.rank() + 1.0
    for step in range(3):
        if step == 1:
            frozen.requires_grad_(True)
        if step == 2:
            optimizer.add_param_group({"params": [added]})
        optimizer.zero_grad()
        (sum((each * own).sum() for each in (first, frozen, added) if each.requires_grad)).backward()
        optimizer.step()
    say(rank=hvd.rank(), values=[each.tolist() for each in (first, frozen, added)], last=hvd.join())


def unpicklable():
    """Sends an object that pickle cannot serialize; then does so with a stand-in for cloudpickle that can."""
    hvd.init()
    sys.modules["cloudpickle"] = None
    own = (lambda: 1) if hvd.rank() == 0 else "plain"
    refused = [refusal_of(lambda: hvd.broadcast_object(own, 0)), refusal_of(lambda: hvd.allgather_object(own))]
    sys.modules["cloudpickle"] = types.SimpleNamespace(dumps=lambda _: pickle.dumps("by cloudpickle"))
    say(rank=hvd.rank(), refused=refused, objects=hvd.allgather_object(own))


def rows():
    """Gathers and scatters the rows of several tensors."""
    hvd.init()
    whole, integers_ = torch.arange(4.0), torch.arange(3)
    own = [torch.tensor([hvd.rank()] * (hvd.rank() + 1)), torch.tensor([[0.5]])]
    calls = [hvd.synchronize(hvd.reducescatter_async(whole, op=hvd.Sum)), hvd.synchronize(hvd.reducescatter_async(whole, "a")),
             *hvd.grouped_reducescatter([whole, integers_], op=hvd.Sum),
             *hvd.synchronize(hvd.grouped_reducescatter_async([whole, integers_]))]
    say(rank=hvd.rank(), scattered=[each.tolist() for each in calls],
        gathered=[[each.tolist() for each in found]
                  for found in (hvd.grouped_allgather(own), hvd.synchronize(hvd.grouped_allgather_async(own, "b")))])


def in_place(rank):
    tensors = [torch.tensor([float(rank)]), torch.tensor([1.0, 2.0])]
    hvd.grouped_allreduce_(tensors)
    return [each.tolist() for each in tensors]


def places():
    """Prints the ranks of this worker within its host and across hosts."""
    hvd.init()
    say(rank=hvd.rank(), local=[hvd.local_rank(), hvd.local_size()], cross=[hvd.cross_rank(), hvd.cross_size()],
        homogeneous=hvd.is_homogeneous(), enabled=[hvd.mpi_enabled(), hvd.gloo_enabled(), hvd.mpi_threads_supported()])


def collectives():
    hvd.init()
    rank = hvd.rank()
    handle = hvd.allreduce_async(torch.tensor([1.0, rank]), op=hvd.Sum)
    state = sgd(torch.nn.Linear(1, 1))
    state.param_groups[0]["lr"] = 0.5 + rank
    hvd.broadcast_optimizer_state(state, root_rank=1)
    say(rank=rank, size=hvd.size(), mean=hvd.allreduce(torch.tensor([1.0, rank])).tolist(),
        integers=hvd.allreduce(torch.tensor([3 + rank])).tolist(), sum=hvd.synchronize(handle).tolist(),
        done=hvd.poll(handle), half=hvd.allreduce(torch.tensor([rank + 0.5]), compression=hvd.Compression.fp16).tolist(),
        rows=hvd.allgather(torch.full((rank + 1, 2), rank)).tolist(), heard=hvd.broadcast(torch.tensor([rank]), 1).tolist(),
        object=hvd.broadcast_object({"from": rank}, 1), objects=hvd.allgather_object("x" * rank),
        grouped=[each.tolist() for each in hvd.synchronize(
            hvd.grouped_allreduce_async([torch.tensor([rank + 1.0]), torch.tensor([[rank]])], op=hvd.Sum))],
        in_place=in_place(rank), exchanged=hvd.alltoall(torch.arange(3) + 10 * rank).tolist(),
        unequal=[each.tolist() for each in hvd.alltoall(torch.full((rank + 1, 1), rank), splits=[0] * 2 + [rank + 1])],
        part=hvd.reducescatter(torch.arange(4.0) + rank, op=hvd.Sum).tolist(),
        later=hvd.synchronize(hvd.allgather_async(torch.tensor([rank]))).tolist(),
        built=[getattr(hvd, f"{name}_built")() for name in ("mpi", "gloo", "nccl", "ddl", "ccl", "cuda", "rocm")],
        greatest=hvd.allreduce(torch.tensor([rank]), op=hvd.Max).tolist(), rate=state.param_groups[0]["lr"])
    hvd.shutdown()


def unequal_broadcast(what):
    """Workers call a broadcast with different types, shapes or roots."""
    hvd.init()
    second = hvd.rank() == 1
    tensor = torch.ones(3 if second and what == "shapes" else 2, dtype=torch.int32 if second and what == "types" else torch.float32)
    say(rank=hvd.rank(), refused=refusal_of(lambda: hvd.broadcast(tensor, int(second and what == "roots"))))


def halves():
    """Scales values of float16 by a factor that float16 would round."""
    hvd.init()
    own = torch.tensor([-57.0, 33.0, 91.0], dtype=torch.float16)
    say(rank=hvd.rank(), scaled=hvd.allreduce(own, op=hvd.Sum, prescale_factor=0.1915194503788923).tolist(),
        expected=(2 * (own.float() * 0.1915194503788923).half()).tolist())


def keeps_sparse():
    """Trains with sparse gradients; then reduces the same gradients twice, which gives a warning."""
    hvd.init()
    torch.manual_seed(3)
    bag = torch.nn.EmbeddingBag(6, 2, sparse=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(bag.parameters(), lr=0.1))
    for step in range(3):
        optimizer.zero_grad()
        bag(torch.tensor([[hvd.rank() + step, 5]])).sum().backward()
        optimizer.step()
    bag(torch.tensor([[0]])).sum().backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        optimizer.step()
    say(rank=hvd.rank(), weight=bag.weight.flatten().tolist(), warned=[str(each.message) for each in warned])


def sets():
    """Uses two process sets: one of workers 0 and 2, and one of worker 1."""
    hvd.init()
    rank = hvd.rank()
    outer, inner = hvd.add_process_set([2, 0]), hvd.add_process_set(hvd.ProcessSet([1]))
    own = inner if rank == 1 else outer
    x = torch.ones(own.size(), requires_grad=True)
    hvd.alltoall(x, process_set=own).sum().backward()
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), process_set=outer)
    weight.grad = torch.tensor([10.0 if rank == 1 else 1.0 + rank / 2])
    optimizer.step()
    sparse = torch.sparse_coo_tensor([[rank, 1]], [float(rank), 1.0], (3,))
    values = {
        "mean": hvd.allreduce(torch.tensor([rank + 1.0]), process_set=own).tolist(),
        "sum": hvd.allreduce(torch.tensor([rank + 1]), op=hvd.Sum, process_set=own).tolist(),
        "rows": hvd.allgather(torch.full((rank + 1, 1), rank), process_set=own).tolist(),
        "root": hvd.broadcast(torch.tensor([rank]), 1 if rank == 1 else 2, process_set=own).tolist(),
        "object": hvd.broadcast_object(f"of {rank}", 1 if rank == 1 else 2, process_set=own),
        "part": hvd.reducescatter(torch.full((2,), rank + 1.0), process_set=own).tolist(),
        "exchanged": hvd.alltoall(torch.arange(2) + 10 * rank, process_set=own).tolist(),
        "gradient": x.grad[:1].tolist(),
        "sparse": hvd.sparse_allreduce_async(sparse, "s", hvd.Sum, process_set=own)().to_dense().tolist()}
    hvd.barrier(process_set=own)
    say(rank=rank, size=[outer.size(), inner.size()], own=[outer.rank(), inner.rank()],
        included=[outer.included(), inner.included()], values=values, weight=weight.item(),
        removed=[hvd.remove_process_set(outer), hvd.remove_process_set(outer)])


def joins_by_turns():
    """Each worker is the last to join once."""
    hvd.init()
    last = []
    for turn in range(3):
        if hvd.rank() == turn:
            time.sleep(0.5)  # the test compares the wait of the others with this
        last.append(hvd.join())
    say(rank=hvd.rank(), last=last)


def misuse():
    refused = {}

    def refusal(name, call):
        try:
            call()
        except (hvd.ConfigError, AttributeError) as error:
            refused[name] = str(error)

    refusal("before init", hvd.rank)
    refusal("some workers", lambda: hvd.init(comm=[0]))
    first = hvd.ProcessSet([0])
    hvd.init(process_sets=[first])
    refusal("a set twice", lambda: hvd.add_process_set([0]))
    refusal("all", lambda: hvd.add_process_set([1, 0]))
    refusal("no rank", lambda: hvd.add_process_set([0, 5]))
    if hvd.rank() == 1:
        refusal("not of it", lambda: hvd.allreduce(torch.ones(1), process_set=first))
    else:
        refusal("other root", lambda: hvd.broadcast(torch.ones(1), 1, process_set=first))
    hvd.remove_process_set(first)
    refusal("closed", lambda: hvd.barrier(process_set=first))
    network = problem()[2]
    refusal("two words", lambda: hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum))
    refusal("names", lambda: hvd.DistributedOptimizer(sgd(network), named_parameters=[]))
    turned = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
    for compression in (hvd.Compression.none, hvd.Compression.fp16):
        refusal("complex", lambda: hvd.DistributedOptimizer(torch.optim.SGD([turned], lr=1), compression=compression))
    optimizer = hvd.DistributedOptimizer(sgd(network))
    refusal("twice", lambda: hvd.DistributedOptimizer(optimizer))
    refusal("greatest", lambda: hvd.allreduce(torch.ones(1, requires_grad=True), op=hvd.Max).sum().backward())
    say(rank=hvd.rank(), refused=refused)


if __name__ == "__main__":
    run_calls(globals(), hvd.shutdown)
