"""A script of DistributedDataParallel as there are many. What is Syncopate's: one import, and one word.

    syncopate run -n 2 -- python3 ddp_one_word.py         # or torchrun --nproc_per_node 2, mpirun -n 2, srun -n 2
    torchrun --nproc_per_node 2 ddp_one_word.py --backend gloo
"""
import argparse
import time

import syncopate_torch  # noqa: F401 (makes the backend known)
import torch
from fashion_mnist import USUAL_FOLDER, accuracy, fashion_mnist, small_network
from torch import distributed
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="syncopate")
    parser.add_argument("--data", default=USUAL_FOLDER)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--samples", type=int, help="of the training set, the first ones alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    distributed.init_process_group(options.backend)
    dataset = fashion_mnist(options.data, "train", options.samples)
    sampler = DistributedSampler(dataset)
    data = DataLoader(dataset, batch_size=64, sampler=sampler)
    model = DistributedDataParallel(small_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    begun = time.monotonic()
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for images, labels in data:
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    distributed.barrier()
    if distributed.get_rank() == 0:
        seconds = time.monotonic() - begun
        print(f"{options.backend}: {distributed.get_world_size()} ranks, {options.epochs * len(dataset) / seconds:.0f} "
              f"images/s, test accuracy {accuracy(model.module, fashion_mnist(options.data, 't10k')):.4f}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
