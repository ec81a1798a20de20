"""Imports for `syncopate_torch.lightning` from the Lightning package that the script uses (`lightning`, or
`pytorch_lightning` if the script imports that first), and the callback, environment and optimizer that it gives to
Lightning.
"""
import contextlib
import importlib
import sys

import torch


def _package():
    """Returns the name of the Lightning package that the script uses."""
    if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
        return "pytorch_lightning"
    for name in ("lightning.pytorch", "pytorch_lightning"):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name).__name__
    raise ImportError("syncopate_torch.lightning needs PyTorch Lightning; pip install lightning")


_NAME = _package()


def _from_lightning(module, *names):
    found = importlib.import_module(f"{_NAME}.{module}")
    return [getattr(found, name) for name in names]


(ParallelStrategy,) = _from_lightning("strategies", "ParallelStrategy")
(ClusterEnvironment,) = _from_lightning("plugins.environments", "ClusterEnvironment")
BaseFinetuning, BatchSizeFinder, Callback, LearningRateFinder, ModelCheckpoint, StochasticWeightAveraging, Timer = _from_lightning(
    "callbacks", "BaseFinetuning", "BatchSizeFinder", "Callback", "LearningRateFinder", "ModelCheckpoint",
    "StochasticWeightAveraging", "Timer")
(extract_batch_size,) = _from_lightning("utilities.data", "extract_batch_size")
(is_overridden,) = _from_lightning("utilities.model_helpers", "is_overridden")
(rank_zero_only,) = _from_lightning("utilities.rank_zero", "rank_zero_only")


class FirstCallback(Callback):
    """Runs before the other callbacks: those that replace the weights at the end, such as averages, then replace the
    job's final weights; those that save after an error wait for no other worker."""

    def __init__(self, strategy):
        self._strategy = strategy

    def on_train_end(self, trainer, pl_module):  # noqa: ARG002 (the strategy has both)
        self._strategy.end_loops()

    def on_exception(self, trainer, pl_module, exception):  # noqa: ARG002
        self._strategy.is_failing = True


class SyncopateEnvironment(ClusterEnvironment):
    """The workers of a job, as Lightning's cluster environment."""

    def __init__(self, job):
        self._job = job

    @property
    def creates_processes_externally(self):
        return True

    @property
    def main_address(self):
        return "127.0.0.1"

    @property
    def main_port(self):
        return 0

    @staticmethod
    def detect():
        return False

    def world_size(self):
        return self._job.size

    def set_world_size(self, size):
        """Has no effect: the launcher decides."""

    def global_rank(self):
        return self._job.rank

    def set_global_rank(self, rank):
        """Has no effect: the launcher decides."""

    def local_rank(self):
        return self._job.local_rank

    def node_rank(self):
        return 0


class Stepper:
    """The optimizer that Lightning's precision plugin steps: its steps are those of the job."""

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
