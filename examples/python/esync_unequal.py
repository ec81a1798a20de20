"""Devices of unequal speed, all of them busy: five calls, and a scheme that paces local steps.

    syncopate run --cluster ../../clusters/mixed.toml --scheme esync -- python3 esync_unequal.py
    syncopate run --cluster ../../clusters/mixed.toml --scheme ssgd -- python3 esync_unequal.py
"""
import argparse
import time

import syncopate_torch as syncopate
import torch
from fashion_mnist import USUAL_FOLDER, accuracy, fashion_mnist, small_network
from torch.nn import functional


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=USUAL_FOLDER)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--samples", type=int, help="of the training set, the first ones alone")
    options = parser.parse_args()
    torch.set_num_threads(1)

    job = syncopate.init()
    dataset = fashion_mnist(options.data, "train", options.samples)
    data = job.partition_dataset(dataset, batch_size=64 * job.size)
    model = small_network()
    job.broadcast_parameters(model)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9), model)
    begun, steps = time.monotonic(), 0
    for _ in range(options.epochs):
        for images, labels in data:
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step(weight=len(images))
            steps += 1
    optimizer.finish()

    seconds = time.monotonic() - begun
    all_steps = [int(each) for each in job.allgather(torch.tensor([steps]))]
    if job.rank == 0:
        print(f"{job.size} workers, steps of each: {all_steps}, {options.epochs * len(dataset) / seconds:.0f} images/s, "
              f"test accuracy {accuracy(model, fashion_mnist(options.data, 't10k')):.4f}")


if __name__ == "__main__":
    main()
