# The types of the module's interface; the docstrings are in the sources.
from typing import Any, Callable, Mapping, Optional

import torch
from accelerate import Accelerator

from syncopate_torch import DistributedOptimizer, Job

class rounds:
    enabled: bool
    job: Optional[Job]
    distributed_optimizer: Optional[DistributedOptimizer]
    def __init__(
        self, accelerator: Accelerator, model: torch.nn.Module, optimizer: Any, scheme: Optional[str] = ...,
        options: Optional[Mapping[str, Any]] = ..., batch_size: Optional[int] = ...,
        on_round: Optional[Callable[[dict[str, Any]], None]] = ..., enabled: bool = ...) -> None: ...
    def __enter__(self) -> rounds: ...
    def __exit__(self, kind: Any, error: Any, trace: Any) -> None: ...
    def step(self, weight: Optional[int] = ...) -> None: ...
    def synchronize(self, weight: Optional[int] = ...) -> None: ...
    def align(self, place: str = ...) -> None: ...
