"""The errors of the library: a separate class exists only if callers act on the difference. Messages are one line."""
import collections


class Error(RuntimeError):
    """The base class of all errors that Syncopate raises."""


class ConfigError(Error, ValueError):
    """An invalid or contradictory option, argument or order of calls."""


class DataError(Error):
    """A file or memory is missing, damaged, or cannot be written."""


class PeerLost(Error):
    """Another process of the job has died, or the connection to it is broken."""


class TimedOut(Error):
    """A time limit has passed. The message names the missing worker."""


class NotFinite(Error):
    """A gradient is not finite, and the job is configured to stop in this case."""


class ProtocolError(Error):
    """Another process uses another protocol version, or sent damaged bytes."""


class Cancelled(Error):
    """The user has ended the job, or it ended elsewhere."""


class InternalError(Error):
    """A bug of Syncopate: please report it."""


_of_operations = collections.deque(maxlen=16)


def keep_of_operation(error):
    """Stores an error for `error_behind`: torch may raise an error of an operation as its own RuntimeError."""
    if isinstance(error, Error):
        _of_operations.append(error)


def error_behind(error):
    """Returns the Syncopate error that caused an error of torch, for example in the backward pass of
    DistributedDataParallel; its class identifies the cause. Returns None if there is none."""
    if isinstance(error, Error):
        return error
    text = str(error)
    return next((own for own in reversed(_of_operations) if str(own) and str(own) in text), None)


# In the order of syncopate_status; 0 is success.
BY_STATUS = {1: Error, 2: ConfigError, 3: DataError, 4: PeerLost, 5: TimedOut, 6: NotFinite, 7: ProtocolError,
             8: Cancelled, 9: InternalError}

for each in BY_STATUS.values():
    each.__module__ = "syncopate_torch"  # the name that scripts import, for tracebacks
