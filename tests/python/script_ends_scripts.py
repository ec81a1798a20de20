"""Training scripts for script_ends_test.py: script_ends_scripts.py NAME [ARGUMENT...]."""
import atexit
import os
import resource
import socket
import sys

last_calls = []  # called after this worker has left its job, since Python runs exit handlers in reverse order
atexit.register(lambda: [call() for call in last_calls])

import torch  # noqa: E402
import syncopate_torch as syncopate  # noqa: E402
from calls import run_calls  # noqa: E402


def late(what):
    """Worker 0 ends its loop early. A callback raises on it during the rounds and steps that worker 1 still takes."""
    atexit.register(print, "at the end", file=sys.stderr)
    options = {"local-steps": 1} if what == "round" else None
    job = syncopate.init("local-sgd" if what == "round" else "ssgd", options)

    class Optimizer(torch.optim.SGD):
        steps = 0

        def step(self, closure=None):
            Optimizer.steps += 1
            if what == "step" and job.rank == 0 and Optimizer.steps == 4:
                raise ValueError("no fourth step")
            return super().step(closure)

    def on_round(event):
        if what == "round" and job.rank == 0 and event["round"] >= 4:
            raise ValueError(f"no room for round {event['round']}")

    network = torch.nn.Linear(4, 1)
    optimizer = job.DistributedOptimizer(Optimizer(network.parameters(), lr=0.1), network, batch_size=4, on_round=on_round)
    for _ in range(2 if job.rank == 0 else 12):
        optimizer.zero_grad()
        network(torch.ones(4, 4)).sum().backward()
        optimizer.step()


def raises_before_training(pipe):
    """Worker 1 raises. Its process ends only after that of worker 0, which fails because worker 1 is missing."""
    job = syncopate.init()
    end = os.open(pipe, os.O_WRONLY if job.rank == 0 else os.O_RDONLY)  # stays open until the process ends
    if job.rank == 1:
        last_calls.append(lambda: os.read(end, 1))
        raise ValueError("the loss of this script is strange")
    job.barrier()


def on_a_full_disk():
    """After the first steps worker 1 cannot write to files any more."""
    job = syncopate.init()
    network = torch.nn.Linear(4, 1)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=4)
    for step in range(200):
        if (job.rank, step) == (1, 2):
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        optimizer.zero_grad()
        network(torch.ones(4, 4)).sum().backward()
        optimizer.step()


def spawns():
    syncopate.init()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(own_job, (port,), nprocs=2)


def own_job(rank, port):
    for name in [name for name in os.environ if name.startswith("SYNCOPATE_") and name != "SYNCOPATE_LIBRARY"]:
        if name != "SYNCOPATE_JOINED":
            del os.environ[name]
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port))
    job = syncopate.init()
    total = job.allreduce(torch.tensor([rank + 1]))
    print(f"own job: rank {job.rank} of {job.size}, sum {int(total)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_calls(globals())
