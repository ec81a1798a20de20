"""How a script has ended, and the order of error messages."""
import builtins
import contextlib
import ctypes
import dis
import fcntl
import functools
import os
import stat
import struct
import sys
import termios
import threading
import time

_LONGEST_WAIT = 3.0  # seconds, for a reader that has stopped
_PAUSE = 0.001


_exit = None  # the last sys.exit, exit or quit of the main thread with a status that is none of success


def watch_exit():
    """From now on `ending_error` knows of a `sys.exit`, also by the builtins `exit` and `quit`, whose status the interpreter
    tells nobody while it ends."""
    if hasattr(sys.exit, "__wrapped__"):
        return
    sys.exit = _watched(sys.exit)
    for name in ("exit", "quit"):  # `python -S` has none
        kind = type(getattr(builtins, name, None))
        if kind.__name__ == "Quitter" and not hasattr(kind.__call__, "__wrapped__"):  # of both
            kind.__call__ = _watched(kind.__call__)


def _watched(leave):
    @functools.wraps(leave)
    def watched(*arguments, **options):
        global _exit
        try:
            return leave(*arguments, **options)
        except SystemExit as error:
            if not is_success(error) and threading.current_thread() is threading.main_thread():
                _exit = error
            raise

    return watched


def is_success(error):
    """True for a SystemExit that ends a script as its last line would."""
    return isinstance(error, SystemExit) and error.code in (None, 0)


def ending_error():
    """The exception that has ended the script, or an earlier cell of a notebook: a SystemExit, where nothing has caught
    it; else None."""
    trace = _exit and _exit.__traceback__  # up to the frame that has caught it last; None: none has
    if _exit is not None and (trace is None or not _has_returned(trace.tb_frame)):
        return _exit
    return getattr(sys, "last_value", None)


def _has_returned(frame):
    """True for a frame that has ended without an exception."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN")


def words_of(error):
    """One line on an exception by which a script has left its loop."""
    if not isinstance(error, SystemExit):
        text = f"the script left its loop by {type(error).__name__}: {error}"
    elif isinstance(error.code, int):
        text = f"the script has ended with exit status {error.code}"
    else:
        text = f"the script has ended with exit status 1: {error}"
    return text.splitlines()[0]


def wait_until_read():
    """Where standard error is a pipe, as under `syncopate run`, waits until its reader has taken this process's traceback:
    it is then printed before the errors of other workers, which follow from it."""
    with contextlib.suppress(OSError):  # of one that is closed
        if sys.stderr is None or not stat.S_ISFIFO(os.fstat(2).st_mode):
            return
        sys.stderr.flush()
        until = time.monotonic() + _LONGEST_WAIT
        while _unread_bytes() > 0 and time.monotonic() < until:
            time.sleep(_PAUSE)


def tell_and_fail(error):
    """Of an error that no call of the script can raise: prints its traceback, and lets the process end with status 1; for a
    SystemExit as `sys.exit` does."""
    status = 1
    if not isinstance(error, SystemExit):
        sys.excepthook(type(error), error, error.__traceback__)
    elif error.code is None or isinstance(error.code, int):
        status = error.code or 0
    else:
        print(error.code, file=sys.stderr)
    wait_until_read()
    _end_with(status)


def _end_with(status):
    """Python ignores what it calls at its end. The C library takes the status of the last call of `exit`, also of one by a
    function that `exit` calls."""
    library = ctypes.CDLL(None)
    at_exit = library.__cxa_atexit
    at_exit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    at_exit(ctypes.cast(library.exit, ctypes.c_void_p), status, None)


def _unread_bytes():
    return struct.unpack("i", fcntl.ioctl(2, termios.FIONREAD, b"\0" * 4))[0]
