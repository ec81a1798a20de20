"""The process of a worker: signals that come while it waits for other workers, and how its script ends."""
import builtins
import contextlib
import ctypes
import dis
import fcntl
import functools
import multiprocessing
import os
import signal
import stat
import struct
import sys
import termios
import threading
import time

from syncopate_torch.core.errors import ConfigError

Interruption = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Signals:
    """Runs the script's handlers of signals, of Ctrl-C among them, during a call of the library, which the interpreter does by
    itself only after the call. What a handler raises interrupts the call.

    Threads: the main one, in which Python runs handlers.
    """

    def __init__(self):
        self._error = None  # the first that a handler has raised
        self._deferred = []
        self._training = None  # a function that ends it
        self._looks = self._look()
        next(self._looks)
        #: For syncopate_set_interruption.
        self.callback = Interruption(self._looks.send)

    def _look(self):
        """A generator, since the interpreter may run a handler as soon as this goes on: here that is within the block, and in a
        function it would be before it. A second handler may raise while the error of the first one is kept."""
        while True:
            try:
                try:
                    yield int(self._error is not None or bool(self._deferred))
                    ctypes.pythonapi.PyErr_CheckSignals()
                except GeneratorExit:
                    return
                except BaseException as error:
                    self._keep(error)
            except BaseException as error:
                self._keep(error)

    def _keep(self, error):
        if self._error is None:
            self._error = error
            if self._training is not None:
                self._training(error)

    @contextlib.contextmanager
    def of_training(self, abandon):
        """A call of a training, while it lasts, which `abandon(error)` ends for all workers."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before, self._training = self._training, abandon  # a handler may call another one, which is refused
        try:
            yield
        finally:
            self._training = before

    @property
    def handles(self):
        """True in a handler that came while a call waits, whose objects are in use."""
        return self._looks.gi_running and threading.current_thread() is threading.main_thread()

    def defer(self, function):
        """Calls it once the call that waits has ended, which is interrupted."""
        self._deferred.append(function)

    def after_call(self):
        """Errors: that of a handler, if it has raised one."""
        if (self._error is None and not self._deferred) or self._looks.gi_running or (
                threading.current_thread() is not threading.main_thread()):
            return
        error, self._error = self._error, None
        deferred, self._deferred = self._deferred, []
        for function in deferred:
            function()
        if error is not None:
            raise error from None


SIGNALS = Signals()


def after_waits(function):
    """Of a function that frees what a call may use that waits: a handler of a signal that comes meanwhile may call it."""
    @functools.wraps(function)
    def called(*arguments):
        if SIGNALS.handles:
            SIGNALS.defer(lambda: function(*arguments))
        else:
            function(*arguments)

    return called


class Termination:
    """Whether SIGTERM has come, for a script without a handler of its own."""

    def __init__(self):
        self._has_come = False

    def _on_signal(self, _number, _frame):
        self._has_come = True

    def has_come(self):
        """The first call takes the signal, which ends the process before; a handler of the script stays.

        Errors: ValueError of Python, where a thread other than the main one makes the first call.
        """
        if not self._has_come and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)
        return self._has_come


TERMINATION = Termination()


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


def exit_report(error):
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


def report_and_exit(error):
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


_JOINED = "SYNCOPATE_JOINED"  # the rank of a process that is in a job; what it starts inherits it


def remember_rank(rank):
    """This process is in a job of several."""
    os.environ[_JOINED] = str(rank)


def expect_first_reading():
    """Before a process joins its job. Errors: ConfigError, while a process that one of a job has started reads the script: it
    would join as the same worker. One that has read it, such as a rank that torch.multiprocessing starts, may join a job."""
    rank = os.environ.get(_JOINED)
    if rank is not None and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ConfigError(f"worker {rank} is in its job already, and multiprocessing has started this process for it, which "
                          "reads the script again: put the body of the script under `if __name__ == \"__main__\":`, or "
                          "start processes by fork")
