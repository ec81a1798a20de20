"""BatchNorm over the batches of all workers. It replaces torch.nn.SyncBatchNorm, which needs a process group."""
import weakref

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from syncopate_torch.core.arguments import expect_tensor
from syncopate_torch.core.errors import ConfigError


class _Collective(torch.autograd.Function):
    @staticmethod
    def forward(context, tensor, collective, gradient):
        context.gradient = gradient
        return collective(tensor)

    @staticmethod
    def backward(context, gradient):
        return context.gradient(gradient), None, None


def with_gradient(tensor, collective, gradient):
    """Returns `collective(tensor)`. If autograd records, its backward pass calls `gradient` with the gradient of the
    result, and uses the returned tensor as the gradient of `tensor`. Either all workers record or none.
    Errors: ConfigError if the argument is no tensor."""
    expect_tensor(tensor)
    if tensor.requires_grad and torch.is_grad_enabled():
        return _Collective.apply(tensor, collective, gradient)
    return collective(tensor)


_groups = weakref.WeakKeyDictionary()  # group of all workers, by layer


class SyncBatchNorm(torch.nn.SyncBatchNorm):
    """The class of a layer that a job trains or has trained. After the training, and in a copy, the layer uses in
    training mode the statistics of its own batches."""

    def forward(self, batch):
        """batch: [samples, channels, ...]."""
        return forward_of(self, batch, _groups.get(self))


class SynchronizedLayers:
    """Makes the torch.nn.SyncBatchNorm layers of a module compute mean and variance over the batches of all workers.
    All workers make this object together, and call the module equally often in training mode."""

    def __init__(self, job, module, scheme):
        """Errors: ConfigError if workers of the scheme do not take each step together."""
        named = [(name, layer) for name, layer in module.named_modules() if isinstance(layer, torch.nn.SyncBatchNorm)]
        self._layers = [layer for _, layer in named] if job.size > 1 else []
        if not self._layers:
            return
        if not scheme.steps_together:
            raise ConfigError(f"{named[0][0]} is a SyncBatchNorm, for which all workers have to take each step together, and "
                              f"under {scheme.name} they do not: choose ssgd, or torch.nn.BatchNorm2d over the batch of each worker")
        group = job.open_group(range(job.size))
        for layer in self._layers:
            layer.__class__ = SyncBatchNorm
            _groups[layer] = group

    def release(self):
        """Makes the layers use the batches of only this worker from now on."""
        for layer in self._layers:
            _groups.pop(layer, None)


def forward_of(layer, batch, group):
    """Returns the output of a layer for a batch, in training mode computed together with a group of workers, if any."""
    if group is not None and (layer.training or layer.running_mean is None):
        return normalized(layer, batch, group)
    return _BatchNorm.forward(layer, batch)


def normalized(layer, batch, group):
    """Normalizes a batch as a BatchNorm layer does in training, with mean and variance over the batches of all members
    of a group. Updates the running statistics. batch: [samples, channels, ...]; the number of samples may differ
    between members.

    The gradient is that of the mean loss over all samples: members are weighted by their number of samples.
    """
    values = batch.float() if batch.dtype in (torch.float16, torch.bfloat16) else batch
    dims = [dim for dim in range(values.dim()) if dim != 1]
    shape = [1, -1] + [1] * (values.dim() - 2)
    own = values.new_tensor([values.numel() // values.shape[1]])
    sums = _sum(torch.cat([values.sum(dims), own]), len(batch), group)
    count = sums[-1].detach()
    mean = sums[:-1] / count
    centred = values - mean.view(shape)
    variance = _sum(centred.square().sum(dims), len(batch), group) / count
    _update(layer, mean.detach(), variance.detach(), count)
    result = centred * (variance + layer.eps).rsqrt().view(shape)
    if layer.affine:
        result = result * layer.weight.view(shape) + layer.bias.view(shape)
    return result.to(batch.dtype)


def _sum(tensor, samples, group):
    """Sums over the members; the loss of each member is a mean over its samples."""
    weight = max(samples, 1)
    return with_gradient(tensor, lambda own: group.allreduce(own.detach().clone()),
                         lambda gradient: group.allreduce(gradient * weight) / weight)


def _update(layer, mean, variance, count):
    """Updates running statistics as torch does: an average over all batches if the layer has no momentum; with the
    unbiased variance."""
    if not layer.training or not layer.track_running_stats:
        return
    with torch.no_grad():
        layer.num_batches_tracked.add_(1)
        momentum = 1 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
        layer.running_mean.lerp_(mean.to(layer.running_mean.dtype), momentum)
        unbiased = variance * (count / (count - 1))
        layer.running_var.lerp_(unbiased.to(layer.running_var.dtype), momentum)
