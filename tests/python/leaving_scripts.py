"""Training scripts that leave a job and go on, for leaving_test.py: leaving_scripts.py NAME [ARGUMENT...]."""
import gc
import os

import torch
from torch.nn import functional
from torch.utils.data import TensorDataset
from calls import run_calls, say

import syncopate_torch as syncopate
from syncopate_torch.training.job import Job


def trained(job):
    """Trains a network for an epoch and returns it."""
    torch.manual_seed(0)
    dataset = TensorDataset(torch.rand(64, 8), torch.rand(64, 1))
    network = torch.nn.Linear(8, 1)
    data = job.partition_dataset(dataset, batch_size=16)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.01), network)
    for inputs, targets in data:
        optimizer.zero_grad()
        functional.mse_loss(network(inputs), targets).backward()
        optimizer.step()
    optimizer.finish()
    return network


def used():
    """Returns the numbers of threads, descriptors and live job objects of this process."""
    gc.collect()
    return {"threads": len(os.listdir("/proc/self/task")), "descriptors": len(os.listdir("/proc/self/fd")),
            "jobs": sum(isinstance(each, Job) for each in gc.get_objects())}


def one_after_the_other(scheme, how):
    """Runs one job after the other, which end by `leave` or when their objects are deleted."""
    after = []
    for _ in range(6):
        job = syncopate.init(scheme=scheme)
        rank = job.rank
        trained(job)
        if how == "leave":
            job.leave()
        del job
        after.append(used())
    say(rank=rank, after=after)


def host_dies():
    """Worker 0, which hosts the job, dies while the other one waits for it."""
    try:
        job = syncopate.init()  # in which the other one may still be
        if job.rank == 0:
            os._exit(5)
        job.barrier()
    except syncopate.Error as error:
        say(lost=str(error))


def with_open_group(run_folder):
    """Worker 0, which hosts the job, leaves before worker 1 while a group is open."""
    job = syncopate.init(scheme="local-sgd", options={"run-dir": run_folder, "trace": "steps"})
    rank, group = job.rank, job.open_group(range(job.size))
    trained(job)
    group.barrier()
    lost = None
    if rank == 1:
        try:
            group.barrier()
        except syncopate.PeerLost as error:
            lost = str(error)
    job.leave()
    say(rank=rank, lost=lost)


def dropped_group():
    """Worker 0 deletes a group while its collectives are under way; worker 1 begins them later."""
    job = syncopate.init()
    first, last = job.open_group([0, 1]), job.open_group([0, 1])

    def begun(group):
        return [group.allreduce_async(torch.full((1000,), float(number))) for number in range(4)]

    if job.rank == 0:
        works = begun(first)
        del first
        gc.collect()
        last.barrier()
    else:
        last.barrier()
        works = begun(first)
    say(rank=job.rank, values=[float(work.wait()[0]) for work in works])


def everyone_kept():
    """Uses the group of all workers after its job was left."""
    job = syncopate.init()
    rank, everyone = job.rank, job.everyone
    everyone.barrier()
    job.leave()
    said = []
    for use in (lambda: everyone.rank, lambda: everyone.size, lambda: everyone.allreduce(torch.ones(3))):
        try:
            said.append(repr(use()))
        except syncopate.ConfigError as error:
            said.append(str(error))
    say(rank=rank, said=said)


if __name__ == "__main__":
    run_calls(globals())
