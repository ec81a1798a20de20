"""Steps of a job in the place of those of an optimizer."""
import torch


class Stepper:
    """The optimizer, as Lightning's precision sees it: its steps are those of the job."""

    def __init__(self, strategy):
        self._strategy = strategy
        self._optimizer = strategy.optimizers[0]

    def step(self, closure=None):
        result = None
        if closure is not None:
            with torch.enable_grad():
                result = closure()
        self._strategy.take_step()
        return result

    def __getattr__(self, name):
        return getattr(self._optimizer, name)
