"""The weight of a step in a mean over workers: its samples, or tokens."""
from syncopate_torch.errors import ConfigError

_MOST = 2**32 - 1


def whole_weight(samples):
    """A number, or a tensor of one value, as the library takes it. Errors: ConfigError."""
    number = float(samples)
    if not 0 <= number <= _MOST:
        raise ConfigError(f"a step has from 0 to {_MOST} samples, found {samples}")
    if number != int(number):
        raise ConfigError(f"a step weighs a whole number of samples or tokens, found {number:g}: multiply the weights of "
                          "all workers by the same number")
    return int(samples)
