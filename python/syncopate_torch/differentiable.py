"""Collectives that autograd differentiates: the gradient of a collective is another collective, of all workers."""
import torch

from syncopate_torch.checks import expect_tensor


class _Collective(torch.autograd.Function):
    @staticmethod
    def forward(context, tensor, collective, gradient):
        context.gradient = gradient
        return collective(tensor)

    @staticmethod
    def backward(context, gradient):
        return context.gradient(gradient), None, None


def with_gradient(tensor, collective, gradient):
    """The result of `collective(tensor)`. Where autograd records, its backward pass calls `gradient` with the gradient of
    the result, and takes what that returns as the gradient of the tensor. Workers record alike, or none does.
    Errors: ConfigError, for what is no tensor."""
    expect_tensor(tensor)
    if tensor.requires_grad and torch.is_grad_enabled():
        return _Collective.apply(tensor, collective, gradient)
    return collective(tensor)
