"""Fashion-MNIST from the four files that everybody has, such as those of Debian's package dataset-fashion-mnist."""
import gzip
import pathlib

import torch

USUAL_FOLDER = "/usr/share/datasets/fashion-mnist"


def _values(folder, name, header):
    packed = pathlib.Path(folder) / f"{name}.gz"
    if not packed.exists():
        raise SystemExit(f"{packed} is missing: apt install dataset-fashion-mnist, or pass --data FOLDER")
    return torch.frombuffer(bytearray(gzip.decompress(packed.read_bytes())[header:]), dtype=torch.uint8)


def fashion_mnist(folder, part, count=None):
    """A dataset of images of 1 x 28 x 28 values with mean 0, and their classes; the first `count` of it."""
    images = _values(folder, f"{part}-images-idx3-ubyte", 16).view(-1, 1, 28, 28)[:count]
    labels = _values(folder, f"{part}-labels-idx1-ubyte", 8)[:count]
    return torch.utils.data.TensorDataset((images.float() / 255 - 0.2860) / 0.3530, labels.long())


def small_network():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
                         nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))


def accuracy(model, dataset):
    images, labels = dataset.tensors
    with torch.no_grad():
        return (model(images).argmax(1) == labels).double().mean().item()
