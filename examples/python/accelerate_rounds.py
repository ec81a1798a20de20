"""Hugging Face Accelerate on devices of unequal speed: a block in the shape of its LocalSGD.

    syncopate run --cluster ../../clusters/mixed.toml -- python3 accelerate_rounds.py
"""
import argparse

import torch
from accelerate import Accelerator
from fashion_mnist import USUAL_FOLDER, accuracy, fashion_mnist, small_network
from torch.nn import functional

import syncopate_torch as syncopate
from syncopate_torch.accelerate import rounds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=USUAL_FOLDER)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--samples", type=int, help="of the training set, the first ones alone")
    parser.add_argument("--scheme", default="esync")
    options = parser.parse_args()
    torch.set_num_threads(1)

    job = syncopate.init(scheme=options.scheme)
    data = job.partition_dataset(fashion_mnist(options.data, "train", options.samples), batch_size=64 * job.size)
    model = small_network()
    accelerator = Accelerator()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    steps = 0
    with rounds(accelerator=accelerator, model=model, optimizer=optimizer) as training:
        for _ in range(options.epochs):
            for images, labels in data:
                with accelerator.accumulate(model):
                    accelerator.backward(functional.cross_entropy(model(images), labels))
                    training.step(weight=len(images))  # was: optimizer.step(), and local_sgd.step()
                    optimizer.zero_grad()
                steps += 1

    all_steps = [int(each) for each in job.allgather(torch.tensor([steps]))]
    if job.rank == 0:
        print(f"{job.size} workers, steps of each: {all_steps}, test accuracy "
              f"{accuracy(model, fashion_mnist(options.data, 't10k')):.4f}")


if __name__ == "__main__":
    main()
