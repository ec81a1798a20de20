"""Inception-v3 (Szegedy et al. 2015, arXiv:1512.00567) without its auxiliary classifier."""
import torch
from torch import nn

from layers import ConvBn, channel_means

EPSILON = 1e-3


def keeping(inputs, outputs, height, width):
    """Returns a convolution that keeps the size of the image."""
    return ConvBn(inputs, outputs, (height, width), epsilon=EPSILON, padding=(height // 2, width // 2))


def inner(inputs, outputs, stride=1):
    """Returns a 3×3 convolution without padding."""
    return ConvBn(inputs, outputs, 3, epsilon=EPSILON, stride=stride)


def average_pool():
    return nn.AvgPool2d(3, 1, 1)


def max_pool():
    return nn.MaxPool2d(3, 2)


class Branches(nn.Module):
    """Concatenates the channels of branches over one input; each branch is a list of layers."""

    def __init__(self, *branches):
        super().__init__()
        for number, layers in enumerate(branches):
            self.add_module(f"branch{number}", nn.Sequential(*layers))

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.children()], 1)


def inception_a(inputs, pooled):
    """Figure 5 of the paper, with a single 5×5 convolution."""
    return Branches(
        [keeping(inputs, 64, 1, 1)],
        [keeping(inputs, 48, 1, 1), keeping(48, 64, 5, 5)],
        [keeping(inputs, 64, 1, 1), keeping(64, 96, 3, 3), keeping(96, 96, 3, 3)],
        [average_pool(), keeping(inputs, pooled, 1, 1)],
    )


def reduction_a(inputs):
    """Figure 10."""
    return Branches(
        [inner(inputs, 384, 2)],
        [keeping(inputs, 64, 1, 1), keeping(64, 96, 3, 3), inner(96, 96, 2)],
        [max_pool()],
    )


def inception_b(mid):
    """Figure 6 with n = 7."""
    return Branches(
        [keeping(768, 192, 1, 1)],
        [keeping(768, mid, 1, 1), keeping(mid, mid, 1, 7), keeping(mid, 192, 7, 1)],
        [keeping(768, mid, 1, 1), keeping(mid, mid, 7, 1), keeping(mid, mid, 1, 7), keeping(mid, mid, 7, 1),
         keeping(mid, 192, 1, 7)],
        [average_pool(), keeping(768, 192, 1, 1)],
    )  # fmt: skip


def reduction_b():
    return Branches(
        [keeping(768, 192, 1, 1), inner(192, 320, 2)],
        [keeping(768, 192, 1, 1), keeping(192, 192, 1, 7), keeping(192, 192, 7, 1), inner(192, 192, 2)],
        [max_pool()],
    )


def row_and_column(inputs):
    return Branches([keeping(inputs, 384, 1, 3)], [keeping(inputs, 384, 3, 1)])


def inception_c(inputs):
    """Figure 7."""
    return Branches(
        [keeping(inputs, 320, 1, 1)],
        [keeping(inputs, 384, 1, 1), row_and_column(384)],
        [keeping(inputs, 448, 1, 1), keeping(448, 384, 3, 3), row_and_column(384)],
        [average_pool(), keeping(inputs, 192, 1, 1)],
    )


class InceptionV3(nn.Module):
    def __init__(self, channels, side, classes):
        super().__init__()
        del side
        self.stem = nn.Sequential(
            inner(channels, 32, 2), inner(32, 32), keeping(32, 64, 3, 3), max_pool(),
            keeping(64, 80, 1, 1), inner(80, 192), max_pool(),
        )  # fmt: skip
        self.mixed = nn.Sequential(
            inception_a(192, 32), inception_a(256, 64), inception_a(288, 64), reduction_a(288),
            inception_b(128), inception_b(160), inception_b(160), inception_b(192), reduction_b(),
            inception_c(1280), inception_c(2048),
        )  # fmt: skip
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(2048, classes)

    def forward(self, x):
        return self.fc(self.dropout(channel_means(self.mixed(self.stem(x)))))
