"""A script for Horovod, as there are many. What is Syncopate's: the import.

    syncopate run -n 2 -- python3 horovod_mnist.py
"""
import argparse

import syncopate_torch.horovod as hvd
import torch
from fashion_mnist import USUAL_FOLDER, accuracy, fashion_mnist, small_network
from torch.nn import functional
from torch.utils.data import DataLoader, DistributedSampler


def mean_over_workers(value, name):
    return hvd.allreduce(torch.tensor(value), name=name).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=USUAL_FOLDER)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--samples", type=int, help="of the training set, the first ones alone")
    parser.add_argument("--fp16-allreduce", action="store_true", help="gradients travel as float16")
    options = parser.parse_args()

    hvd.init()
    torch.manual_seed(42)
    torch.set_num_threads(1)
    dataset = fashion_mnist(options.data, "train", options.samples)
    sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())
    data = DataLoader(dataset, batch_size=64, sampler=sampler)
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size(), momentum=0.5)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), op=hvd.Average,
        compression=hvd.Compression.fp16 if options.fp16_allreduce else hvd.Compression.none)
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for images, labels in data:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        average = mean_over_workers(loss.item(), "loss")
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}: loss of the last batches {average:.3f}")
    own = accuracy(model, fashion_mnist(options.data, "t10k"))
    everywhere = mean_over_workers(own, "accuracy")
    if hvd.rank() == 0:
        print(f"{hvd.size()} workers: test accuracy {everywhere:.4f}")


if __name__ == "__main__":
    main()
