"""Training scripts for script_test.py and script_ends_test.py: scripts.py NAME [ARGUMENT...]. Each prints what a test checks."""
import contextlib
import os
import sys

import torch
import syncopate_torch as syncopate
from torch.nn import functional

from calls import run_calls, say

SAMPLES = 64
STEPS = 6


def problem():
    """Returns 64 points of six values, their labels in three classes, and a network with fixed initial parameters."""
    torch.manual_seed(3)
    points = torch.randn(SAMPLES, 6)
    labels = (points @ torch.randn(6, 3)).argmax(1)
    network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    return points, labels, network


def sgd(network):
    return torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9)


def parameters_of(network):
    return [value for parameter in network.parameters() for value in parameter.detach().flatten().tolist()]


def accuracy(network, points, labels):
    with torch.no_grad():
        return (network(points).argmax(1) == labels).double().mean().item()


def whole_batch(scheme=None, compiler=None):
    """Trains with the whole dataset in each step, which a single process can do for comparison."""
    job = syncopate.init(scheme)
    points, labels, network = problem()
    data = job.partition_dataset(torch.utils.data.TensorDataset(points, labels), batch_size=SAMPLES)
    optimizer = job.DistributedOptimizer(sgd(network), network)
    forward = torch.compile(network, backend=compiler) if compiler else network
    for _ in range(STEPS):
        for x, y in data:
            optimizer.zero_grad()
            functional.cross_entropy(forward(x), y).backward()
            optimizer.step(weight=len(x))
    optimizer.finish()
    say(rank=job.rank, size=job.size, parameters=parameters_of(network))


def saves():
    """Takes half of the steps of `whole_batch`; worker 0 writes a checkpoint."""
    job = syncopate.init()
    points, labels, network = problem()
    own = sgd(network)
    optimizer = job.DistributedOptimizer(own, network, batch_size=SAMPLES)
    take_steps(optimizer, network, points, labels, STEPS // 2)
    optimizer.finish()
    if job.rank == 0:
        torch.save({"model": network.state_dict(), "optimizer": own.state_dict()}, "checkpoint.pt")
    say(rank=job.rank)


def goes_on():
    """Takes the other half of the steps, from the checkpoint."""
    job = syncopate.init()
    points, labels, network = problem()
    saved = torch.load("checkpoint.pt")
    network.load_state_dict(saved["model"])
    own = sgd(network)
    own.load_state_dict(saved["optimizer"])
    optimizer = job.DistributedOptimizer(own, network, batch_size=SAMPLES)
    take_steps(optimizer, network, points, labels, STEPS - STEPS // 2)
    optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(network))


def take_steps(optimizer, network, points, labels, count):
    for _ in range(count):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        optimizer.step(weight=len(points))


def sampled(scheme):
    """Runs three epochs of a sampler of single samples, and skips two epochs before the last one."""
    job = syncopate.init(scheme)
    dataset = torch.utils.data.TensorDataset(torch.arange(63))
    sampler, batches = job.sampler(dataset), job.batch_sampler(dataset, 4 * job.size)
    loader = torch.utils.data.DataLoader(dataset, batch_size=4, sampler=sampler)
    try:
        lengths = [len(sampler), len(batches)]
    except TypeError as error:
        lengths = f"{type(error).__name__}: {error}"
    samples = []
    for epoch in (0, 1, 4):
        sampler.set_epoch(epoch)
        samples.append([int(index) for [batch] in loader for index in batch])
    say(rank=job.rank, samples=samples, lengths=lengths, epoch=sampler.epoch)


def adapter(scheme):
    """Trains a head of float32 on a frozen base of bfloat16, with buffers of two other types that differ between workers."""
    job = syncopate.init(scheme)
    network = torch.nn.Module()
    network.base = torch.nn.Linear(2, 1, bias=False).to(torch.bfloat16).requires_grad_(False)
    network.scale = torch.nn.Linear(1, 1, bias=False).requires_grad_(False)
    network.head = torch.nn.Linear(1, 1)
    network.register_buffer("mean", torch.full((3,), 1.0 + job.rank, dtype=torch.float64))
    network.register_buffer("count", torch.tensor(7 + job.rank))
    torch.nn.init.constant_(network.base.weight, 0.5 + job.rank)
    torch.nn.init.constant_(network.head.weight, 0.25)
    job.broadcast_parameters(network)
    torch.nn.init.constant_(network.scale.weight, 0.1 + job.rank)
    with job.DistributedOptimizer(torch.optim.SGD(network.head.parameters(), lr=0.1), network, batch_size=4) as optimizer:
        for _ in range(STEPS):
            optimizer.zero_grad()
            features = network.base(torch.ones(4, 2, dtype=torch.bfloat16)).float()
            network.head(features).square().mean().backward()
            optimizer.step()
        optimizer.align()
        state = {name: value.double().flatten().tolist() for name, value in network.state_dict().items()}
    types = sorted(str(value.dtype).split(".")[1] for value in network.state_dict().values())
    say(rank=job.rank, state=state, types=types, base=state["base.weight"], scale=state["scale.weight"][0],
        head=state["head.weight"][0])


def unequal_parts():
    """Worker 0 has ten samples of each step, and worker 1 the other 54."""
    job = syncopate.init()
    points, labels, network = problem()
    part = slice(0, 10) if job.rank == 0 else slice(10, SAMPLES)
    with job.DistributedOptimizer(sgd(network), network, batch_size=32) as optimizer:
        for _ in range(STEPS):
            optimizer.zero_grad(set_to_none=True)
            functional.cross_entropy(network(points[part]), labels[part]).backward()
            optimizer.step(weight=len(points[part]))
    say(rank=job.rank, parameters=parameters_of(network))


def learns(scheme):
    job = syncopate.init(scheme)
    points, labels, network = problem()
    data = job.partition_dataset(torch.utils.data.TensorDataset(points, labels), batch_size=16)
    rounds = []
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, on_round=rounds.append)
    for _ in range(30):
        for x, y in data:
            optimizer.zero_grad()
            functional.cross_entropy(network(x), y).backward()
            optimizer.step(weight=len(x))
    optimizer.finish()
    say(rank=job.rank, accuracy=accuracy(network, points, labels), rounds=len(rounds),
        samples=sum(round["own_samples"] for round in rounds))


def aligned(scheme):
    """Workers end epochs after unequal numbers of steps, call `align`, and compare their parameters."""
    job = syncopate.init(scheme)
    points, labels, network = problem()
    data = job.partition_dataset(torch.utils.data.TensorDataset(points[:63], labels[:63]), batch_size=16)
    equal = []
    with job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9), network) as optimizer:
        for epoch in range(4):
            for x, y in data:
                optimizer.zero_grad()
                functional.cross_entropy(network(x), y).backward()
                optimizer.step(weight=len(x))
                if job.rank == 0 and epoch == 2:
                    break
            optimizer.align()
            own = torch.tensor(parameters_of(network))
            equal.append(all(torch.equal(each, own) for each in job.allgather(own)))
    say(rank=job.rank, equal=equal)


def elsewhere():
    """Each worker calls `align` with another name."""
    job = syncopate.init("esync")
    _, _, network = problem()
    optimizer = job.DistributedOptimizer(sgd(network), network, batch_size=32)
    optimizer.align(f"place {job.rank}")


def apart(scheme, what):
    """After three steps worker 0 waits in a call that worker 1 does not make, since that takes further steps."""
    job = syncopate.init(scheme)
    points, labels, network = problem()
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=32)
    everyone = job.open_group([0, 1])
    for step in range(100_000):
        if step == 3 and job.rank == 0:
            say(waits=what)
            if what == "barrier":
                job.barrier()
            elif what == "allreduce_async":
                job.allreduce_async(torch.ones(3)).wait()
            else:
                everyone.receive(torch.ones(3), sender=1)
        optimizer.zero_grad()
        functional.cross_entropy(network(points[:16]), labels[:16]).backward()
        optimizer.step()
    optimizer.finish()


def ends_apart(scheme, what):
    """After three steps worker 0 waits in a call that worker 1 does not make, since its script ends."""
    job = syncopate.init(scheme)
    points, labels, network = problem()
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=32)
    for _ in range(3):
        optimizer.zero_grad()
        functional.cross_entropy(network(points[:16]), labels[:16]).backward()
        optimizer.step()
    if job.rank == 0:
        {"barrier": job.barrier, "align": optimizer.align}[what]()


def differs(how):
    """Worker 1 has another module than worker 0."""
    job = syncopate.init()
    _, _, network = problem()
    if job.rank == 1 and how == "frozen":
        network[0].bias.requires_grad_(False)
    if job.rank == 1 and how == "type":
        network.double()
    if how.startswith("buffer"):
        network.register_buffer("first", torch.zeros(2))
    if job.rank == 1 and how == "buffer":
        network.register_buffer("scale", torch.ones(3))
    if how != "buffer of optimizer":
        job.broadcast_parameters(network)
    elif job.rank == 1:
        network.first.resize_(4)
    job.DistributedOptimizer(sgd(network), network, batch_size=16)


def raises_while_another_waits(scheme, what, pipe):
    """Worker 1 raises while worker 0 waits for it outside a step. Through `pipe` it knows that worker 0 has left `align`."""
    job = syncopate.init(scheme)
    points, labels, network = problem()
    optimizer = job.DistributedOptimizer(sgd(network), network, batch_size=16)
    for _ in range(2):
        optimizer.zero_grad()
        functional.cross_entropy(network(points[:16]), labels[:16]).backward()
        optimizer.step()
    optimizer.align()
    with open(pipe, "w" if job.rank == 0 else "r", encoding="utf-8"):  # waits until both have opened it
        pass
    if job.rank == 1:
        raise ValueError("the loss of this script is strange")
    waits = {"barrier": job.barrier, "align": optimizer.align, "synchronize": optimizer.synchronize,
             "allreduce": lambda: job.allreduce_async(torch.ones(3)).wait()}
    try:
        waits[what]()
    except syncopate.Error as error:
        say(rank=0, caught=f"{type(error).__name__}: {error}")
        raise


def collectives():
    job = syncopate.init()
    sum_of = {str(kind): job.allreduce((torch.arange(5) * (job.rank + 1)).to(kind)).tolist()
              for kind in (torch.float32, torch.float64, torch.int32, torch.int64, torch.bfloat16)}
    columns = torch.full((3, 2), job.rank + 1.0).t()  # not contiguous
    work = job.allreduce_async(columns)
    first = job.broadcast(torch.tensor([job.rank + 7, 3], dtype=torch.uint8))
    job.barrier()
    say(rank=job.rank, sums=sum_of, columns=work.wait().tolist(), done=work.is_done(), first=first.tolist(),
        all=[each.tolist() for each in job.allgather(torch.tensor([job.rank, 2 * job.rank]))])


def works_that_nobody_keeps():
    """Drops works that are under way: later tensors must not get their memory."""
    job = syncopate.init()
    sums = []
    for number in range(50):
        if job.rank == 0:
            job.everyone.send_async(torch.full((100_000,), float(number)), 1)
            job.everyone.allreduce_async(torch.full((300, 200), 1.0).t())
            junk = [torch.full((100_000,), -1.0) for _ in range(3)]
        else:
            junk = [torch.empty(100_000)]
            job.everyone.receive(junk[0], 0)
            ones = torch.full((200, 300), 1.0)
            sums.append([junk[0].min().item(), junk[0].max().item(), job.everyone.allreduce(ones).sum().item()])
    job.everyone.barrier()
    say(rank=job.rank, sums=sums, junk=junk[0].sum().item())


def clipped(scheme):
    """Accumulates the gradients of two parts and clips them before each step; a schedule follows the samples of all workers."""
    job = syncopate.init(scheme)
    points, labels, network = problem()
    part = slice(0, 10) if job.rank == 0 else slice(10, SAMPLES)
    rates = []
    with job.DistributedOptimizer(sgd(network), network, batch_size=32) as optimizer:
        schedule = torch.optim.lr_scheduler.StepLR(optimizer.optimizer, step_size=1, gamma=0.5)
        schedule = job.scheduler(schedule, optimizer, every=2 * SAMPLES)
        for _ in range(STEPS):
            optimizer.zero_grad()
            x, y = points[part], labels[part]
            with optimizer.no_sync():
                (functional.cross_entropy(network(x[:5]), y[:5], reduction="sum") / len(x)).backward()
            (functional.cross_entropy(network(x[5:]), y[5:], reduction="sum") / len(x)).backward()
            optimizer.synchronize(weight=len(x))
            torch.nn.utils.clip_grad_norm_(network.parameters(), 0.1)
            optimizer.step(weight=len(x))
            rates.append(schedule.get_last_lr()[0])
    say(rank=job.rank, parameters=parameters_of(network), rates=rates, samples=optimizer.samples)


def clipped_unequally(finishes):
    """Worker 0 takes fewer steps than worker 1, or none; both clip the mean gradient."""
    job = syncopate.init("ssgd")
    points, labels, network = problem()
    part = slice(0, 10) if job.rank == 0 else slice(10, SAMPLES)
    optimizer = job.DistributedOptimizer(sgd(network), network, batch_size=32)
    fewer = STEPS if finishes == "has none" else 3
    for _ in range(STEPS - fewer * (job.rank == 0)):
        optimizer.zero_grad()
        functional.cross_entropy(network(points[part]), labels[part]).backward()
        optimizer.synchronize(weight=len(points[part]))
        torch.nn.utils.clip_grad_norm_(network.parameters(), 0.1)
        optimizer.step(weight=len(points[part]))
    if finishes != "ends":
        optimizer.finish()
    say(rank=job.rank, parameters=parameters_of(network))


def scaled():
    """Trains with a loss scale; worker 1 overflows once, and in two more steps that only this worker takes."""
    from syncopate_torch.amp import GradScaler

    job = syncopate.init()
    points, labels, network = problem()
    scaler = GradScaler(job, "cpu", init_scale=1024.0, growth_interval=1000)
    with job.DistributedOptimizer(sgd(network), network, batch_size=32) as optimizer:
        for step in range(STEPS + 1 + 2 * job.rank):
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(points), labels)
            if (step == 2 or step > STEPS) and job.rank == 1:
                loss = loss * float("inf")
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    say(rank=job.rank, parameters=parameters_of(network), scale=scaler.get_scale())


def resumable(job, processes):
    """Returns a loader, a network with running statistics and dropout, its optimizer and a schedule."""
    torch.manual_seed(5 + job.rank)
    points, labels, _ = problem()
    data = job.partition_dataset(torch.utils.data.TensorDataset(points, labels), 16, num_workers=processes)
    network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3))
    optimizer = job.DistributedOptimizer(torch.optim.Adam(network.parameters(), lr=0.05), network)
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer.optimizer, lambda step: 0.9**step)
    return data, network, optimizer, job.scheduler(decay, optimizer, every=SAMPLES // 2)


def resumed(processes, epochs, saved_at=None, file=None):
    """Trains to the end of `epochs`, from the start or, with `saved_at` = "-", from a file. With `saved_at` = EPOCH:STEP it
    ends there and writes the file."""
    job = syncopate.init()
    file = file and f"{file}{job.rank}"
    if file and saved_at == "-":
        plain = {"weights_only": True} if torch.__version__ > "2" else {}  # with torch 1 it reads no float
        job.load_state_dict(torch.load(file, **plain))
    data, network, optimizer, _schedule = resumable(job, int(processes))
    order = []
    for epoch in range(data.batch_sampler.epoch, int(epochs)):
        for step, (x, y) in enumerate(data, 1):
            optimizer.zero_grad()
            functional.cross_entropy(network(x), y).backward()
            optimizer.step(weight=len(x))
            order.append([epoch, x.sum().item()])
            if saved_at == f"{epoch}:{step}":
                break
        if saved_at and saved_at.split(":")[0] == str(epoch):
            torch.save(job.state_dict(), file)
            break
    optimizer.finish()
    state = [value for name in sorted(network.state_dict()) for value in network.state_dict()[name].flatten().tolist()]
    say(rank=job.rank, state=state, order=order, rate=optimizer.param_groups[0]["lr"], samples=optimizer.samples)


def summarized(scheme):
    job = syncopate.init(scheme)
    points, labels, network = problem()
    data = job.partition_dataset(torch.utils.data.TensorDataset(points, labels), batch_size=16)
    with job.DistributedOptimizer(sgd(network), network) as optimizer:
        for _ in range(STEPS):
            for x, y in data:
                optimizer.zero_grad()
                functional.cross_entropy(network(x), y).backward()
                optimizer.step(weight=len(x))
        own = job.summary()
        optimizer.finish()
        every = job.summary(everyone=True)
    say(rank=job.rank, own=own, every=every, table=str(every))


def resident():
    """Returns the kilobytes of this process: its own memory, and the memory that it shares with other workers."""
    with open("/proc/self/status", encoding="ascii") as status:
        sizes = dict(line.split(":") for line in status)
    return {name: int(sizes[field].split()[0]) for name, field in (("own", "RssAnon"), ("shared", "RssShmem"))}


def many_steps(scheme):
    """Takes 12,000 small steps and prints the memory after 4,000 and at the end."""
    job = syncopate.init(scheme)
    points, labels, network = problem()
    memory = {}
    with job.DistributedOptimizer(sgd(network), network, batch_size=8) as optimizer:
        for step in range(1, 12001):
            optimizer.zero_grad()
            functional.cross_entropy(network(points[:8]), labels[:8]).backward()
            optimizer.step()
            if step in (4000, 12000):
                memory[step] = resident()
    say(rank=job.rank, before=memory[4000], after=memory[12000])


def raises(rank):
    """One worker raises in the middle of its loop, outside a `with` block."""
    job = syncopate.init()
    points, labels, network = problem()
    optimizer = job.DistributedOptimizer(sgd(network), network, batch_size=32)
    for step in range(1000):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        if job.rank == int(rank) and step == 5:
            raise ValueError("the loss of this script is strange")
        optimizer.step(weight=32)


def exits(how):
    """Worker 1 calls sys.exit in the middle of its loop; worker 0 goes on."""
    job = syncopate.init()
    points, labels, network = problem()
    optimizer = job.DistributedOptimizer(sgd(network), network, batch_size=32)
    status, _, where = how.partition(", ")
    status = int(status) if status.isdigit() else status

    def loop():
        for step in range(20 if status == 0 or where == "caught" else 1000000):
            optimizer.zero_grad()
            functional.cross_entropy(network(points), labels).backward()
            optimizer.step(weight=32)
            if job.rank == 1 and step == 5:
                {"at once": os._exit, "by exit": exit, "by quit": quit}.get(where, sys.exit)(status)
        optimizer.finish()
        say(rank=job.rank, steps=step + 1, parameters=parameters_of(network))

    if where == "in a block":
        with optimizer:
            loop()
    elif where == "caught":
        with contextlib.suppress(SystemExit):
            loop()
    elif where == "passed on":
        try:
            loop()
        except ValueError:
            say(caught=True)
    else:
        loop()


def optimizer_fails():
    """The optimizer raises an exception, which must leave `step` unchanged."""
    job = syncopate.init()
    points, labels, network = problem()

    class Failing(torch.optim.SGD):
        def step(self, closure=None):
            raise ZeroDivisionError("of the optimizer")

    optimizer = job.DistributedOptimizer(Failing(network.parameters(), lr=0.1), network, batch_size=32)
    functional.cross_entropy(network(points), labels).backward()
    try:
        optimizer.step()
    except ZeroDivisionError as error:
        say(rank=job.rank, caught=str(error))
        os._exit(0)


if __name__ == "__main__":
    run_calls(globals())
