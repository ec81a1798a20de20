"""MobileNets of width 1: Howard et al. 2017 (arXiv:1704.04861) and Sandler et al. 2018 (arXiv:1801.04381)."""
from torch import nn
from torch.nn import functional

from layers import ConvBn, channel_means, identity, relu6

# Filters and stride of each separable convolution: table 1 of the paper.
V1_BODY = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1),
    (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1),
)  # fmt: skip

# Factor, filters, blocks and stride (t, c, n and s) of the blocks: table 2 of the paper.
V2_BODY = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


class MobilenetV1(nn.Module):
    def __init__(self, channels, side, classes):
        super().__init__()
        del side
        layers = [ConvBn(channels, 32, 3, stride=2, padding=1)]
        inputs = 32
        for filters, stride in V1_BODY:
            layers.append(ConvBn(inputs, inputs, 3, stride=stride, padding=1, groups=inputs))
            layers.append(ConvBn(inputs, filters, 1))
            inputs = filters
        self.features = nn.Sequential(*layers)
        self.fc = nn.Linear(1024, classes)

    def forward(self, x):
        return self.fc(channel_means(self.features(x)))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, factor, stride):
        super().__init__()
        wide = inputs * factor
        self.is_added = stride == 1 and inputs == outputs
        self.layers = nn.Sequential(
            ConvBn(inputs, wide, 1, activation=relu6),
            ConvBn(wide, wide, 3, activation=relu6, stride=stride, padding=1, groups=wide),
            ConvBn(wide, outputs, 1, activation=identity),
        )

    def forward(self, x):
        y = self.layers(x)
        if self.is_added:
            y += x
        return y


class MobilenetV2(nn.Module):
    """As in Gluon's model, the first block widens as well, and the classifier is a 1×1 convolution without bias."""

    def __init__(self, channels, side, classes):
        super().__init__()
        del side
        layers = [ConvBn(channels, 32, 3, activation=relu6, stride=2, padding=1)]
        inputs = 32
        for factor, filters, blocks, stride in V2_BODY:
            for block in range(blocks):
                layers.append(InvertedResidual(inputs, filters, factor, stride if block == 0 else 1))
                inputs = filters
        layers.append(ConvBn(inputs, 1280, 1, activation=relu6))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Conv2d(1280, classes, 1, bias=False)

    def forward(self, x):
        return self.classifier(functional.adaptive_avg_pool2d(self.features(x), 1)).flatten(1)
