# The types of the module's interface; the docstrings are in the sources.
from typing import Any

from torch.amp import GradScaler as _Base

from syncopate_torch import Job

class GradScaler(_Base):
    def __init__(self, job: Job, *arguments: Any, **options: Any) -> None: ...
