"""Training scripts for gpu_checks.py: gpu_scripts.py NAME [ARGUMENT...]. Each worker prints what the check judges as a line of
JSON. CHECK_DEVICE is the device of the workers [cuda]; CHECK_CPU_RANK that of a worker that trains on the CPU."""
import json
import os
import statistics
import sys
import time

import torch
from torch import distributed
from torch.nn import functional

import syncopate_torch as syncopate
from syncopate_torch.amp import GradScaler

SAMPLES, BATCH, CLASSES = 2048, 64, 10
ALLREDUCE_VALUES = 11_173_962  # the parameters of ResNet-18 for ten classes: 44.7 MB


def device_of(rank):
    return torch.device("cpu" if os.environ.get("CHECK_CPU_RANK") == str(rank) else os.environ.get("CHECK_DEVICE", "cuda"))


def say(job, **facts):
    print(json.dumps({"rank": job.rank, **facts}), flush=True)


def problem():
    """Returns images of ten classes that differ by a pattern, and their labels."""
    generator = torch.Generator().manual_seed(1)
    patterns = torch.randn(CLASSES, 1, 28, 28, generator=generator)
    labels = torch.randint(CLASSES, (SAMPLES,), generator=generator)
    return patterns[labels] + torch.randn(SAMPLES, 1, 28, 28, generator=generator), labels


def lenet():
    torch.manual_seed(2)
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES))


def wide():
    """A network that keeps a GPU busy: eight layers of 256 channels."""
    torch.manual_seed(2)
    nn = torch.nn
    layers = [nn.Conv2d(1, 256, 3, stride=2, padding=1), nn.ReLU()]
    for _ in range(7):
        layers += [nn.Conv2d(256, 256, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, CLASSES))


def batch_of(step, rank=0, size=1):
    """Returns the first and the last index of a worker's part of a batch."""
    begin = step * BATCH % SAMPLES
    part = BATCH // size
    return begin + rank * part, begin + (rank + 1) * part


def parameters_of(network):
    return torch.cat([parameter.detach().float().cpu().flatten() for parameter in network.parameters()])


def reference(steps):
    """Returns the parameters after the same steps over whole batches on the CPU."""
    points, labels = problem()
    network = lenet()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.5)
    for step in range(steps):
        first, last = batch_of(step)
        optimizer.zero_grad()
        functional.cross_entropy(network(points[first:last]), labels[first:last]).backward()
        optimizer.step()
    return parameters_of(network)


def trains(scheme, steps, *kinds):
    """Trains LeNet-5. kinds: any of `stream`, `bf16`, `autocast-bf16`, `autocast-fp16`, `compile`, `channels-last`, `fused`,
    `group`."""
    if "group" in kinds:
        distributed.init_process_group("gloo")
    options = {"aggregate": "torch"} if "group" in kinds else {}
    job = syncopate.init(scheme, {**options, "mini-batches": 2} if scheme == "nbssgd" else options)
    device, steps = device_of(job.rank), int(steps)
    points, labels = problem()
    network = lenet().to(device)
    if "bf16" in kinds:
        network = network.bfloat16()
    if "channels-last" in kinds:
        network = network.to(memory_format=torch.channels_last)
    if job.rank > 0:
        torch.nn.init.zeros_(network[0].weight)
    job.broadcast_parameters(network)
    own = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.5, **({"fused": True} if "fused" in kinds else {}))
    optimizer = job.DistributedOptimizer(own, network, batch_size=BATCH // job.size)
    scaler = GradScaler(job, enabled="autocast-fp16" in kinds)
    forward = torch.compile(network) if "compile" in kinds else network
    lower = {"autocast-bf16": torch.bfloat16, "autocast-fp16": torch.float16}
    precision = next((lower[kind] for kind in kinds if kind in lower), None)
    losses = []

    def take_steps():
        for step in range(steps):
            first, last = batch_of(step, job.rank, job.size)
            x, y = points[first:last].to(device, network[0].weight.dtype), labels[first:last].to(device)
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype=precision, enabled=precision is not None):
                loss = functional.cross_entropy(forward(x).float(), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())

    if "stream" in kinds and device.type == "cuda":
        with torch.cuda.stream(torch.cuda.Stream()):
            take_steps()
    else:
        take_steps()
    optimizer.finish()
    found, facts = parameters_of(network), {}
    if job.rank == 0:
        right = reference(steps)
        facts = {"distance": float((found - right).norm() / right.norm())}
    models = job.allgather(found)
    say(job, first=statistics.mean(losses[:5]), last=statistics.mean(losses[-5:]), device=str(device),
        equal=all(torch.equal(models[0], each) for each in models), **facts)


def overlap_is_refused():
    job = syncopate.init("ssgd", {"overlap": "on"})
    network = lenet().to(device_of(job.rank))
    try:
        job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=BATCH)
        reason = ""
    except syncopate.ConfigError as error:
        reason = str(error)
    say(job, reason=reason)


def memory(steps):
    """Takes many steps, and compares the memory after a tenth of them with that at the end, in MB."""
    job = syncopate.init("ssgd")
    device = device_of(job.rank)
    points, labels = (each[:BATCH].to(device) for each in problem())
    network = lenet().to(device)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.01), network, batch_size=BATCH)

    def used():
        pages = int(open("/proc/self/statm", encoding="ascii").read().split()[1])
        return (torch.cuda.memory_allocated() if device.type == "cuda" else 0) / 1e6, pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    early = None
    for step in range(int(steps)):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        optimizer.step()
        if step == int(steps) // 10:
            early = used()
    late = used()
    optimizer.finish()
    say(job, device_grew=late[0] - early[0], host_grew=late[1] - early[1])


def sums():
    """Times the sum of 44.7 MB of two workers by the job and by Gloo, one after the other, and the copies that it needs by
    themselves; in seconds, medians."""
    distributed.init_process_group("gloo")
    job = syncopate.init()
    device = device_of(job.rank)
    values = torch.ones(ALLREDUCE_VALUES, device=device)
    pinned = torch.empty(ALLREDUCE_VALUES, pin_memory=device.type == "cuda")

    def timed(call):
        job.barrier()
        begun = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begun

    def copies():
        pinned.copy_(values)
        values.copy_(pinned)

    calls = {"syncopate": lambda: job.allreduce(values), "gloo": lambda: distributed.all_reduce(values), "copies": copies}
    times = {name: [] for name in calls}
    for _ in range(15):
        for name, call in calls.items():
            times[name].append(timed(call))
            values.fill_(1)
    summed = values.clone()
    job.allreduce(summed)
    say(job, right=bool((summed == job.size).all()), **{name: statistics.median(each[3:]) for name, each in times.items()})


def alone():
    """Times a step of a job of one worker and a step of plain torch, in turn; in seconds, medians of blocks of 50 steps."""
    job = syncopate.init()
    device = device_of(0)
    points, labels = (each[:BATCH].to(device) for each in problem())
    plain, ours = wide().to(device), wide().to(device)
    sgd = torch.optim.SGD(plain.parameters(), lr=0.01)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.01), ours, batch_size=BATCH)

    def block(network, stepper, steps=50 if device.type == "cuda" else 1):
        begun = time.perf_counter()
        for _ in range(steps):
            stepper.zero_grad()
            functional.cross_entropy(network(points), labels).backward()
            stepper.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - begun) / steps

    times = {"plain": [], "syncopate": []}
    for _ in range(8):
        times["plain"].append(block(plain, sgd))
        times["syncopate"].append(block(ours, optimizer))
    optimizer.finish()
    say(job, **{name: statistics.median(each[2:]) for name, each in times.items()})


def paced(scheme, network, seconds):
    """Trains for some time, and prints each worker's speed and computing time ratio."""
    job = syncopate.init(scheme)
    device = device_of(job.rank)
    points, labels = problem()
    module = {"lenet": lenet, "wide": wide}[network]().to(device)
    data = job.partition_dataset(torch.utils.data.TensorDataset(points, labels), batch_size=BATCH * job.size)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(module.parameters(), lr=0.02), module)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        for x, y in data:
            optimizer.zero_grad()
            functional.cross_entropy(module(x.to(device)), y.to(device)).backward()
            optimizer.step(weight=len(x))
            if time.monotonic() > end:
                break
    optimizer.finish()
    with torch.no_grad():
        loss = functional.cross_entropy(module(points[:512].to(device)), labels[:512].to(device)).item()
    every = job.summary(everyone=True)
    say(job, device=str(device), loss=loss, samples_per_second=every["samples_per_second"],
        computing=[worker["computing_time_ratio"] for worker in every["workers"]])


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](*sys.argv[2:])
