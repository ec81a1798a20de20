"""What `syncopate_torch.lightning` takes from the Lightning package that the script uses: `lightning`, or `pytorch_lightning`
where the script imports it first."""
import contextlib
import importlib
import sys


def _package():
    """The name of the Lightning package that the script uses."""
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
