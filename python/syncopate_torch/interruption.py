"""Signals that come while a call of the library waits for other workers."""
import ctypes
import threading

Interruption = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Signals:
    """Runs the script's handlers of signals, of Ctrl-C among them, during a call of the library, which the interpreter does by
    itself only after the call. What a handler raises interrupts the call.

    Threads: the main one, in which Python runs handlers.
    """

    def __init__(self):
        self._error = None
        self._looks = self._look()
        next(self._looks)
        #: For syncopate_set_interruption.
        self.callback = Interruption(self._looks.send)

    def _look(self):
        """A generator, since the interpreter may run a handler as soon as this goes on: here that is within the block, and in a
        function it would be before it."""
        interrupts = 0
        while True:
            try:
                yield interrupts
                interrupts = 0
                ctypes.pythonapi.PyErr_CheckSignals()
            except GeneratorExit:
                return
            except BaseException as error:
                self._error, interrupts = error, 1

    def raise_error(self):
        """After a call. Errors: that of a handler, if it has raised one."""
        if self._error is not None and threading.current_thread() is threading.main_thread():
            error, self._error = self._error, None
            raise error from None
