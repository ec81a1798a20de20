"""Residual networks: Page 2018 (resnet9), He et al. 2015 (arXiv:1512.03385) and He et al. 2016 (arXiv:1603.05027)."""
import torch
from torch import nn
from torch.nn import functional

from layers import ConvBn, channel_means, convolution, relu


class Resnet9Residual(nn.Module):
    def __init__(self, filters):
        super().__init__()
        self.layers = nn.Sequential(
            ConvBn(filters, filters, 3, padding=1), ConvBn(filters, filters, 3, padding=1))

    def forward(self, x):
        return self.layers(x) + x


class Resnet9(nn.Module):
    def __init__(self, channels, side, classes):
        super().__init__()
        del side
        self.prep = ConvBn(channels, 64, 3, padding=1)
        self.layer1 = nn.Sequential(ConvBn(64, 128, 3, padding=1), nn.MaxPool2d(2), Resnet9Residual(128))
        self.layer2 = nn.Sequential(ConvBn(128, 256, 3, padding=1), nn.MaxPool2d(2))
        self.layer3 = nn.Sequential(ConvBn(256, 512, 3, padding=1), nn.MaxPool2d(2), Resnet9Residual(512))
        self.fc = nn.Linear(512, classes, bias=False)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.prep(x))))
        return self.fc(torch.amax(x, (2, 3))) / 8


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = convolution(inputs, outputs, 3, stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = convolution(outputs, outputs, 3)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return relu(y)


class BottleneckV1(nn.Module):
    """As in Gluon's model, the first convolution has the stride, and the 1×1 convolutions have biases."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        mid = outputs // 4
        self.conv1 = nn.Conv2d(inputs, mid, 1, stride)
        self.bn1 = nn.BatchNorm2d(mid)
        self.conv2 = convolution(mid, mid, 3)
        self.bn2 = nn.BatchNorm2d(mid)
        self.conv3 = nn.Conv2d(mid, outputs, 1)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if inputs != outputs:
            self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(relu(self.bn2(self.conv2(y)))))
        y += x if self.downsample is None else self.downsample(x)
        return relu(y)


class BottleneckV2(nn.Module):
    """The projection, if there is one, takes the activations of the first BatchNorm as its input."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        mid = outputs // 4
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = convolution(inputs, mid, 1)
        self.bn2 = nn.BatchNorm2d(mid)
        self.conv2 = convolution(mid, mid, 3, stride)
        self.bn3 = nn.BatchNorm2d(mid)
        self.conv3 = convolution(mid, outputs, 1)
        self.downsample = None if inputs == outputs else convolution(inputs, outputs, 1, stride)

    def forward(self, x):
        activated = relu(self.bn1(x))
        y = relu(self.bn2(self.conv1(activated)))
        y = self.conv3(relu(self.bn3(self.conv2(y))))
        y += x if self.downsample is None else self.downsample(activated)
        return y


def stage(block, inputs, outputs, blocks, stride):
    return nn.Sequential(
        block(inputs, outputs, stride), *(block(outputs, outputs, 1) for _ in range(blocks - 1)))


class Stages(nn.Module):
    """Four stages of blocks behind a 7×7 convolution and a pooling, with the parameter names of torchvision."""

    def __init__(self, channels, block, depths, widths):
        super().__init__()
        self.conv1 = convolution(channels, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = stage(block, 64, widths[0], depths[0], 1)
        self.layer2 = stage(block, widths[0], widths[1], depths[1], 2)
        self.layer3 = stage(block, widths[1], widths[2], depths[2], 2)
        self.layer4 = stage(block, widths[2], widths[3], depths[3], 2)

    def features(self, x):
        x = functional.max_pool2d(relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))


class Resnet18(Stages):
    def __init__(self, channels, side, classes):
        super().__init__(channels, BasicBlock, (2, 2, 2, 2), (64, 128, 256, 512))
        del side
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        return self.fc(channel_means(self.features(x)))


class Resnet50V1(Stages):
    def __init__(self, channels, side, classes):
        super().__init__(channels, BottleneckV1, (3, 4, 6, 3), (256, 512, 1024, 2048))
        del side
        self.fc = nn.Linear(2048, classes)

    def forward(self, x):
        return self.fc(channel_means(self.features(x)))


class Resnet50V2(Stages):
    """As in Gluon's model, a BatchNorm whose scale and shift are not trained normalises the images."""

    def __init__(self, channels, side, classes):
        super().__init__(channels, BottleneckV2, (3, 4, 6, 3), (256, 512, 1024, 2048))
        del side
        self.data_bn = nn.BatchNorm2d(channels).requires_grad_(False)
        self.bn2 = nn.BatchNorm2d(2048)
        self.fc = nn.Linear(2048, classes)

    def forward(self, x):
        return self.fc(channel_means(relu(self.bn2(self.features(self.data_bn(x))))))
