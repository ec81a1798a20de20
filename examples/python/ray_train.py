"""Ray Train: Ray places the workers and restarts them, the five calls train on devices of unequal speed.

    python3 ray_train.py --workers 2

On several hosts each of them needs the key of the job, whose file SYNCOPATE_KEY_FILE names.
"""
import argparse
import os
import pathlib
import tempfile

import torch
from fashion_mnist import USUAL_FOLDER, accuracy, fashion_mnist, small_network
from torch.nn import functional


def train(options):
    """What each worker runs. Ray has set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT."""
    import syncopate_torch as syncopate
    from ray import train as ray_train

    job = syncopate.init(scheme=options["scheme"])
    data = job.partition_dataset(fashion_mnist(options["data"], "train", options["samples"]), batch_size=64 * job.size)
    model = small_network()
    job.broadcast_parameters(model)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9), model)
    for _ in range(options["epochs"]):
        for images, labels in data:
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step(weight=len(images))
    optimizer.finish()

    metrics = {"accuracy": accuracy(model, fashion_mnist(options["data"], "t10k"))}
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if job.rank == 0:
            torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
            checkpoint = ray_train.Checkpoint.from_directory(folder)
        ray_train.report(metrics, checkpoint=checkpoint)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scheme", default="esync")
    parser.add_argument("--data", default=USUAL_FOLDER)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--samples", type=int, help="of the training set, the first ones alone")
    parser.add_argument("--storage", default=str(pathlib.Path("ray_results").resolve()), help="the folder for checkpoints")
    options = parser.parse_args()

    import ray
    from ray import train as ray_train
    from ray.train import torch as ray_torch

    key = {name: os.environ[name] for name in ("SYNCOPATE_KEY_FILE",) if name in os.environ}
    ray.init(runtime_env={"env_vars": key})
    trainer = ray_torch.TorchTrainer(
        train, train_loop_config=vars(options), scaling_config=ray_train.ScalingConfig(num_workers=options.workers),
        run_config=ray_train.RunConfig(storage_path=options.storage, failure_config=ray_train.FailureConfig(max_failures=1)))
    result = trainer.fit()
    print(f"{options.workers} workers, test accuracy {result.metrics['accuracy']:.4f}, model in {result.checkpoint.path}")


if __name__ == "__main__":
    main()
