"""Operations of a process group, as torch.distributed waits for them."""
import threading
import weakref

import torch
from torch import distributed

from syncopate_torch import _c
from syncopate_torch.errors import Cancelled, TimedOut, keep_of_operation
from syncopate_torch.futures import Future
from syncopate_torch.group import changing
from syncopate_torch.untraced import untraced

# From this version on C++ keeps the works of Python that it waits for.
_CPP_KEEPS = tuple(int(number) for number in torch.__version__.split(".")[:2]) >= (2, 7)

_making = threading.Lock()  # of futures
_OF_GROUP = ", the timeout of its process group"


@untraced()
class Work(distributed.Work if hasattr(distributed, "Work") else distributed._Work):
    """An operation of a process group, as torch.distributed waits for it."""

    def __init__(self, handles, result, callbacks, finish=None, keeps=(), parts=()):
        """handles: of the C interface. callbacks: the thread for those of its future. finish: makes the result of what has
        arrived. keeps: what is read until then. parts: works whose handles these are."""
        super().__init__()
        self._handles, self._finish, self._keeps, self._limit = handles, finish, keeps, None
        self._result, self._callbacks, self._parts = result, callbacks, parts
        self._in_inference = torch.is_inference_mode_enabled()  # as it begins
        self._free = None
        self._others = None
        self._error = None
        self._ended = False
        self._turn = threading.RLock()
        self._future = None

    def frees(self, handle):
        """Frees a handle after the last reference to this work."""
        self._free = weakref.finalize(self, _c.call, "work_free", handle)
        # Not at the end of the script: the group, which ends later, looks at its works.
        self._free.atexit = False

    def is_number(self):
        """True where the result is a single one."""
        return sum(part.numel() for part in self._result) == 1

    def kept_in(self, works):
        """Stays in these `KeptWorks` at least until it has ended."""
        self._others = works
        works.add(self)

    def limit_to(self, timeout):
        """The limit of a wait that is given none. torch writes less than nothing where the script has given none either."""
        self._limit = timeout if timeout.total_seconds() >= 0 else None

    def wait(self, timeout=None):
        limit = timeout or self._limit
        seconds = limit.total_seconds() if limit else None
        self._end(seconds)
        if self._error is not None:
            raise self._error.with_traceback(None)
        if not self._ended:
            raise TimedOut(f"an operation of torch.distributed has not ended within {seconds} s")
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        if not self._ended and all(_c.call("work_is_done", handle) for handle in self._handles):
            self._end(None)
        return self._ended

    def is_success(self):
        return self.is_completed() and self._error is None

    def exception(self):
        return self._error

    def result(self):
        self.wait()
        return self._result

    def source_rank(self):
        return _c.call("work_source", self._handles[0])

    _source_rank = source_rank

    def withdraw(self):
        """Ends a receive that has got nothing; any other operation goes on."""

    def get_future(self):
        """A future of the result, as DistributedDataParallel waits for it. Once the work has ended, it is done."""
        with _making:
            made, self._future = self._future, self._future or Future(self._callbacks, self.result)
        if self._ended:
            self._future.end_now()
        elif made is None:
            self._future.end_in_turn()
        return self._future

    def _end(self, seconds):
        if not self._turn.acquire(timeout=-1 if seconds is None else seconds):
            return
        try:
            if not self._ended and self._wait_for(seconds):
                self._make_result()
        except TimedOut as error:
            self._leave_with(error if _OF_GROUP in str(error) else TimedOut(f"{error}{_OF_GROUP}"))
        except Exception as error:
            self._leave_with(error)
        finally:
            self._turn.release()

    def _wait_for(self, seconds):
        """False: it has not ended by then."""
        return all([_c.wait(handle, seconds) for handle in self._handles])

    def _make_result(self):
        if self._finish is not None:
            with changing(self._result, self._in_inference), torch.no_grad():
                self._finish()
        self._leave_with(None)

    def _leave_with(self, error):
        self._error = error
        keep_of_operation(error)
        self._ended = True
        self._finish, self._keeps = None, ()
        if _CPP_KEEPS and self._others is not None:
            self._others.discard(self)


@untraced()
class Receive(Work):
    """A receive, which ends with its group. Its handle goes then, so only a thread that has `_turn` uses it."""

    _is_withdrawn = False

    def withdraw(self):
        self._is_withdrawn = True
        self._end(None)

    def is_completed(self):
        if self._turn.acquire(blocking=False):  # else a thread waits for it
            try:
                return super().is_completed()
            finally:
                self._turn.release()
        return self._ended

    def source_rank(self):
        with self._turn:
            return super().source_rank()

    _source_rank = source_rank

    def _wait_for(self, seconds):
        [handle] = self._handles
        if _c.wait(handle, seconds, lambda: self._is_withdrawn):
            return True
        withdrawn = self._is_withdrawn
        if not withdrawn or _c.call("work_is_done", handle):
            return withdrawn and _c.wait(handle)
        self._free()
        handle.value = None
        raise Cancelled("the process group of this receive has been destroyed")
