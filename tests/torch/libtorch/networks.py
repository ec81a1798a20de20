"""The built-in networks in plain PyTorch, written from their papers, with the names of Syncopate's parameters.

Tests compare their outputs with Syncopate's, and benchmarks their speed. To add a network, write a module and add a line to
NETWORKS.
"""
from torch import nn
from torch.nn import functional

from inception import InceptionV3
from layers import relu
from mobilenets import MobilenetV1, MobilenetV2
from residual import Resnet9, Resnet18, Resnet50V1, Resnet50V2


class Mlp(nn.Module):
    def __init__(self, channels, side, classes):
        super().__init__()
        self.fc1 = nn.Linear(channels * side * side, 256)
        self.fc2 = nn.Linear(256, 128)
        self.fc3 = nn.Linear(128, classes)

    def forward(self, x):
        return self.fc3(relu(self.fc2(relu(self.fc1(x.flatten(1))))))


class Lenet5(nn.Module):
    def __init__(self, channels, side, classes):
        super().__init__()
        left = (side // 2 - 4) // 2
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * left * left, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = relu(functional.max_pool2d(self.conv1(x), 2))
        x = relu(functional.max_pool2d(self.conv2(x), 2))
        return self.fc3(relu(self.fc2(relu(self.fc1(x.flatten(1))))))


class Alexnet(nn.Module):
    """Krizhevsky 2014 (arXiv:1404.5997), without local response normalization."""

    def __init__(self, channels, side, classes):
        super().__init__()
        del side
        self.features = nn.Sequential(
            nn.Conv2d(channels, 64, 11, 4, 2), nn.MaxPool2d(3, 2), nn.ReLU(inplace=True),
            nn.Conv2d(64, 192, 5, padding=2), nn.MaxPool2d(3, 2), nn.ReLU(inplace=True),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1), nn.MaxPool2d(3, 2), nn.ReLU(inplace=True),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Dropout(0.5), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True),
            nn.Dropout(0.5), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
            nn.Linear(4096, classes),
        )  # fmt: skip

    def forward(self, x):
        return self.classifier(functional.adaptive_avg_pool2d(self.features(x), 6).flatten(1))


# NETWORKS[name](channels, side, classes) makes a network.
NETWORKS = {
    "mlp": Mlp,
    "lenet5": Lenet5,
    "alexnet": Alexnet,
    "resnet9": Resnet9,
    "resnet18-v1": Resnet18,
    "resnet50-v1": Resnet50V1,
    "resnet50-v2": Resnet50V2,
    "mobilenet-v1": MobilenetV1,
    "mobilenet-v2": MobilenetV2,
    "inception-v3": InceptionV3,
}

# The smallest images of the networks that cannot take images of 28×28.
SMALLEST_SIDES = {"alexnet": 63, "inception-v3": 75}

# The inputs with which a network is compared, as (channels, side); by default those of MNIST and CIFAR.
INPUTS = {name: ((3, side),) for name, side in SMALLEST_SIDES.items()}
DEFAULT_INPUTS = ((1, 28), (3, 32))
