"""A residual network of nine layers on CIFAR-10, by Adam with weight decay: five calls in a usual training script.

    syncopate run -n 2 -- python3 cifar10_resnet9.py --data cifar-10-batches-bin

The same network, rate and batch as examples/cifar10_resnet9 in C++. FOLDER has the files of CIFAR-10's binary version,
whole or with fewer records.
"""
import argparse
import pathlib
import time

import syncopate_torch as syncopate
import torch
from torch import nn
from torch.nn import functional

CHANNELS, SIDE, CLASSES = 3, 32, 10
RECORD = 1 + CHANNELS * SIDE * SIDE  # bytes: a label, and the values of red, green and blue
TRAINING_FILES = [f"data_batch_{number}.bin" for number in range(1, 6)]
TEST_FILES = ["test_batch.bin"]


def records(path):
    """The bytes of a file, [images, 3073]. Errors: SystemExit, for a file that is missing or damaged."""
    if not path.exists():
        raise SystemExit(f"{path} is missing: unpack cifar-10-binary.tar.gz of "
                         "https://www.cs.toronto.edu/~kriz/cifar.html, and pass its folder as --data FOLDER")
    content = bytearray(path.read_bytes())
    if not content or len(content) % RECORD:
        raise SystemExit(f"{path}: expected whole records of {RECORD} bytes, found {len(content)} bytes; unpack it "
                         "again")
    return torch.frombuffer(content, dtype=torch.uint8).view(-1, RECORD)


def cifar10(folder, names):
    """A dataset of images of 3 x 32 x 32 values with mean 0, and their classes."""
    rows = torch.cat([records(pathlib.Path(folder) / name) for name in names])
    labels = rows[:, 0].long()
    if labels.max() >= CLASSES:
        raise SystemExit(f"{folder}: expected labels below {CLASSES}, found {int(labels.max())}; these files are not "
                         "those of CIFAR-10's binary version")
    images = rows[:, 1:].reshape(-1, CHANNELS, SIDE, SIDE)
    return torch.utils.data.TensorDataset((images.float() / 255 - 0.473) / 0.251, labels)


class ConvBN(nn.Sequential):
    """A convolution, its batch normalisation, and ReLU. The padding keeps the size, but for the stride."""

    def __init__(self, inputs, outputs, kernel, stride):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, padding=(kernel - 1) // 2), nn.BatchNorm2d(outputs),
                         nn.ReLU())


class Residual(nn.Module):
    """Two convolutions of the input, and the input itself."""

    def __init__(self, filters):
        super().__init__()
        self.layers = nn.Sequential(ConvBN(filters, filters, 3, 1), ConvBN(filters, filters, 3, 1))

    def forward(self, x):
        return x + self.layers(x)


def resnet9():
    """From images [N, 3, 32, 32] to logits [N, 10]."""
    return nn.Sequential(ConvBN(CHANNELS, 16, 7, 4), ConvBN(16, 32, 3, 2), Residual(32), ConvBN(32, 64, 3, 2),
                         ConvBN(64, 128, 3, 2), Residual(128), nn.Flatten(), nn.Linear(128, 128), nn.ReLU(),
                         nn.Linear(128, CLASSES))


def accuracy(model, dataset):
    model.eval()
    with torch.no_grad():
        correct = sum(int((model(images).argmax(1) == labels).sum())
                      for images, labels in torch.utils.data.DataLoader(dataset, batch_size=500))
    model.train()
    return correct / len(dataset)


def train_epoch(model, data, optimizer):
    """The loss of all samples of this worker, summed, and how many they are: [2] in float64."""
    sums = torch.zeros(2, dtype=torch.float64)
    for images, labels in data:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step(weight=len(images))
        sums += torch.tensor([loss.item() * len(images), len(images)], dtype=torch.float64)
    return sums


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="cifar-10-batches-bin", metavar="FOLDER")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=128, help="of all workers together")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--weight-decay", type=float, default=1e-3)
    return parser.parse_args()


def main():
    options = arguments()
    torch.set_num_threads(1)
    test = cifar10(options.data, TEST_FILES)
    training = cifar10(options.data, TRAINING_FILES)

    job = syncopate.init()
    data = job.partition_dataset(training, batch_size=options.batch_size)
    model = resnet9()
    job.broadcast_parameters(model)
    adam = torch.optim.Adam(model.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay)
    optimizer = job.DistributedOptimizer(adam, model)
    begun = time.monotonic()
    for epoch in range(1, options.epochs + 1):
        sums = job.allreduce(train_epoch(model, data, optimizer))
        if job.rank == 0:
            print(f"epoch {epoch}: loss {sums[0] / sums[1]:.3f}, accuracy {accuracy(model, test):.4f}, "
                  f"{time.monotonic() - begun:.1f} s", flush=True)
    optimizer.finish()


if __name__ == "__main__":
    main()
