"""Training scripts for loops_test.py: loops_scripts.py NAME [ARGUMENT...]. Each prints what the test checks."""
import gc
import math
import os
import signal
import sys

import torch
import syncopate_torch as syncopate
from syncopate_torch.integrations.loaders import TrainingOrder
from torch.nn import functional
from torch.optim.lr_scheduler import StepLR

from calls import run_calls, say

SAMPLES = 65  # worker 0 has 33 of them, worker 1 has 32


def problem():
    """Returns points of six values, their labels in three classes, and a network with fixed initial parameters."""
    torch.manual_seed(3)
    points = torch.randn(SAMPLES, 6)
    labels = (points @ torch.randn(6, 3)).argmax(1)
    return points, labels, torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def parameters_of(network):
    return [value for parameter in network.parameters() for value in parameter.detach().flatten().tolist()]


def scheduled():
    """Trains with a learning rate that falls after each epoch of the worker's own loop."""
    job = syncopate.init()
    points, labels, network = problem()
    data = job.partition_dataset(torch.utils.data.TensorDataset(points, labels), batch_size=32)
    sgd = torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9)
    schedule = StepLR(sgd, step_size=1, gamma=0.5)
    sizes = []
    with job.DistributedOptimizer(sgd, network) as optimizer:
        for _ in range(4):
            for x, y in data:
                sizes.append(len(x))
                optimizer.zero_grad()
                functional.cross_entropy(network(x), y).backward()
                optimizer.step(weight=len(x))
            schedule.step()
    say(rank=job.rank, sizes=sizes, length=len(data), parameters=parameters_of(network))


def followed():
    """Worker 1 takes fewer steps than worker 0, under a schedule by samples, and waits for it at each epoch's end."""
    job = syncopate.init()
    points, labels, network = problem()
    sgd = torch.optim.SGD(network.parameters(), lr=0.2)
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=8)
    job.scheduler(StepLR(sgd, step_size=1, gamma=0.5), optimizer, every=24)
    aligned = []
    for epoch in range(3):
        for _ in range(6 if job.rank == 0 else 2):
            optimizer.zero_grad()
            functional.cross_entropy(network(points[:8]), labels[:8]).backward()
            optimizer.step()
        if epoch < 2:
            optimizer.align()
            aligned.append(parameters_of(network))
    optimizer.finish()
    say(rank=job.rank, rate=sgd.param_groups[0]["lr"], aligned=aligned, parameters=parameters_of(network))


def rates_under_nbssgd(way):
    """Worker 0 takes eight times as many steps as worker 1, which so takes those of several rounds at once. The learning rate
    falls by the samples of the job, in each step of the own loop, or where both workers are at the same place."""
    job = syncopate.init("nbssgd")
    points, labels, network = problem()
    sgd = torch.optim.SGD(network.parameters(), lr=0.5, momentum=0.5)
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=8)
    schedule = StepLR(sgd, step_size=1, gamma=0.9)
    if way == "by samples":
        job.scheduler(schedule, optimizer, every=24)
    try:
        for _ in range(3):
            for _ in range(16 if job.rank == 0 else 2):
                take_step(optimizer, network, points[8 * job.rank:], labels[8 * job.rank:])
                if way == "by steps":
                    schedule.step()
            optimizer.align()
            if way == "aligned":
                schedule.step()
        optimizer.finish()
    except syncopate.ConfigError as error:
        say(rank=job.rank, refused=str(error))
        return
    say(rank=job.rank, rate=sgd.param_groups[0]["lr"], steps=optimizer.steps_taken, parameters=parameters_of(network))


def take_step(optimizer, network, points, labels):
    """Takes a step with the first eight samples."""
    optimizer.zero_grad()
    functional.cross_entropy(network(points[:8]), labels[:8]).backward()
    optimizer.step()


def steps_with_other_settings(scheme, name, value):
    """Worker 1 changes a setting of its optimizer before the third step."""
    job = syncopate.init(scheme)
    points, labels, network = problem()
    sgd = torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9)
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=8)
    for step in range(4):
        if step == 2 and job.rank == 1:
            sgd.param_groups[0][name] = float(value)
        take_step(optimizer, network, points, labels)
    optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(network))


def changes_its_module(value):
    """Each worker sets a bias in the middle of training: worker 1 to `value`, worker 0 to 1."""
    job = syncopate.init()
    points, labels, network = problem()
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.2), network, batch_size=8)
    take_step(optimizer, network, points, labels)
    with torch.no_grad():
        network[0].bias.fill_(float(value) if job.rank == 1 else 1)
    optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(network))


def shows_a_batch(scheme):
    """Worker 0 looks at the first batch before the training and after each epoch; all train on whole epochs."""
    job = syncopate.init(scheme)
    points, _, network = problem()
    data = job.partition_dataset(torch.utils.data.TensorDataset(torch.arange(SAMPLES)), batch_size=16)
    looks = [next(iter(data))[0].tolist() for _ in range(2) if job.rank == 0]
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.01), network)
    epochs, numbers = [], []
    for _ in range(3):
        seen = torch.zeros(SAMPLES, dtype=torch.int64)
        for index, (x,) in enumerate(data):
            if index == 0 and job.rank == 0:
                looks.append(x.tolist())
            seen[x] += 1
            optimizer.zero_grad()
            network(points[x]).sum().backward()
            optimizer.step(weight=len(x))
        optimizer.align()
        epochs.append(job.allreduce(seen).tolist())
        numbers.append(data.batch_sampler.epoch)
        if job.rank == 0:
            looks.append(next(iter(data))[0].tolist())
    optimizer.finish()
    say(rank=job.rank, epochs=epochs, looks=looks, numbers=numbers)


def forks():
    """Forks children in the middle of training, each of which ends in another way."""
    job = syncopate.init()
    points, labels, network = problem()
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.2), network, batch_size=8)
    take_step(optimizer, network, points, labels)
    statuses = []
    for way in ("ends", "raises", "forgets"):
        child = os.fork()
        if child == 0 and way == "raises":
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            raise ValueError("of a child")
        if child == 0 and way == "forgets":
            del optimizer, job
            gc.collect()
        if child == 0:
            sys.exit(7)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    take_step(optimizer, network, points, labels)
    optimizer.finish()
    say(rank=job.rank, statuses=statuses, parameters=parameters_of(network))


def counts(scheme):
    """Prints the total samples that each worker knows, after its own steps and after it has waited for the others."""
    job = syncopate.init(scheme)
    points, labels, network = problem()
    sgd = torch.optim.SGD(network.parameters(), lr=0.2)
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=8)
    job.scheduler(StepLR(sgd, step_size=1, gamma=0.5), optimizer, every=24)
    known = []
    for _ in range(2):
        for _ in range(4 + 2 * job.rank):
            take_step(optimizer, network, points, labels)
        known.append(optimizer.samples)
        optimizer.align()
        known.append(optimizer.samples)
    say(rank=job.rank, known=known, saved=job.state_dict()["parts"]["optimizer.0"]["samples"], rate=sgd.param_groups[0]["lr"])


def goes_on_with_ssgd(scheme):
    """Trains by `scheme`, in which each worker has its own optimizer and momenta, and continues from its state by ssgd."""
    points, labels, _ = problem()

    def trained(job, steps, state=None):
        if state is not None:
            job.load_state_dict(state)
        network = problem()[2]
        optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9), network, batch_size=8)
        for step in range(steps):
            first = 8 * (2 * (step % 4) + job.rank)
            take_step(optimizer, network, points[first:], labels[first:])
        optimizer.align()
        state = job.state_dict()
        optimizer.finish()
        job.leave()
        return parameters_of(network), state

    _, state = trained(syncopate.init(scheme), 6)
    own = state["parts"]["optimizer.0"]["optimizer"]["state"][0]["momentum_buffer"].tolist()
    say(rank=state["rank"], own=own, parameters=trained(syncopate.init("ssgd"), 3, state)[0])


def counts_its_own(scheme):
    """Worker 1 takes no step. Prints the total samples that worker 0 knows after each step, and the steps of a scheduler."""
    job = syncopate.init(scheme, options={"on-nan": "skip"})
    points, labels, network = problem()
    sgd = torch.optim.SGD(network.parameters(), lr=0.2)
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=8)
    scheduler = job.scheduler(StepLR(sgd, step_size=1, gamma=0.5), optimizer, every=8)
    known = []
    for step in range(8 if job.rank == 0 else 0):
        optimizer.zero_grad()
        (functional.cross_entropy(network(points), labels) * (math.nan if step == 3 else 1)).backward()
        optimizer.step()
        known.append(optimizer.samples)
    optimizer.align()
    say(rank=job.rank, known=known, samples=optimizer.samples, steps=scheduler.state_dict()["steps"])


def goes_on_at_unequal_rates(scheme, file=None):
    """Workers take different numbers of steps, and the learning rate and momentum of each follow its own steps."""
    job = syncopate.init(scheme)
    if file is not None:
        job.load_state_dict(torch.load(file.format(scheme, job.rank)))
    points, labels, network = problem()
    sgd = torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(sgd, max_lr=0.2, total_steps=60)
    optimizer = job.DistributedOptimizer(sgd, network, batch_size=8)
    for _ in range(4 + job.rank):
        take_step(optimizer, network, points, labels)
        schedule.step()
    optimizer.align()
    torch.save(job.state_dict(), f"{scheme}.{job.rank}")
    group = optimizer.param_groups[0]
    say(rank=job.rank, rate=group["lr"], momentum=group["momentum"], samples=optimizer.samples)


def saves_each_epoch(scheme, epochs, is_killed=False):
    """Each worker saves its own state after each epoch. With `is_killed`, worker 1 is killed in the last epoch after worker 0
    has saved and before it saves itself."""
    job = syncopate.init(scheme)
    file = f"{scheme}.{job.rank}"
    if os.path.exists(file):
        job.load_state_dict(torch.load(file))
    points, labels, network = problem()
    data = job.partition_dataset(torch.utils.data.TensorDataset(points, labels), batch_size=16)
    try:
        optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.2), network)
    except syncopate.ConfigError as error:
        say(rank=job.rank, refused=str(error))
        return
    for epoch in range(data.batch_sampler.epoch, int(epochs)):
        for x, y in data:
            optimizer.zero_grad()
            functional.cross_entropy(network(x), y).backward()
            optimizer.step(weight=len(x))
        optimizer.align()
        is_last = epoch + 1 == int(epochs)
        if is_killed and is_last and job.rank == 1:
            open("saved").read()
            os.kill(os.getpid(), signal.SIGKILL)
        torch.save(job.state_dict(), file)
        if is_killed and is_last:
            open("saved", "w").close()
    optimizer.finish()
    say(rank=job.rank, refused="", parameters=parameters_of(network))


def of_moments():
    """Loads states of different moments on the two workers and prints the errors; None: worker 1 loads no state."""
    job = syncopate.init()
    _, _, network = problem()
    place, moment = {"epoch": 1, "step": 3}, {"job": "3f", "alignments": 2, "round": 7}
    cases = [None, ({**place, "epoch": 2}, moment, 2), (place, {**moment, "job": "4a"}, 2), (place, {**moment, "alignments": 3}, 2),
             ({**place, "step": 4}, {**moment, "round": 8}, 2), (place, moment, 3), ({}, {**moment, "round": 8}, 2),
             ({**place, "epoch": 2}, {}, 2), ({**place, "step": 4}, {}, 2)]
    says = []
    for case in cases:
        case = (place, moment, 2) if job.rank == 0 else case
        if case is not None:
            parts = {"sampler.10": {"epoch": 50 + job.rank, "step": 0}, "sampler.2": case[0]} if case[0] else {}
            parts["optimizer.0"] = {"moment": case[1]}
            job.load_state_dict({"format": 1, "rank": 0, "size": case[2], "parts": parts, "random": None})
        try:
            job.expect_same_moment()
            says.append("")
        except syncopate.ConfigError as error:
            says.append(str(error))
    say(rank=job.rank, says=says)


def accumulated():
    """Workers call `align` between the two passes of a step."""
    job = syncopate.init()
    points, labels, network = problem()
    sgd = torch.optim.SGD(network.parameters(), lr=0.2)
    with job.DistributedOptimizer(sgd, network, batch_size=SAMPLES) as optimizer:
        for part in (slice(0, 30), slice(30, SAMPLES)):
            loss = functional.cross_entropy(network(points[part]), labels[part], reduction="sum") / SAMPLES
            loss.backward()
            optimizer.align(f"before {part.stop}")
        optimizer.step()
    say(rank=job.rank, parameters=parameters_of(network))


class Masked(torch.nn.Module):
    """A layer with a mask, as attention has one, and a cache that is not part of the module's state."""

    def __init__(self, rank):
        super().__init__()
        self.layer = torch.nn.Linear(6, 3)
        self.register_buffer("mask", torch.full((2, 2), -math.inf).triu(1))
        self.register_buffer("cache", torch.tensor([math.inf, float(rank)]), persistent=False)


def masked(scheme, *options):
    job = syncopate.init(scheme, options=dict(option.split("=") for option in options))
    points, labels, _ = problem()
    network = Masked(job.rank)
    with job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=16) as optimizer:
        for _ in range(12):
            optimizer.zero_grad()
            functional.cross_entropy(network.layer(points), labels).backward()
            optimizer.step()
    say(rank=job.rank, mask=str(network.mask.tolist()), cache=str(network.cache.tolist()))


def set_in_the_middle(scheme, *options):
    """Worker 0 sets all parameters in the middle of training and before its end, while workers take different numbers of steps
    that hardly change them. Prints the smallest and the largest parameter after each of these, and the buffers after the first.
    """
    job = syncopate.init(scheme, options=dict(option.split("=") for option in options))
    points, labels, network = problem()
    network.append(torch.nn.BatchNorm1d(3))
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=1e-6), network, batch_size=16)
    found = []

    def take(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            functional.cross_entropy(network(points), labels).backward()
            optimizer.step()

    def set_all(value):
        if job.rank == 0:
            with torch.no_grad():
                for each in [*network.parameters(), network[3].running_mean]:
                    each.fill_(value)
        job.broadcast_parameters(network if value == 7 else network.state_dict())
        look()

    def look():
        values = parameters_of(network)
        found.append([min(values), max(values)])

    take(4 + 3 * job.rank)
    set_all(7)
    buffers = network[3].running_mean.tolist()
    take(5 - 2 * job.rank)
    optimizer.align()
    look()
    take(2)
    set_all(9)
    optimizer.finish()
    look()
    say(rank=job.rank, found=found, buffers=buffers)


def owns_memory():
    """Prints for each tensor of the module, after the training, the number of its values and the size of its storage."""
    job = syncopate.init("esync")
    points, labels, network = problem()
    network.append(torch.nn.BatchNorm1d(3))
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=16)
    for _ in range(3):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        optimizer.step()
    optimizer.finish()
    state = network.state_dict()
    torch.save(network[0].state_dict(), f"part-{job.rank}.pt")
    say(rank=job.rank, shapes={name: [value.numel(), value.storage().size()] for name, value in state.items()},
        same=all(torch.equal(each, state["0.weight"]) for each in job.allgather(state["0.weight"])))


def leaves(how):
    """Leaves the job before the end of the script, while the optimizer is alive."""
    job = syncopate.init("esync")
    points, labels, network = problem()
    with job:
        optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=16)
        for step in range(5):
            if how == "error" and job.rank == 1 and step == 2:
                raise ZeroDivisionError("of worker 1")
            optimizer.zero_grad()
            functional.cross_entropy(network(points), labels).backward()
            optimizer.step()
        rank = job.rank
        if how == "finish":
            optimizer.finish()
    say(rank=rank, left=not job.leave.alive, parameters=parameters_of(network))


def drops_last():
    """Prints the sizes of steps of an order that drops a smaller last step."""
    job = syncopate.init()
    say(rank=job.rank, sizes={samples: [len(step) for step in TrainingOrder(job, range(samples), 64, drop_last=True)]
                              for samples in (129, 300)})


def unfit():
    """Uses the job as a context with a module that cannot be trained."""
    network = torch.nn.Linear(1, 1).double()
    try:
        with syncopate.init() as job:
            job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=1)
    except syncopate.ConfigError as error:
        say(rank=0, caught=str(error), left=not job.leave.alive)


def some_parameters(scheme):
    """Passes an optimizer of only the last layer, while the other layers are not frozen."""
    job = syncopate.init(scheme)
    _, _, network = problem()
    refused = ""
    try:
        job.DistributedOptimizer(torch.optim.SGD(network[2].parameters(), lr=0.1), network, batch_size=16)
    except syncopate.ConfigError as error:
        refused = str(error)
    say(rank=job.rank, refused=refused)


if __name__ == "__main__":
    run_calls(globals())
