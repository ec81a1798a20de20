"""A training under Ray Train whose second worker is killed in its first attempt; the test runs this file."""
import json
import os
import pathlib
import signal
import sys

import ray
import scripts
import torch
from ray import train as ray_train
from ray.train import torch as ray_torch
from torch.nn import functional


def train(options):
    import syncopate_torch as syncopate

    job = syncopate.init(scheme="ssgd")
    points, labels, network = scripts.problem()
    job.broadcast_parameters(network)
    optimizer = job.DistributedOptimizer(scripts.sgd(network), network, batch_size=len(points))
    mine = slice(job.rank, None, job.size)
    killed = pathlib.Path(options["folder"], "killed")
    for step in range(scripts.STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(network(points[mine]), labels[mine]).backward()
        if step == 1 and job.rank == 1 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.step(weight=len(points[mine]))
    torch.save({"parameters": scripts.parameters_of(network), "port": os.environ["MASTER_PORT"]},
               pathlib.Path(options["folder"], f"worker-{job.rank}.pt"))


def main():
    folder = sys.argv[1]
    ray.init(object_store_memory=100_000_000, include_dashboard=False)
    ray_torch.TorchTrainer(
        train, train_loop_config={"folder": folder}, scaling_config=ray_train.ScalingConfig(num_workers=2),
        run_config=ray_train.RunConfig(storage_path=folder, failure_config=ray_train.FailureConfig(max_failures=1))).fit()
    found = [torch.load(pathlib.Path(folder, f"worker-{rank}.pt")) for rank in range(2)]
    print(json.dumps({"parameters": [each["parameters"] for each in found]}))


if __name__ == "__main__":
    main()
