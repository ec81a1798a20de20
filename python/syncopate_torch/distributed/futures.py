"""Futures of operations; their callbacks may wait for other operations and begin new ones."""
import collections
import threading
import traceback

import torch

from syncopate_torch.core.torch_versions import hidden_from_dynamo

_REST = 5.0  # seconds until an idle thread ends
_LONGEST_END = 10.0  # seconds that a closing group waits for a callback of the script


class CallbackThread:
    """A thread that runs tasks one after the other, in the order in which they were added.

    A task added by another task runs at once, so on every rank the tasks follow the order of the script.
    """

    def __init__(self, running):
        """running: a set of such threads; this one is in it while it has tasks."""
        self._tasks = collections.deque()
        self._changed = threading.Condition()
        self._thread = None
        self._running = running
        self._ends = False

    def add(self, task):
        if self.is_here():
            task()
            return
        with self._changed:
            self._tasks.append(task)
            if self._thread is None:
                self._running.add(self)
                self._thread = threading.Thread(target=self._run, name="syncopate futures", daemon=True)
                self._thread.start()
            else:
                self._changed.notify()

    def is_here(self):
        """True inside one of its tasks."""
        return self._thread is threading.current_thread()

    def run_until(self, done):
        """Inside a task, runs later tasks until `done`."""
        while self.is_here() and self._tasks and not done():
            self._tasks.popleft()()

    def end(self):
        """Waits for its tasks: the ending interpreter aborts the process if a thread is in a C++ call."""
        with self._changed:
            self._ends = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and not self.is_here():
            thread.join(_LONGEST_END)

    def _run(self):
        while (task := self._next()) is not None:
            task()
            del task

    def _next(self):
        with self._changed:
            self._changed.wait_for(lambda: self._tasks or self._ends, _REST)
            if self._tasks:
                return self._tasks.popleft()
            self._thread = None
            self._running.discard(self)
            return None


@hidden_from_dynamo()
class Future(torch.futures.Future):
    """A future whose callbacks all run in one thread, in the order in which they were attached, also if it is done
    already. The collectives that they begin therefore have the same order on all ranks."""

    def __init__(self, callbacks, end=None):
        """end: function that ends the operation and returns its result; None for the result of a callback."""
        super().__init__()
        self._callbacks, self._end = callbacks, end
        self._turn = threading.Lock()
        self._is_set = threading.Event()

    def end_in_turn(self):
        """Adds the end of the operation to the thread's tasks."""
        self._callbacks.add(self.end_now)

    def then(self, callback):
        after = Future(self._callbacks)
        self._callbacks.add(lambda: after._set(lambda: callback(self)))
        return after

    def add_done_callback(self, callback):
        self._callbacks.add(lambda: _run_and_report(callback, self))

    def wait(self):
        """Waits for the result; unlike torch's `wait`, Ctrl-C interrupts it."""
        self._callbacks.run_until(self.done)
        self.end_now()
        self._is_set.wait()
        return super().wait()

    def end_now(self):
        """Waits for the end of the operation, if the future belongs to one."""
        end = self._end
        if end is not None:
            self._set(end)

    def _set(self, result):
        with self._turn:
            if self.done():
                return
            try:
                self.set_result(result())
            except BaseException as error:  # also sys.exit in a callback, which would end the thread
                self._set_unwrap_func(_raise_failure)
                self.set_result(_Failure(error))
            self._end = None
        self._is_set.set()


def _run_and_report(callback, future):
    """Runs a callback and prints its error, as torch does, because no result can hold it."""
    try:
        callback(future)
    except Exception:
        traceback.print_exc()


class _Failure:
    """The result of a failed future. C++ has no error state for a future that Python has completed: it extracts the
    tensors by pickling the result, or prints the result in a message; both raise the error."""

    def __init__(self, error):
        self.error = error

    def __reduce_ex__(self, protocol):
        raise self.error.with_traceback(None)

    def __str__(self):
        raise self.error.with_traceback(None)


def _raise_failure(result):
    if isinstance(result, _Failure):
        raise result.error.with_traceback(None)
