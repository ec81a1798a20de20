"""The weight of a step in a mean over workers: its samples, or tokens."""
from syncopate_torch.errors import ConfigError
from syncopate_torch.given_numbers import MOST_32, number_of, shown


def whole_weight(samples):
    """A number, or a tensor of one value, as the library takes it. Errors: ConfigError."""
    number = number_of(samples)
    if number is None:
        raise ConfigError(f"a step weighs a whole number of samples or tokens, found {shown(samples)}")
    if not 0 <= number <= MOST_32:
        raise ConfigError(f"a step has from 0 to {MOST_32} samples, found {samples}")
    if number != int(number):
        raise ConfigError(f"a step weighs a whole number of samples or tokens, found {number:g}: multiply the weights of "
                          "all workers by the same number")
    return int(number)
