"""Numbers of a script, as the library takes them. ctypes would cut off what is beyond the range of a whole one."""
import math
import operator

from syncopate_torch.errors import ConfigError

MOST_32, MOST_64 = 2**32 - 1, 2**64 - 1


def whole(name, value, most, least=0):
    """A whole number from `least` to `most`, in any of the forms that `number_of` takes. Errors: ConfigError, which names it."""
    number = number_of(value)
    if number is None or not least <= number <= most or number != int(number):
        raise ConfigError(f"{name} is a whole number from {least} to {most}, found {shown(value)}")
    return int(number)


def seconds(name, value):
    """A number of seconds, and 0 for None. Errors: ConfigError, which names it."""
    number = 0.0 if value is None else number_of(value)
    if number is None or not 0 <= number < math.inf:
        raise ConfigError(f"{name} is a number of seconds, or None for half an hour, found {shown(value)}")
    return float(number)


def number_of(value):
    """An int of a whole number, also of NumPy or in a tensor of one value; else a float; None: it is no number."""
    try:
        return operator.index(value)
    except TypeError:
        pass
    try:
        return None if isinstance(value, (str, bytes, bytearray)) else float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # torch raises several, of a tensor of several values
        return None


def shown(value):
    """In a message of one line."""
    if value is None or isinstance(value, str):
        return repr(value)
    return f"a value of type {type(value).__name__}" if number_of(value) is None else str(value)
