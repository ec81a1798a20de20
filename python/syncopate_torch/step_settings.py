"""What a step of an optimizer depends on beside gradients and state, for the library to compare with that of other workers."""
import zlib

import torch

from syncopate_torch.rules import SETTINGS


class StepSettings:
    """Those of an optimizer of torch.optim, of all its groups."""

    def __init__(self, optimizer):
        self._optimizer = optimizer
        self._last = None

    def changed(self):
        """The rate of the first group, and a checksum of all settings; None where they are those of the last call, or on a
        device, which a step would wait for."""
        settings = [[_number(group.get(name)) for name in ("lr", *SETTINGS)] for group in self._optimizer.param_groups]
        if settings == self._last or any(_is_on_device(value) for row in settings for value in row):
            return None
        self._last = settings
        sizes = [len(group["params"]) for group in self._optimizer.param_groups]
        text = repr((sizes, [[_text(value) for value in row] for row in settings]))
        return settings[0][0] or 0, zlib.crc32(text.encode()) or 1


def _number(value):
    return float(value) if torch.is_tensor(value) and not _is_on_device(value) else value


def _is_on_device(value):
    return torch.is_tensor(value) and value.device.type != "cpu"


def _text(value):
    """Six digits of a number: hosts may compute the last one of a schedule differently."""
    if isinstance(value, (list, tuple)):
        return [_text(each) for each in value]
    return str(value) if value is None or isinstance(value, bool) else f"{float(value):.6g}"
