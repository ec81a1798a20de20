"""Layers that several networks have."""
from torch import nn
from torch.nn import functional


def relu(x):
    return functional.relu(x, inplace=True)


def relu6(x):
    return functional.relu6(x, inplace=True)


def identity(x):
    return x


def convolution(inputs, outputs, kernel, stride=1):
    """Returns a convolution with padding and without bias, since the BatchNorm behind it has one."""
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


def channel_means(x):
    return functional.adaptive_avg_pool2d(x, 1).flatten(1)


class ConvBn(nn.Module):
    """A convolution without bias, BatchNorm, and an activation; further arguments are the convolution's."""

    def __init__(self, inputs, outputs, kernel, *, activation=relu, epsilon=1e-5, **options):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, bias=False, **options)
        self.bn = nn.BatchNorm2d(outputs, eps=epsilon)
        self.activation = activation

    def forward(self, x):
        return self.activation(self.bn(self.conv(x)))
