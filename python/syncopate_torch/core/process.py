"""The process of a worker: signals that arrive while it waits for other workers, and the end of its script."""
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
    """Runs the script's signal handlers, including that of Ctrl-C, during a call of the library; the interpreter by
    itself runs them only after the call. An exception of a handler interrupts the call.

    Threads: the main one, in which Python runs handlers.
    """

    def __init__(self):
        self.depth = 0  # calls of the library that the main thread is in, one inside the other
        self._error = None  # the first one that a handler has raised
        self._deferred, self._interrupts = [], False
        self._training = None  # function that abandons the running training
        self._looks = self._look()
        next(self._looks)
        #: The function for syncopate_set_interruption.
        self.callback = Interruption(self._looks.send)

    def _look(self):
        """A generator, because the interpreter may run a handler as soon as this code resumes: in a generator that is
        inside the `try` block, in a function it would be before it. A second handler may raise while the error of the
        first one is stored."""
        while True:
            try:
                try:
                    yield int(self._error is not None or self._interrupts)
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
        """Marks a call of a training while it runs; an error of a handler ends it for all workers by
        `abandon(error)`."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before, self._training = self._training, abandon  # a handler may call another one, which raises an error
        try:
            yield
        finally:
            self._training = before

    @property
    def handles(self):
        """True in a handler that runs while a call waits; the objects of that call are in use."""
        return self._looks.gi_running and threading.current_thread() is threading.main_thread()

    def defer(self, function):
        """Calls the function once the outermost call has ended; a handler interrupts that call if it waits."""
        self._deferred.append(function)
        self._interrupts |= self._looks.gi_running

    def call(self, function, arguments):
        """Calls a function of the library. Errors: those of the function; the exception of a handler that has run."""
        if threading.current_thread() is not threading.main_thread():
            return function(*arguments)
        before = self.depth
        try:
            self.depth = before + 1
            return function(*arguments)
        finally:
            self.depth = before
            if before == 0 and (self._error is not None or self._deferred):
                self._after_call()

    def _after_call(self):
        error, self._error = self._error, None
        deferred, self._deferred, self._interrupts = self._deferred, [], False
        for function in deferred:
            function()
        if error is not None:
            raise error from None


SIGNALS = Signals()


def after_waits(function):
    """Decorates a function that frees objects of a call that may be under way: a signal handler may call it during that
    call; it then runs after the call."""
    @functools.wraps(function)
    def called(*arguments):
        if SIGNALS.depth > 0 and threading.current_thread() is threading.main_thread():
            SIGNALS.defer(lambda: function(*arguments))
        else:
            function(*arguments)

    return called


class Termination:
    """Records SIGTERM for a script without its own handler."""

    def __init__(self):
        self._has_come = False

    def _on_signal(self, _number, _frame):
        self._has_come = True

    def has_come(self):
        """The first call installs a handler, so that the signal no longer ends the process; a handler of the script is
        kept.

        Errors: ValueError of Python if a thread other than the main one makes the first call.
        """
        if not self._has_come and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)
        return self._has_come


TERMINATION = Termination()


_LONGEST_WAIT = 3.0  # seconds, for a reader that has stopped
_PAUSE = 0.001


_exit = None  # the last sys.exit, exit or quit of the main thread with a status other than success


def watch_exit():
    """Makes `ending_error` also report a `sys.exit`, including the builtins `exit` and `quit`; the interpreter itself
    does not provide their status while it ends."""
    if hasattr(sys.exit, "__wrapped__"):
        return
    sys.exit = _watched(sys.exit)
    for name in ("exit", "quit"):  # missing with `python -S`
        kind = type(getattr(builtins, name, None))
        if kind.__name__ == "Quitter" and not hasattr(kind.__call__, "__wrapped__"):  # the class of both
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
    """True for a SystemExit that ends a script with success."""
    return isinstance(error, SystemExit) and error.code in (None, 0)


def ending_error():
    """Returns the exception that has ended the script, or an earlier cell of a notebook, including a SystemExit that
    was not caught; else None."""
    trace = _exit and _exit.__traceback__  # ends at the frame that caught it last; None: not caught
    if _exit is not None and (trace is None or not _has_returned(trace.tb_frame)):
        return _exit
    return getattr(sys, "last_value", None)


def _has_returned(frame):
    """True for a frame that has returned without an exception."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN")


def exit_report(error):
    """Describes in one line an exception by which a script has left its loop."""
    if not isinstance(error, SystemExit):
        text = f"the script left its loop by {type(error).__name__}" + (f": {error}" if str(error) else "")
    elif isinstance(error.code, int):
        text = f"the script has ended with exit status {error.code}"
    else:
        text = f"the script has ended with exit status 1: {error}"
    return text.splitlines()[0]


def wait_until_read():
    """If standard error is a pipe, as under `syncopate run`, waits until its reader has taken this process's traceback:
    it is then printed before the errors of other workers that follow from it."""
    with contextlib.suppress(OSError):  # of a closed pipe
        if sys.stderr is None or not stat.S_ISFIFO(os.fstat(2).st_mode):
            return
        sys.stderr.flush()
        until = time.monotonic() + _LONGEST_WAIT
        while _unread_bytes() > 0 and time.monotonic() < until:
            time.sleep(_PAUSE)


def report_and_exit(error):
    """Handles an error that no call of the script can raise: prints its traceback and makes the process end with status
    1; handles a SystemExit as `sys.exit` does."""
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
    """Sets the exit status. Python ignores errors of functions that it calls at its end. The C library uses the status
    of the last `exit` call, even one by a function that `exit` runs."""
    library = ctypes.CDLL(None)
    at_exit = library.__cxa_atexit
    at_exit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    at_exit(ctypes.cast(library.exit, ctypes.c_void_p), status, None)


def _unread_bytes():
    return struct.unpack("i", fcntl.ioctl(2, termios.FIONREAD, b"\0" * 4))[0]


_JOINED = "SYNCOPATE_JOINED"  # the rank of a process in a job, inherited by its child processes


def remember_rank(rank):
    """Records that this process is in a job of several workers."""
    os.environ[_JOINED] = str(rank)


def expect_first_reading():
    """Runs before a process joins its job. Errors: ConfigError if the process was started by a worker and is still
    importing the script: it would join as the same worker. After the import a process, such as a rank that
    torch.multiprocessing starts, may join a job."""
    rank = os.environ.get(_JOINED)
    if rank is not None and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ConfigError(f"worker {rank} is in its job already, and multiprocessing has started this process for it, which "
                          "reads the script again: put the body of the script under `if __name__ == \"__main__\":`, or "
                          "start processes by fork")
