"""The functions of syncopate.h through ctypes, which releases the interpreter lock while a function runs."""
import collections.abc
import ctypes
import os
import pathlib
import threading
import time
import weakref
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p

from syncopate_torch.core.errors import BY_STATUS, ConfigError, Error
from syncopate_torch.core.process import SIGNALS, Interruption


class Option(Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class Entry(Structure):
    _fields_ = [("size", c_size_t), ("coordinator", c_char_p), ("key", c_char_p), ("rank", c_uint32),
                ("worker_count", c_uint32), ("local_rank", c_uint32), ("address", c_char_p), ("unencrypted", c_int),
                ("key_file", c_char_p)]


class JoinOptions(Structure):
    _fields_ = [("size", c_size_t), ("scheme", c_char_p), ("options", POINTER(Option)), ("option_count", c_size_t),
                ("entry", POINTER(Entry)), ("wait_seconds", c_double)]


class HostOptions(Structure):
    _fields_ = [("size", c_size_t), ("address", c_char_p), ("unencrypted", c_int), ("key_file", c_char_p)]


class GroupOptions(Structure):
    _fields_ = [("size", c_size_t), ("ranks", POINTER(c_uint32)), ("rank_count", c_size_t), ("wait_seconds", c_double)]


# Callbacks return the address of their reason, or None: ctypes does not convert returned strings.
View = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_int, POINTER(c_void_p))
Store = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_int)
Move = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_int, c_void_p, c_void_p)
TakeStep = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_double)
UseGradients = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p)
BeginSum = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_uint64, c_void_p)
OnRound = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)

# The interpreter handles a signal only after a function has returned.
_GLANCE = 0.1

PARAMETERS, GRADIENTS, BUFFERS = 0, 1, 2
ANY = 2**32 - 1


class Replica(Structure):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("parameter_count", c_uint64), ("buffer_count", c_uint64),
                ("view", View), ("store", Store), ("move", Move), ("take_step", TakeStep), ("tensor_count", c_uint64),
                ("use_gradients", UseGradients), ("reason", POINTER(c_char_p)), ("begin_sum", BeginSum),
                ("sum_members", c_uint32)]


class SchemeTraits(Structure):
    _fields_ = [("size", c_size_t), ("scheme", c_char_p), ("options", c_char_p),
                *((flag, c_int) for flag in ("in_rounds", "in_lockstep", "local_steps", "takes_means", "waits_for_steps",
                                             "pulls_each_step", "pulls_some_steps"))]


class TrainingOptions(Structure):
    _fields_ = [("size", c_size_t), ("scheme", c_char_p), ("options", POINTER(Option)), ("option_count", c_size_t),
                ("batch_size", c_uint32), ("learning_rate", c_double), ("rule", POINTER(Option)),
                ("rule_count", c_size_t), ("has_no_rule", c_char_p), ("on_round", OnRound), ("on_round_user", c_void_p)]


def _load():
    """Loads the library that the environment names, else that of this package, else that of the system."""
    named = os.environ.get("SYNCOPATE_LIBRARY")
    own = pathlib.Path(__file__).parents[1] / "lib" / "libsyncopate.so.0"
    path = named or (str(own) if own.exists() else "libsyncopate.so.0")
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        _refuse(error)


def _refuse(reason):
    raise ImportError(f"cannot load Syncopate's library: {reason}; install the wheel that brings it "
                      "(script/wheel, or `pip install .` in the repository), or package libsyncopate0, or set "
                      "SYNCOPATE_LIBRARY to the path of libsyncopate.so.0") from None


def _nothing():
    """Finalizer of a library that stays loaded."""


_LIBRARY = _load()
# Python runs all weakref.finalize callbacks in one atexit handler, which the first of them registers. Functions that
# the script registers with atexit after this line run earlier, and may use its process groups.
weakref.finalize(_LIBRARY, _nothing)

# Result and arguments; the result is None for a function that returns a status.
_SIGNATURES = {
    "last_error": (c_char_p, []),
    "version": (c_char_p, []),
    "set_interruption": ("nothing", [Interruption, c_void_p]),
    "join": (None, [c_void_p, c_void_p]),
    "leave": ("nothing", [c_void_p]),
    "rank": (c_uint32, [c_void_p]),
    "worker_count": (c_uint32, [c_void_p]),
    "local_rank": (c_uint32, [c_void_p]),
    "host_of": (c_uint32, [c_void_p, c_uint32]),
    "is_alone": (c_int, [c_void_p]),
    "host_open": (None, [c_uint32, c_void_p, c_void_p]),
    "host_coordinator": (c_char_p, [c_void_p]),
    "host_key": (c_char_p, [c_void_p]),
    "host_close": ("nothing", [c_void_p]),
    "everyone": (c_void_p, [c_void_p]),
    "group_open": (None, [c_void_p, c_void_p, c_void_p]),
    "group_close": ("nothing", [c_void_p]),
    "group_rank": (c_uint32, [c_void_p]),
    "group_size": (c_uint32, [c_void_p]),
    "allreduce": (None, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p]),
    "reduce": (None, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_uint32, c_void_p]),
    "reduce_scatter": (None, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p]),
    "next_type": (None, [c_void_p, c_char_p]),
    "broadcast": (None, [c_void_p, c_void_p, c_size_t, c_uint32, c_void_p]),
    "allgather": (None, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]),
    "gather": (None, [c_void_p, c_void_p, c_size_t, c_void_p, c_uint32, c_void_p]),
    "scatter": (None, [c_void_p, c_void_p, c_size_t, c_void_p, c_uint32, c_void_p]),
    "alltoall": (None, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "barrier": (None, [c_void_p, c_void_p]),
    "send": (None, [c_void_p, c_void_p, c_size_t, c_uint32, c_uint32, c_void_p]),
    "receive": (None, [c_void_p, c_void_p, c_size_t, c_uint32, c_uint32, c_void_p]),
    "work_is_done": (c_int, [c_void_p]),
    "work_wait": (None, [c_void_p]),
    "work_wait_for": (None, [c_void_p, c_double, c_void_p]),
    "work_source": (c_uint32, [c_void_p]),
    "work_free": ("nothing", [c_void_p]),
    "share_open": (None, [c_void_p, c_uint64, c_uint64, c_void_p]),
    "share_open_by_speed": (None, [c_void_p, c_uint64, c_uint64, c_void_p]),
    "share_close": ("nothing", [c_void_p]),
    "share_step_size": (c_uint64, [c_void_p]),
    "share_next": (None, [c_void_p, c_void_p, c_void_p]),
    "share_next_epoch": (None, [c_void_p]),
    "share_resume": (None, [c_void_p, c_uint64, c_uint64]),
    "share_length": (None, [c_void_p, c_void_p, c_void_p]),
    "share_epoch": (c_uint64, [c_void_p]),
    "share_step": (c_uint64, [c_void_p]),
    "memory_release": ("nothing", [c_void_p]),
    "sum_end": ("nothing", [c_void_p, c_char_p]),
    "describe_scheme": (None, [c_void_p, c_char_p, c_void_p, c_size_t, c_void_p]),
    "training_may_start": (None, [c_void_p]),
    "training_start": (None, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "training_server_steps": (c_int, [c_void_p]),
    "training_server_moves_all": (c_int, [c_void_p]),
    "training_shares_gradients": (c_int, [c_void_p]),
    "training_overlaps": (c_int, [c_void_p]),
    "training_batch_size": (c_uint32, [c_void_p]),
    "training_samples": (c_uint64, [c_void_p]),
    "training_begin_pass": (None, [c_void_p, c_uint32]),
    "training_gradients_ready": (None, [c_void_p, c_uint64, c_uint64]),
    "training_step": (None, [c_void_p, c_uint32]),
    "training_use_settings": (None, [c_void_p, c_double, c_uint32]),
    "training_has_gradients": (None, [c_void_p, c_char_p]),
    "training_step_alone": (None, [c_void_p, c_uint32, c_int]),
    "training_align": (None, [c_void_p, c_char_p]),
    "training_take_replica": (None, [c_void_p]),
    "training_finish": (None, [c_void_p]),
    "training_abandon": ("nothing", [c_void_p, c_char_p]),
    "training_close": ("nothing", [c_void_p]),
}


def _check(status, _function, _arguments):
    if status != 0:
        raise BY_STATUS.get(status, Error)(call("last_error").decode())


def _other_library(lacking):
    named = " that SYNCOPATE_LIBRARY names" if os.environ.get("SYNCOPATE_LIBRARY") else ""
    return (f"the file {_LIBRARY._name}{named} has no function syncopate_{lacking}, so it is another library, or that of another "
            "version")


def _declare():
    functions = {}
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(_LIBRARY, f"syncopate_{name}", None)
        if function is None:
            _refuse(_other_library(name))
        function.argtypes = arguments
        function.restype = c_int if result is None else None if result == "nothing" else result
        if result is None:
            function.errcheck = _check
        functions[name] = function
    return functions


_FUNCTIONS = _declare()


# Functions that may use objects of another, waiting call of the same thread.
_USING = {name for name, (result, _) in _SIGNATURES.items() if result is None and not name.startswith("work_")}


def see_signals():
    """Makes signal handlers run while a call of this thread waits. Has an effect only in the main thread, in which
    Python runs handlers."""
    if threading.current_thread() is threading.main_thread():
        _FUNCTIONS["set_interruption"](SIGNALS.callback, None)


def call(name, *arguments):
    """Calls syncopate_NAME. Errors: the class of its status, with the library's message; the exception of a signal
    handler that ran during the call, such as KeyboardInterrupt; ConfigError in a handler that runs while another call
    waits."""
    if SIGNALS.handles and name in _USING:
        raise ConfigError("the handler of a signal came while the script waits for other workers in a call of its job: let it set "
                          "a flag that the script looks at between two steps, or raise an exception")
    return SIGNALS.call(_FUNCTIONS[name], arguments)


def made(name, *arguments):
    """Calls syncopate_NAME and returns the handle that it stores in its last argument."""
    handle = c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    return handle


def wait(work, seconds=None, stops=lambda: False):
    """Waits for a syncopate_work, at most `seconds` and until `stops()` is true. Returns False if it has not ended.
    Ctrl-C is handled at once."""
    until = None if seconds is None else time.monotonic() + seconds
    ended = c_int()
    while not ended.value:
        left = _GLANCE if until is None else min(_GLANCE, until - time.monotonic())
        if left < 0 or stops():
            return False
        call("work_wait_for", work, left, ctypes.byref(ended))
    return True


def version():
    """Returns the version of the loaded library, such as "1.2.3"."""
    return call("version").decode()


def text(value):
    """Converts a value to a text of C. Errors: ConfigError for one that C cannot hold."""
    if value is None:
        return None
    try:
        encoded = str(value).encode()
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise ConfigError(f"expected a text without a NUL and in valid Unicode, found {str(value)!a:.80}")
    return encoded


def options(named):
    """Returns an array of the options in a dict, and its length. Errors: ConfigError for an option without a value."""
    named = {} if named is None else named
    if not isinstance(named, collections.abc.Mapping):
        raise ConfigError(f"options are a dict, such as {{'local-steps': 4}}, found {named!r:.80}")
    for name, value in named.items():
        if value is None:
            raise ConfigError(f"option {name} has the value None: give it one, or leave it out for its default")
    array = (Option * len(named))(*(Option(text(name), text(value)) for name, value in named.items()))
    return array, len(named)
