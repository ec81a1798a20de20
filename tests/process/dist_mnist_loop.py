"""The program of examples/dist_mnist in Python, for same_training_test.py.

dist_mnist_loop.py script FILE                          writes its network, before the first step, as TorchScript
dist_mnist_loop.py train FOLDER EPOCHS IMAGES OUTPUT    trains; worker 0 writes the parameters by name as JSON
"""
import json
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional


class Net(nn.Module):
    """The network of the example, with the initial parameters of the example's worker 0."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(1, 10, 5)
        self.second = nn.Conv2d(10, 20, 5)
        self.hidden = nn.Linear(320, 50)
        self.output = nn.Linear(50, 10)

    def forward(self, x):
        x = torch.relu(torch.max_pool2d(self.first(x), 2))
        x = torch.relu(torch.max_pool2d(self.second(x), 2))
        x = torch.relu(self.hidden(x.flatten(1)))
        return torch.log_softmax(self.output(x), 1)


class OfNormalised(Net):
    """The same network for images that `syncopate train` has normalised; the example does not normalise them.

    It restores the exact values of the pixels. Otherwise rounding decides from which of several equal values max pooling
    takes the maximum, and so changes the gradient.
    """

    def __init__(self):
        super().__init__()
        self.mean, self.deviation = 0.2860, 0.3530  # of Fashion-MNIST's pixels

    def forward(self, x):
        x = torch.round((x * self.deviation + self.mean) * 255) / 255
        x = torch.relu(torch.max_pool2d(self.first(x), 2))
        x = torch.relu(torch.max_pool2d(self.second(x), 2))
        x = torch.relu(self.hidden(x.flatten(1)))
        return torch.log_softmax(self.output(x), 1)


def values(folder, name, header):
    content = pathlib.Path(folder, name).read_bytes()
    return torch.frombuffer(bytearray(content[header:]), dtype=torch.uint8)


def images_of(folder, count):
    images = values(folder, "train-images-idx3-ubyte", 16).view(-1, 1, 28, 28)[:count].float() / 255
    return torch.utils.data.TensorDataset(images, values(folder, "train-labels-idx1-ubyte", 8)[:count].long())


def train(folder, epochs, images, output):
    import syncopate_torch as syncopate  # noqa: PLC0415 (writing the TorchScript file does not need it)

    job = syncopate.init()
    data = job.partition_dataset(images_of(folder, int(images)), batch_size=64)
    net = Net()
    job.broadcast_parameters(net)
    optimizer = job.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9), net)
    for _ in range(int(epochs)):
        for x, y in data:
            optimizer.zero_grad()
            functional.nll_loss(net(x), y).backward()
            optimizer.step(weight=len(x))
    optimizer.finish()
    if job.rank == 0:
        parameters = {name: parameter.detach().flatten().tolist() for name, parameter in net.named_parameters()}
        pathlib.Path(output).write_text(json.dumps(parameters), encoding="utf-8")


def script(file):
    torch.jit.script(OfNormalised()).save(file)


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](*sys.argv[2:])
