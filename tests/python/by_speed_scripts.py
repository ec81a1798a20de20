"""Training scripts for by_speed_test.py: by_speed_scripts.py NAME [ARGUMENT...]. Each prints what the test checks."""
import torch
import syncopate_torch as syncopate
from torch.utils.data import DataLoader, TensorDataset

from calls import run_calls, say

SAMPLES, GLOBAL_BATCH, EPOCHS, RATE = 1500, 40, 3, 0.05


def problem():
    torch.manual_seed(5)
    points = torch.randn(SAMPLES, 6)
    return points, points @ torch.randn(6, 1) + torch.randn(SAMPLES, 1), torch.nn.Linear(6, 1)


def parameters_of(module):
    return [value for parameter in module.parameters() for value in parameter.detach().flatten().tolist()]


def loader_of(job, kind, dataset):
    """kind: `usual`; `ahead`: a process prepares batches; `own`: the script's own loader over the job's batches."""
    if kind == "own":
        return DataLoader(dataset, batch_sampler=job.batch_sampler(dataset, global_batch=GLOBAL_BATCH))
    return job.partition_dataset(dataset, global_batch=GLOBAL_BATCH, num_workers=int(kind == "ahead"))


def trains(scheme, kind):
    """Prints the indices of each batch of this worker, and the model after all epochs."""
    points, values, module = problem()
    job = syncopate.init(scheme)
    loader = loader_of(job, kind, TensorDataset(points, values, torch.arange(SAMPLES)))
    steps, length = [], None if scheme == "esync" else len(loader)
    with job.DistributedOptimizer(torch.optim.SGD(module.parameters(), lr=RATE), module) as optimizer:
        together = optimizer.scheme.in_lockstep
        for epoch in range(EPOCHS):
            for x, y, indices in loader:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(module(x), y).backward()
                optimizer.step(weight=len(x) if kind == "own" else None)
                steps.append([epoch, indices.tolist()])
    say(rank=job.rank, steps=steps, parameters=parameters_of(module), together=together, length=length)


def refused(kind):
    """Prints why a job does not divide a batch by speed."""
    points, values, module = problem()
    order = {"fixed": ("esync", {"data-order": "fixed"}), "leased": ("ssgd", {"data-order": "leased"})}
    scheme, options = order.get(kind, ("ssgd", {}))
    job = syncopate.init(scheme, options=options)
    dataset, reason = TensorDataset(points, values), None
    try:
        if kind in ("none", "both"):
            job.partition_dataset(dataset, **({} if kind == "none" else {"batch_size": 40, "global_batch": 40}))
        if kind in ("small", "large"):
            job.partition_dataset(dataset, global_batch=3 if kind == "small" else SAMPLES + 1)
        loader = loader_of(job, "own", dataset)
        if kind == "second":
            loader_of(job, "usual", dataset)
        size = 20 if kind == "size" else None
        with job.DistributedOptimizer(torch.optim.SGD(module.parameters(), lr=RATE), module, batch_size=size) as optimizer:
            for x, y in loader:
                torch.nn.functional.mse_loss(module(x), y).backward()
                optimizer.step()
    except syncopate.ConfigError as error:
        reason = str(error)
    say(rank=job.rank, reason=reason)


def with_an_epoch_s_idioms():
    """Steps a scheduler and calls a collective after each epoch, beside a test loader that is made first, with BatchNorm."""
    points, values, _ = problem()
    module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
    job = syncopate.init("ssgd")
    tests = job.partition_dataset(TensorDataset(points[:100]), batch_size=20)
    loader = loader_of(job, "usual", TensorDataset(points, values))
    optimizer = job.DistributedOptimizer(torch.optim.SGD(module.parameters(), lr=RATE), module)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    sizes, tested = [], 0
    for _ in range(EPOCHS):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(module(x), y).backward()
            optimizer.step()
            sizes.append(len(x))
        tested += sum(len(x) for [x] in tests)
        tested_by_all = int(job.allreduce(torch.tensor([tested])))
        scheduler.step()
    optimizer.finish()
    say(rank=job.rank, sizes=sizes, tested=tested_by_all, parameters=parameters_of(module))


def resumed(saves):
    """Trains a part of the second epoch, or the rest of it; prints the samples of that epoch."""
    points, values, module = problem()
    job = syncopate.init("ssgd")
    if saves == "no":
        job.load_state_dict(torch.load(f"state-{job.rank}"))
    loader = loader_of(job, "usual", TensorDataset(points, values, torch.arange(SAMPLES)))
    optimizer = job.DistributedOptimizer(torch.optim.SGD(module.parameters(), lr=RATE), module)
    taken = []
    for epoch in range(2):
        for step, (x, y, indices) in enumerate(loader):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(module(x), y).backward()
            optimizer.step()
            if epoch == 1 or saves == "no":
                taken += indices.tolist()
            if saves == "yes" and (epoch, step) == (1, 6):
                torch.save(job.state_dict(), f"state-{job.rank}")
                break
        if saves == "no":
            break
    optimizer.finish()
    say(rank=job.rank, taken=taken)


if __name__ == "__main__":
    run_calls(globals())
