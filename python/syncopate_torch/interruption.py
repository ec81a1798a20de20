"""Signals that come while a call of the library waits for other workers."""
import contextlib
import ctypes
import functools
import threading

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
