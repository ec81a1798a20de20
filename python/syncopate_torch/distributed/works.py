"""Operations of a process group, for torch.distributed: works, futures whose callbacks may wait for other operations, and
reductions of sparse tensors, as DistributedDataParallel needs for `Embedding(sparse=True)`."""
import collections
import functools
import inspect
import itertools
import threading
import traceback
import weakref

import torch

from syncopate_torch.core import library, torch_versions
from syncopate_torch.core.errors import Cancelled, ConfigError, TimedOut, keep_of_operation
from syncopate_torch.core.group import changing, divide, type_name
from syncopate_torch.core.torch_versions import SPARSE_UNCHECKED, hidden_from_dynamo


_making = threading.Lock()  # serializes the creation of futures
_OF_GROUP = ", the timeout of its process group"


@hidden_from_dynamo()
class Work(torch_versions.Work):
    """An operation of a process group, for which torch.distributed waits."""

    def __init__(self, handles, result, callbacks, finish=None, keeps=(), parts=()):
        """handles: of the C interface. callbacks: the thread for callbacks of its future. finish: makes the result from
        the received data. keeps: memory that is read until then. parts: works to which the handles belong."""
        super().__init__()
        self._handles, self._finish, self._keeps, self._limit = handles, finish, keeps, None
        self._result, self._callbacks, self._parts = result, callbacks, parts
        self._in_inference = torch.is_inference_mode_enabled()  # at the start of the operation
        self._free = None
        self._others = None
        self._error = None
        self._ended = False
        self._turn = threading.RLock()
        self._future = None

    def frees(self, handle):
        """Frees a handle after the last reference to this work."""
        self._free = weakref.finalize(self, library.call, "work_free", handle)
        # Not at exit: the group, which ends later, still reads its works.
        self._free.atexit = False

    def is_number(self):
        """True if the result is a single number."""
        return sum(part.numel() for part in self._result) == 1

    def kept_in(self, works):
        """Stores the work in these `KeptWorks`, at least until it has ended."""
        self._others = works
        works.add(self)

    def limit_to(self, timeout):
        """Sets the limit of a wait without its own limit. torch passes a negative timeout if the script has given
        none."""
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
        """Cancels a receive that has no message yet; no effect on other operations."""

    def get_future(self):
        """Returns a future of the result, as DistributedDataParallel needs. It is done once the work has ended."""
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
        """Returns False if the time limit has passed first."""
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
    """A receive, which ends with its group. Its handle is freed then, so only a thread that holds `_turn` uses it."""

    _is_withdrawn = False

    def withdraw(self):
        self._is_withdrawn = True
        self._end(None)

    def is_completed(self):
        if self._turn.acquire(blocking=False):  # otherwise a thread waits for it
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


_KEPT = 16  # latest works, whether or not they have ended
_KEPT_NUMBERS = 256  # works whose result is a single number
_LOOKS = 4  # works to check for their end, for each added one


class KeptWorks:
    """Keeps works, with the memory that they use, until they have ended. C++ of a torch that does not keep Python works
    may also wait for a work that has ended and lost its last Python reference soon after it was made. C++ of any torch
    waits in a backward pass for the count that join() has started before the forward pass: a number, which needs no
    memory.

    Threads: `add` one at a time; `discard` any.
    """

    def __init__(self):
        self._latest = {}  # in the order of addition
        self._waiting = {}  # earlier works that had not ended: a receive may stay long
        self._numbers = collections.deque(maxlen=_KEPT_NUMBERS)

    def add(self, work):
        """Adds a work, and checks a few others, so that a script may have any number of running works."""
        if work.is_number():
            self._numbers.append(work)
        self._latest[work] = None
        self._look_at(self._latest, len(self._latest) - _KEPT)
        self._look_at(self._waiting, len(self._waiting))

    def discard(self, work):
        """Removes a work that has ended."""
        self._latest.pop(work, None)
        self._waiting.pop(work, None)

    def __iter__(self):
        return iter([*self._latest, *self._waiting])

    def _look_at(self, works, most):
        for each in list(itertools.islice(works, max(0, min(most, _LOOKS)))):
            works.pop(each, None)
            if not each.is_completed():
                self._waiting[each] = None


# Option fields that plain values set, by their argument names.
_FIELDS = {"op": "reduceOp", "root": "rootRank", "timeout": "timeout"}


def also_plain(options, *names):
    """Makes a collective of lists of tensors and `options` also take a tensor instead of a list of one. It then takes,
    instead of options, the values of `names` ("op", "root") and a timeout, which limits a wait without its own
    limit."""

    def decorate(collective):
        lists = len(inspect.signature(collective).parameters) - 2  # without the group and the options

        @functools.wraps(collective)
        def called(group, *arguments, **named):
            tensors, rest = arguments[:lists], arguments[lists:]
            if any(isinstance(each, torch.Tensor) for each in tensors):
                tensors = [[each] for each in tensors]
            opts = _options_of(options, names, rest, named)
            work = collective(group, *tensors, opts=opts, **named)
            if isinstance(work, Work):  # otherwise a work of another backend, which has received the options
                work.limit_to(opts.timeout)
            return work

        return called

    return decorate


def _options_of(options, names, rest, named):
    """Returns the options of a call, and removes their values from `named`."""
    if rest and hasattr(rest[0], "timeout"):
        return rest[0]
    opts = named.pop("opts", None) or options()
    plain = dict(zip([*names, "timeout"], rest))
    plain.update({name: named.pop(name) for name in (*names, "timeout") if name in named})
    for name, value in plain.items():
        if value is not None:
            setattr(opts, _FIELDS[name], value)
    return opts


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


_MOST_DIMENSIONS = 64  # of a torch tensor


@hidden_from_dynamo()
class SparseSum(Work):
    """The sum of `torch.sparse_coo` tensors of one shape, which may have different numbers of values. Only their
    indices and values are sent, not the zeros between them.

    The number of values of each rank is gathered first, in the order of the script. The rest follows in the callback
    thread, because a rank then knows the size of the data to receive.
    """

    def __init__(self, group, tensor, op, callbacks):
        """group: a `ProcessGroup` of syncopate. op: "sum" or "mean"."""
        if op not in ("sum", "mean"):
            raise ConfigError(f"a sparse tensor has SUM and AVG, found {op}: call to_dense() before")
        if op == "mean" and tensor.dtype == torch.bool:
            raise ConfigError("ReduceOp.AVG is for numbers, found a sparse tensor of torch.bool: use SUM (any)")
        own = tensor.detach().cpu().coalesce()
        shapes = group.gathered(_shape_of(own), f"shapes, for a {op} of sparse {type_name(own.dtype)}")
        super().__init__([], [tensor], callbacks, lambda: tensor.copy_(self._sum), own)
        self._is_there = threading.Event()
        self._sum = self._failure = None
        callbacks.add(lambda: self._run(group, own, shapes, op))

    def is_completed(self):
        if self._is_there.is_set():
            self._end(None)
        return self._ended

    def _wait_for(self, seconds):
        self._callbacks.run_until(self._is_there.is_set)
        if not self._is_there.wait(seconds):
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def _run(self, group, own, shapes, op):
        try:
            self._sum = _sum_of(group, own, shapes.result())
            if op == "mean":
                divide(self._sum._values(), group.size())
        except Exception as error:  # raised in the waiting call of the script
            self._failure = error
        self._is_there.set()


def _sum_of(group, own, shapes):
    _expect_equal(shapes)
    counts = [int(shape[2]) for shape in shapes]
    works = [group.gathered(_extended(rows, max(counts)), f"{what} of sparse tensors")
             for what, rows in (("indices", own.indices().t()), ("values", own.values()))]
    indices, values = (torch.cat([rows[:count] for rows, count in zip(work.result(), counts)]) for work in works)
    return torch.sparse_coo_tensor(indices.t(), values, own.shape, **SPARSE_UNCHECKED).coalesce()


def _shape_of(tensor):
    """Returns the numbers of sparse and of dense dimensions, the number of values, and the lengths of all
    dimensions."""
    facts = [tensor.sparse_dim(), tensor.dense_dim(), tensor._nnz(), *tensor.shape]
    return torch.tensor(facts + [-1] * (3 + _MOST_DIMENSIONS - len(facts)))


def _expect_equal(shapes):
    first = _text(shapes[0])
    for rank, each in enumerate(shapes):
        if _text(each) != first:
            raise ConfigError(f"a sum of sparse tensors takes those of one shape, found {first} on rank 0 and {_text(each)} on rank "
                              f"{rank}")


def _text(shape):
    lengths = [length for length in shape[3:].tolist() if length >= 0]
    count = int(shape[0])
    return f"{lengths} with {count} sparse {'dimension' if count == 1 else 'dimensions'}"


def _extended(rows, count):
    """Pads with rows of zeros to `count` rows: all ranks gather the same number."""
    return torch.cat([rows, rows.new_zeros((count - len(rows), *rows.shape[1:]))])
