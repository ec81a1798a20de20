"""What the strategy learns by the hooks of a callback."""
from syncopate_torch.lightning_package import Callback


class FirstCallback(Callback):
    """Before the other callbacks: those that replace the weights at the end, such as averages, replace those of the job; and
    those that save after an error wait for no other worker."""

    def __init__(self, strategy):
        self._strategy = strategy

    def on_train_end(self, trainer, pl_module):  # noqa: ARG002 (the strategy has both)
        self._strategy.end_loops()

    def on_exception(self, trainer, pl_module, exception):  # noqa: ARG002
        self._strategy.is_failing = True
