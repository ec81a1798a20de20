"""What belongs to this worker and this process alone."""
from syncopate_torch.errors import ConfigError


class NotCopied:
    """An object with handles of the library, of which there can be no second one."""

    def __reduce__(self):
        raise ConfigError(f"a {type(self).__name__} cannot be pickled or copied: it is a part of this worker in its job; save "
                          "the state_dict() of the job, and hand its rank and size to other processes")
