"""Scripts for Horovod's interface, for horovod_test.py: horovod_scripts.py NAME. Each prints what the test looks at."""
import json
import sys

import syncopate_torch.horovod as hvd
import torch
from scripts import SAMPLES, STEPS, parameters_of, problem, sgd
from torch.nn import functional


def say(**facts):
    print(json.dumps(facts), flush=True)


def own_part(tensor):
    return tensor[SAMPLES * hvd.rank() // hvd.size():SAMPLES * (hvd.rank() + 1) // hvd.size()]


def wrapped(network, **options):
    return hvd.DistributedOptimizer(sgd(network), named_parameters=network.named_parameters(), **options)


def training(compression="none"):
    """Each worker has an equal part of the whole dataset, so that the mean gradient is that of one process."""
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
    """Half of the own part in each of two passes, and gradients that are looked at before the step."""
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


def unequal_counts():
    """Worker 1 has two steps less than worker 0, and joins."""
    hvd.init()
    points, labels, network = problem()
    optimizer = wrapped(network)
    steps = STEPS if hvd.rank() == 0 else STEPS - 2
    for _ in range(steps):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        optimizer.step()
    say(rank=hvd.rank(), last=hvd.join(), parameters=parameters_of(network))


def in_place(rank):
    tensors = [torch.tensor([float(rank)]), torch.tensor([1.0, 2.0])]
    hvd.grouped_allreduce_(tensors)
    return [each.tolist() for each in tensors]


def places():
    """Who this worker is on which host."""
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


def misuse():
    refused = {}

    def refusal(name, call):
        try:
            call()
        except hvd.ConfigError as error:
            refused[name] = str(error)

    refusal("before init", hvd.rank)
    hvd.init()
    network = problem()[2]
    refusal("two words", lambda: hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum))
    refusal("names", lambda: hvd.DistributedOptimizer(sgd(network), named_parameters=[]))
    optimizer = wrapped(network)
    optimizer.synchronize()
    refusal("zero_grad", optimizer.zero_grad)
    say(rank=hvd.rank(), refused=refused)


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](*sys.argv[2:])
