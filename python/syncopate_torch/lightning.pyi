# The types of the module's interface; the docstrings are in the sources.
from typing import Any, Callable, Mapping, Optional

import torch
from lightning.pytorch.plugins.environments import ClusterEnvironment
from lightning.pytorch.strategies import ParallelStrategy

from syncopate_torch import DistributedOptimizer, Job

class SyncopateEnvironment(ClusterEnvironment):
    def __init__(self, job: Job) -> None: ...

class SyncopateStrategy(ParallelStrategy):
    job: Job
    def __init__(
        self, scheme: Optional[str] = ..., options: Optional[Mapping[str, Any]] = ...,
        weight: Optional[Callable[[Any], int]] = ..., accelerator: Any = ...,
        parallel_devices: Optional[list[torch.device]] = ..., checkpoint_io: Any = ...,
        precision_plugin: Any = ...) -> None: ...
    @property
    def distributed_optimizer(self) -> DistributedOptimizer: ...
