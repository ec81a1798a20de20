"""SIGTERM, by which the scheduler of a cluster asks a process to end."""
import signal


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
