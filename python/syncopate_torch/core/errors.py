"""What the library raises: one class only where somebody acts on the difference. Messages are one line each."""
import collections


class Error(RuntimeError):
    """Everything that Syncopate raises derives from this."""


class ConfigError(Error, ValueError):
    """Something impossible or contradictory: an option, an argument, an order of calls."""


class DataError(Error):
    """A file or memory is missing, damaged, or cannot be written."""


class PeerLost(Error):
    """Another process of the job has died, or its connection broke."""


class TimedOut(Error):
    """A deadline passed. The message names who was missing."""


class NotFinite(Error):
    """A gradient is not a number, and the job was to stop there."""


class ProtocolError(Error):
    """Another process speaks another version, or sent damaged bytes."""


class Cancelled(Error):
    """The user has ended the job, or it ended elsewhere."""


class InternalError(Error):
    """A bug of Syncopate: please report it."""


_of_operations = collections.deque(maxlen=16)


def keep_of_operation(error):
    """For `error_behind`: torch may show an error of an operation as a RuntimeError of its own."""
    if isinstance(error, Error):
        _of_operations.append(error)


def error_behind(error):
    """The error of Syncopate from which torch has made this one, as in the backward pass of DistributedDataParallel: it has the
    class that says what happened. None: there is none."""
    if isinstance(error, Error):
        return error
    text = str(error)
    return next((own for own in reversed(_of_operations) if str(own) and str(own) in text), None)


# In the order of syncopate_status; 0 is success.
BY_STATUS = {1: Error, 2: ConfigError, 3: DataError, 4: PeerLost, 5: TimedOut, 6: NotFinite, 7: ProtocolError,
             8: Cancelled, 9: InternalError}

for each in BY_STATUS.values():
    each.__module__ = "syncopate_torch"  # the name that scripts import, for tracebacks
