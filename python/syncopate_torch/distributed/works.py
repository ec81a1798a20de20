"""Operations of a process group, as torch.distributed starts them and waits for them."""
import collections
import functools
import inspect
import itertools
import threading
import weakref

import torch

from syncopate_torch.core import library, torch_versions
from syncopate_torch.core.errors import Cancelled, TimedOut, keep_of_operation
from syncopate_torch.core.group import changing
from syncopate_torch.core.torch_versions import hidden_from_dynamo
from syncopate_torch.distributed.futures import Future

_making = threading.Lock()  # of futures
_OF_GROUP = ", the timeout of its process group"


@hidden_from_dynamo()
class Work(torch_versions.Work):
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
        self._free = weakref.finalize(self, library.call, "work_free", handle)
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
        if not self._ended and all(library.call("work_is_done", handle) for handle in self._handles):
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
        return library.call("work_source", self._handles[0])

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
        return all([library.wait(handle, seconds) for handle in self._handles])

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
        if torch_versions.CPP_KEEPS_WORKS and self._others is not None:
            self._others.discard(self)


@hidden_from_dynamo()
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
        if library.wait(handle, seconds, lambda: self._is_withdrawn):
            return True
        withdrawn = self._is_withdrawn
        if not withdrawn or library.call("work_is_done", handle):
            return withdrawn and library.wait(handle)
        self._free()
        handle.value = None
        raise Cancelled("the process group of this receive has been destroyed")


_KEPT = 16  # of the latest works, whether or not they have ended
_KEPT_NUMBERS = 256  # of those whose result is a single number
_LOOKS = 4  # at works that may have ended, for each that comes


class KeptWorks:
    """Keeps works until they have ended, with the memory that they use. C++ of a torch that does not keep works of Python
    may also wait for one that has ended and whose last reference in Python has gone, soon after it was made. That of any
    torch asks in a backward pass for what join() has counted before the forward pass: a number, which takes no room.

    Threads: `add` one at a time; `discard` any.
    """

    def __init__(self):
        self._latest = {}  # in their order
        self._waiting = {}  # earlier ones that had not ended: a receive may stay for long
        self._numbers = collections.deque(maxlen=_KEPT_NUMBERS)

    def add(self, work):
        """Also looks at a few others, so that a script may have any number of works under way."""
        if work.is_number():
            self._numbers.append(work)
        self._latest[work] = None
        self._look_at(self._latest, len(self._latest) - _KEPT)
        self._look_at(self._waiting, len(self._waiting))

    def discard(self, work):
        """It has ended."""
        self._latest.pop(work, None)
        self._waiting.pop(work, None)

    def __iter__(self):
        return iter([*self._latest, *self._waiting])

    def _look_at(self, works, most):
        for each in list(itertools.islice(works, max(0, min(most, _LOOKS)))):
            works.pop(each, None)
            if not each.is_completed():
                self._waiting[each] = None


# The fields of options that plain values set, by their names in such a call.
_FIELDS = {"op": "reduceOp", "root": "rootRank", "timeout": "timeout"}


def also_plain(options, *names):
    """A collective of lists of tensors and `options` also takes a tensor in place of a list of one, and then, in place of
    options, the values of `names` ("op", "root") and a timeout, which limits a wait that has no limit of its own."""

    def decorate(collective):
        lists = len(inspect.signature(collective).parameters) - 2  # without the group and the options

        @functools.wraps(collective)
        def called(group, *arguments, **named):
            tensors, rest = arguments[:lists], arguments[lists:]
            if any(isinstance(each, torch.Tensor) for each in tensors):
                tensors = [[each] for each in tensors]
            opts = _options_of(options, names, rest, named)
            work = collective(group, *tensors, opts=opts, **named)
            if isinstance(work, Work):  # else that of another backend, which has got the options
                work.limit_to(opts.timeout)
            return work

        return called

    return decorate


def _options_of(options, names, rest, named):
    """The options of a call; takes their values out of `named`."""
    if rest and hasattr(rest[0], "timeout"):
        return rest[0]
    opts = named.pop("opts", None) or options()
    plain = dict(zip([*names, "timeout"], rest))
    plain.update({name: named.pop(name) for name in (*names, "timeout") if name in named})
    for name, value in plain.items():
        if value is not None:
            setattr(opts, _FIELDS[name], value)
    return opts
