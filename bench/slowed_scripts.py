#!/usr/bin/python3
"""Two workers of one script train LeNet-5 on Fashion-MNIST until the loss is low; the second one has a part of a processor
core (a cgroup's quota). Worker 0 prints a line of JSON: the seconds of training until its model had the loss `--target` on
2,000 test images, or null.

    slowed_scripts.py ddp | accelerate | torchft             one of two processes, whose rank is in the environment
    syncopate run -n 2 -- slowed_scripts.py batch | global   by five calls: as many samples on each, or divided by speed
"""
import argparse
import gzip
import json
import os
import pathlib
import time

import torch
from torch import distributed
from torch.nn import functional

from torch_local import NETWORKS

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
LOCAL_STEPS = 8  # of a round of Accelerate's LocalSGD and of torchft's DiLoCo
SNAPSHOT_SECONDS = 0.1
LOOK_SECONDS = 1.0  # between two looks of worker 0 at the loss on a few images, by which it ends
LOOK_IMAGES = 500


def images_of(part):
    with gzip.open(FASHION / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=16).view(-1, 1, 28, 28)
    with gzip.open(FASHION / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=8)
    return (pixels.float() / 255 - 0.286) / 0.353, labels.long()


def slow_down(ratio):
    """Gives this process 1 / ratio of a core from now on."""
    group = pathlib.Path(os.environ["SLOWED_CGROUP"])
    period = 10_000
    (group / "cpu.cfs_period_us").write_text(str(period))
    (group / "cpu.cfs_quota_us").write_text(str(period // ratio))
    (group / "cgroup.procs").write_text(str(os.getpid()))


class Progress:
    """The training of a worker: its clock, and on worker 0 copies of the model."""

    def __init__(self, options, rank, network):
        self.options, self.rank, self.network = options, rank, network
        self.snapshots, self.looks, self.is_low = [], 0, False
        self.points, self.labels = images_of("t10k") if rank == 0 else (None, None)
        self.begun = time.perf_counter()

    def took_step(self):
        elapsed = time.perf_counter() - self.begun
        if self.rank != 0:
            return
        if elapsed >= SNAPSHOT_SECONDS * (len(self.snapshots) + 1):
            self.snapshots.append((elapsed, {name: value.clone() for name, value in self.network.state_dict().items()}))
        if elapsed >= LOOK_SECONDS * (self.looks + 1):
            self.looks += 1
            self.is_low = self.loss_on(LOOK_IMAGES) < 0.93 * self.options.target

    def loss_on(self, images):
        with torch.no_grad():
            return functional.cross_entropy(self.network(self.points[:images]), self.labels[:images]).item()

    def goes_on(self):
        """True until the loss is below the target, or the time is over."""
        return not self.is_low and time.perf_counter() - self.begun < self.options.seconds

    def is_reached_in(self, snapshot):
        self.network.load_state_dict(self.snapshots[snapshot][1])
        return self.loss_on(2000) <= self.options.target

    def report(self):
        if self.rank != 0:
            return
        coarse = next((number for number in range(0, len(self.snapshots), 8) if self.is_reached_in(number)), len(self.snapshots))
        around = range(max(0, coarse - 7), min(coarse + 1, len(self.snapshots)))
        first = next((number for number in around if self.is_reached_in(number)), None)
        reached = None if first is None else self.snapshots[first][0]
        print(json.dumps({"seconds": reached, "trained": time.perf_counter() - self.begun}), flush=True)


def ready(options, rank):
    """Returns the network, its optimizer and the training set."""
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    network = NETWORKS["lenet5"](1, 28, 10)
    sgd = torch.optim.SGD(network.parameters(), lr=options.rate, momentum=0.9)
    dataset = images_of("train")
    if rank == 1 and options.ratio > 1:
        slow_down(options.ratio)
    return network, sgd, dataset


def batches(dataset, size, seed):
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(dataset[0]), generator=generator)
        for indices in order.split(size):
            yield dataset[0][indices], dataset[1][indices]


def peer(options):
    """Each worker has half of the batch. Worker 0 decides at every tenth step whether training goes on."""
    rank = int(os.environ["RANK"])
    if options.way == "ddp":
        distributed.init_process_group("gloo")
    else:
        from accelerate import Accelerator
        from accelerate.local_sgd import LocalSGD

        accelerator = Accelerator(cpu=True)
    network, sgd, dataset = ready(options, rank)
    half = [values[rank::2] for values in dataset]
    if options.way == "ddp":
        wrapped, step = torch.nn.parallel.DistributedDataParallel(network), sgd.step
    else:
        wrapped, sgd = accelerator.prepare(network, sgd)
        local = LocalSGD(accelerator=accelerator, model=wrapped, local_sgd_steps=LOCAL_STEPS, enabled=True)
        local.__enter__()

        def step():
            sgd.step()
            local.step()

    goes_on, steps = torch.ones(1), 0
    distributed.barrier()
    progress = Progress(options, rank, network)
    for points, labels in batches(half, options.batch // 2, options.seed + rank):
        sgd.zero_grad()
        loss = functional.cross_entropy(wrapped(points), labels)
        loss.backward()
        step()
        progress.took_step()
        steps += 1
        if steps % 10 == 0:
            goes_on.fill_(progress.goes_on())
            distributed.broadcast(goes_on, 0)
            if not goes_on.item():
                break
    progress.report()
    os._exit(0)  # the destruction of Gloo's groups sometimes hangs


def torchft(options):
    """DiLoCo of torchft: a replica a process, with the outer optimizer of its paper. Both end when worker 0 does."""
    import datetime

    from torchft import Manager, ProcessGroupGloo
    from torchft.local_sgd import DiLoCo

    rank = int(os.environ["RANK"])
    network, sgd, dataset = ready(options, rank)
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = Manager(pg=ProcessGroupGloo(timeout=datetime.timedelta(seconds=60)), min_replica_size=2, use_async_quorum=False,
                      state_dict=network.state_dict, load_state_dict=network.load_state_dict, rank=0, world_size=1,
                      store_addr="127.0.0.1", store_port=store.port, replica_id=f"worker-{rank}", hostname="127.0.0.1",
                      lighthouse_addr=os.environ["SLOWED_LIGHTHOUSE"])  # fmt: skip
    outer = torch.optim.SGD(network.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    half = [values[rank::2] for values in dataset]
    ended = pathlib.Path(os.environ["SLOWED_ENDED"])
    progress = None
    with DiLoCo(manager, [network], sgd, outer, sync_every=LOCAL_STEPS):
        for points, labels in batches(half, options.batch // 2, options.seed + rank):
            progress = progress or Progress(options, rank, network)
            sgd.zero_grad()
            loss = functional.cross_entropy(network(points), labels)
            loss.backward()
            sgd.step()
            progress.took_step()
            if rank == 0 and not progress.goes_on():
                break
            if ended.exists():
                os._exit(0)
    ended.touch()
    progress.report()
    os._exit(0)  # the other one may wait for this one


def five_calls(options):
    import syncopate_torch as syncopate

    job = syncopate.init()
    network, sgd, dataset = ready(options, job.rank)
    size = {"batch_size" if options.way == "batch" else "global_batch": options.batch}
    data = job.partition_dataset(torch.utils.data.TensorDataset(torch.arange(len(dataset[0]))), **size)
    job.broadcast_parameters(network)
    optimizer = job.DistributedOptimizer(sgd, network)
    ended = pathlib.Path(os.environ["SLOWED_ENDED"])
    progress = Progress(options, job.rank, network)
    goes_on = True
    while goes_on:
        for [indices] in data:
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(dataset[0][indices]), dataset[1][indices])
            loss.backward()
            optimizer.step()
            progress.took_step()
            goes_on = progress.goes_on() if job.rank == 0 else not ended.exists()
            if not goes_on:
                ended.touch()
                break
    optimizer.finish()
    progress.report()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=("ddp", "accelerate", "torchft", "batch", "global"))
    parser.add_argument("--ratio", type=int, default=1, help="worker 1 has 1 / RATIO of a core")
    parser.add_argument("--batch", type=int, default=64, help="samples of both workers in a step")
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", type=float, default=0.5)
    parser.add_argument("--seconds", type=float, default=25, help="the longest time of training")
    options = parser.parse_args()
    train = {"ddp": peer, "accelerate": peer, "torchft": torchft}.get(options.way, five_calls)
    train(options)


if __name__ == "__main__":
    main()
