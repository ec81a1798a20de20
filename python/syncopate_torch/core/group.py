"""Collectives of all workers of a job, or of some of them."""
import collections
import ctypes
import sys
import weakref

import torch

from syncopate_torch.core import library
from syncopate_torch.core.arguments import Uncopyable, expect_tensor, number_of, shown, whole
from syncopate_torch.core.errors import ConfigError

# In the order of syncopate_type.
TYPES = {torch.float32: 0, torch.float64: 1, torch.int32: 2, torch.int64: 3, torch.bfloat16: 4, torch.float16: 5,
         torch.int8: 6, torch.uint8: 7}
# In the order of syncopate_operation.
OPERATIONS = {"sum": 0, "product": 1, "min": 2, "max": 3, "and": 4, "or": 5, "xor": 6}

_TAGS = 4096  # of the messages between two members

# Other types may be wrappers around tensors.
_HAVE_MEMORY = (torch.Tensor, torch.nn.Parameter)

# Operations that outlive their `Work`: their handles, and the memory that they read and write.
_going_on = collections.deque()


class Work:
    """A collective, a send or a receive that runs in the background. If its `Work` is dropped, the operation still
    completes, except for a receive."""

    def __init__(self, handle, result=None, host=None, keeps=None, goes_on=True):
        """keeps: further objects that the operation uses. goes_on: True if the operation outlives this object."""
        self._handle, self._result, self._host = handle, result, host
        # Holds the memory that the operation uses until it has ended.
        self._free = weakref.finalize(self, _free, handle, [result, host, keeps] if goes_on else [])

    @property
    def handle(self):
        return self._handle

    def is_done(self):
        """True once the collective has ended."""
        return bool(library.call("work_is_done", self._handle))

    def wait(self):
        """Waits for the collective and returns the tensor with its result. Errors: those of the collective."""
        library.wait(self._handle)
        if self._host is not None and self._host.data_ptr() != self._result.data_ptr():
            with changing([self._result]), torch.no_grad():
                self._result.copy_(self._host)
        self._host = None
        self._free.peek()[2][1].clear()
        return self._result

    def source(self):
        """The sender of a receive that has ended; else None."""
        rank = library.call("work_source", self._handle)
        return None if rank == library.ANY else rank


def _free(handle, memory):
    """Frees the handle of a dropped `Work`. If its operation is still running, its memory is kept until a later
    call."""
    if memory:
        _going_on.append((handle, memory))
    else:
        library.call("work_free", handle)
    for _ in range(len(_going_on)):
        try:
            each = _going_on.popleft()
        except IndexError:
            return  # another thread has taken it
        if library.call("work_is_done", each[0]):
            library.call("work_free", each[0])
        else:
            _going_on.append(each)


class Group(Uncopyable):
    """Some or all workers of a job.

    Every member calls the collectives of one group in the same order, with the same types and shapes. An `_async` call
    returns a `Work` at once. The collectives of a group run one after the other; do not change what they read or write
    until they have ended. Those of several groups run concurrently, and so do sends and receives between workers.
    Workers are identified by their ranks in the group.

    Threads: one collective of a group at a time; other threads may use other groups or the job. Any thread may send and
             receive.
    Errors:  PeerLost and TimedOut if another worker has ended or has not arrived within the time limit; ConfigError for
             invalid ranks, types and operations, and in a forked process.
    """

    def __init__(self, job, opened):
        """opened: an `EveryoneInJob` or an `OpenedGroup`."""
        self._job = job  # keeps the job from leaving first
        self._opened = opened

    @property
    def handle(self):
        """The handle of the C interface."""
        return self._opened.handle

    @property
    def rank(self):
        """The rank of this worker in the group, from 0 on."""
        return library.call("group_rank", self.handle)

    @property
    def size(self):
        """The number of members."""
        return library.call("group_size", self.handle)

    def allreduce(self, tensor, op="sum"):
        """Replaces a tensor by its reduction over all members and returns it. The bits are the same on each member.

        tensor: dtype float32, float64, float16, bfloat16, int8, uint8, int32 or int64.
        op:     "sum", "product", "min", "max"; for integers also the bitwise "and", "or", "xor".
        """
        return self.allreduce_async(tensor, op).wait()

    def allreduce_async(self, tensor, op="sum"):
        """As `allreduce`, but returns a `Work` at once."""
        host = host_values_to_change(tensor)
        return self._work(self._made("allreduce", host.data_ptr(), *values(host), operation(op)), tensor, host)

    def reduce(self, tensor, root=0, op="sum"):
        """Replaces a tensor by its reduction on member `root` and returns it; the tensors of other members do not
        change."""
        host = host_values_to_change(tensor)
        return self._work(self._made("reduce", host.data_ptr(), *values(host), operation(op),
                                     root_among(root, self.size)), tensor, host).wait()

    def reduce_scatter(self, tensor, op="sum"):
        """Returns this member's block of the reduction of a tensor; the first dimension has one block per member."""
        host = host_values(tensor)
        if host.dim() == 0 or host.shape[0] % self.size:
            raise ConfigError(f"reduce_scatter needs a first dimension that {self.size} members can divide, found the "
                              f"shape {list(host.shape)}")
        mine = torch.empty((host.shape[0] // self.size, *host.shape[1:]), dtype=host.dtype, device="cpu")
        self._work(self._made("reduce_scatter", host.data_ptr(), mine.data_ptr(), *values(mine), operation(op)), mine,
                   keeps=host).wait()
        return mine.to(tensor.device)

    def broadcast(self, tensor, root=0):
        """Replaces a tensor of any type by that of member `root` and returns it."""
        return self.broadcast_async(tensor, root).wait()

    def broadcast_async(self, tensor, root=0):
        """As `broadcast`, but returns a `Work` at once."""
        host = host_values_to_change(tensor)
        return self._work(self._made_of(host, "broadcast", host.data_ptr(), bytes_of(host), root_among(root, self.size)),
                          tensor, host)

    def allgather(self, tensor):
        """Returns the tensors of all members, by rank. They have the same type and shape."""
        return list(self.allgather_async(tensor).wait().unbind())

    def allgather_async(self, tensor):
        """As `allgather`, but returns a `Work` at once. The result has an additional first dimension, the ranks."""
        host = host_values(tensor)
        gathered = torch.empty((self.size, *host.shape), dtype=host.dtype, device="cpu")
        return self._work(self._made_of(host, "allgather", host.data_ptr(), bytes_of(host), gathered.data_ptr()), gathered,
                          keeps=host)

    def barrier(self):
        """Returns once every member has called it."""
        self._work(self._made("barrier")).wait()

    def send(self, tensor, to, tag=0):
        """Sends a tensor to one other member, which receives one of the same type and shape with the same tag, a number
        below 4096. Messages with the same tag arrive in order."""
        self.send_async(tensor, to, tag).wait()

    def send_async(self, tensor, to, tag=0):
        """As `send`, but returns a `Work` at once."""
        host = host_values(tensor)
        place = receiver_among("to", to, tag, self.size)
        return self._work(self._made("send", host.data_ptr(), bytes_of(host), *place), keeps=host)

    def receive(self, tensor, sender=None, tag=0):
        """Replaces a tensor by that sent by `sender`, or by any member if it is None. Returns the sender."""
        work = self.receive_async(tensor, sender, tag)
        work.wait()
        return work.source()

    def receive_async(self, tensor, sender=None, tag=0):
        """As `receive`, but returns a `Work` at once; its `source` is the sender."""
        host = host_values(tensor)
        place = sender_among("sender", sender, tag, self.size)
        return self._work(self._made("receive", host.data_ptr(), bytes_of(host), *place), tensor, host, goes_on=False)

    def _made(self, name, *arguments):
        return library.made(name, self.handle, *arguments)

    def _made_of(self, tensor, *call):
        """Starts a collective that handles a tensor as bytes."""
        say_type(self.handle, tensor)
        return self._made(*call)

    def _work(self, handle, result=None, host=None, keeps=None, goes_on=True):
        return Work(handle, result, host, (keeps, self._opened), goes_on)


class EveryoneInJob:
    """The job's group of all workers. A running operation does not keep the job."""

    def __init__(self, job):
        self._job = weakref.proxy(job)

    @property
    def handle(self):
        """Errors: ConfigError once this worker has left the job."""
        return ctypes.c_void_p(library.call("everyone", self._job.handle))


class OpenedGroup:
    """Closes a group once neither a `Group` nor a running operation uses it."""

    def __init__(self, handle):
        self.handle = handle
        # Not at exit: a thread may use the group until this worker leaves.
        weakref.finalize(self, library.call, "group_close", handle).atexit = False


def opened_group(job, ranks=None, timeout=0.0):
    """Opens a group of some or all workers of a job and returns its handle, which the caller closes. A wait takes at
    most `timeout` seconds, half an hour if it is 0."""
    options = library.GroupOptions(size=ctypes.sizeof(library.GroupOptions), wait_seconds=timeout)
    if ranks is not None:
        ranks = [whole("a rank of open_group", rank, job.size - 1) for rank in ranks]
        options.ranks = (ctypes.c_uint32 * len(ranks))(*ranks)
        options.rank_count = len(ranks)
    return library.made("group_open", job.handle, ctypes.byref(options))


def operation(name):
    if name not in OPERATIONS:
        raise ConfigError(f"expected an operation of {', '.join(OPERATIONS)}, found {name!r}")
    return OPERATIONS[name]


def values(tensor):
    """Returns the number and the type of a tensor's values, as a reduction takes them."""
    if tensor.dtype not in TYPES:
        raise ConfigError(f"a reduction takes tensors of {', '.join(map(str, TYPES))}, found {tensor.dtype}; convert it by "
                          "tensor.to(torch.float32)")
    return tensor.numel(), TYPES[tensor.dtype]


def divide(numbers, count):
    """Divides in place. Integers are rounded towards zero, as in NCCL."""
    numbers.div_(count, rounding_mode=None if numbers.is_floating_point() else "trunc")


def host_values(tensor):
    """Returns the values contiguous in host memory: the tensor's own memory if it is so already.
    Errors: ConfigError for an object that is no tensor, a sparse tensor, and a wrapper of others such as a DTensor."""
    expect_tensor(tensor)
    tensor = _with_memory(tensor)
    if tensor.layout != torch.strided:
        raise ConfigError("a collective takes dense tensors, found a sparse one: call to_dense() before")
    return tensor.detach().cpu().contiguous().resolve_conj().resolve_neg()


def _with_memory(tensor):
    """Returns the tensor; for one that a functional collective of torch promised, waits for it."""
    if type(tensor) in _HAVE_MEMORY:
        return tensor
    functional = sys.modules.get("torch.distributed._functional_collectives")
    if functional is not None and isinstance(tensor, getattr(functional, "AsyncCollectiveTensor", ())):
        tensor.trigger_wait()
        return tensor.elem
    if hasattr(tensor, "__tensor_flatten__"):
        raise ConfigError(f"a collective takes tensors with memory of their own, found a {type(tensor).__name__}: pass its "
                          "to_local(), or the tensors that it consists of")
    return tensor


def changing(tensors, in_inference=False):
    """Returns the mode in which the tensors may be changed, in any mode of the thread. Tensors made in
    torch.inference_mode, and copies made by an operation that began `in_inference`, change only in that mode."""
    return torch.inference_mode(in_inference or any(each.is_inference() for each in tensors))


def root_among(root, size):
    """Returns a root's rank. Errors: ConfigError if it is none of `size` members."""
    number = number_of(root)
    if number is None or not 0 <= number < size or number != int(number):
        raise ConfigError(f"root {shown(root)} is no worker of this group, which has {size}")
    return int(number)


def receiver_among(name, rank, tag, size):
    """Returns the receiver among `size` members, and the tag. Errors: ConfigError."""
    return whole(f"{name}, a rank in the group,", rank, size - 1), whole("tag", tag, _TAGS - 1)


def sender_among(name, rank, tag, size):
    """Returns the sender among `size` members, and the tag; None as rank stands for any member. Errors: ConfigError."""
    return receiver_among(name, rank, tag, size) if rank is not None else (library.ANY, whole("tag", tag, _TAGS - 1))


def host_values_to_change(tensor):
    """As `host_values`, for a tensor that gets the result. Errors: also for an expanded tensor."""
    host = host_values(tensor)
    if any(stride == 0 and length > 1 for stride, length in zip(tensor.stride(), tensor.shape)):
        raise ConfigError("a collective takes dense tensors, found an expanded one, whose values share memory: call "
                          "contiguous() before")
    return host


def say_type(handle, tensor):
    """Declares the type that the next collective sends as bytes: members with different types get a ConfigError."""
    say(handle, type_name(tensor.dtype))


def say(handle, what):
    """Describes the bytes of a group's next collective, or the use of its reduction, in a text of at most 63 bytes:
    members with different texts get a ConfigError."""
    library.call("next_type", handle, what.encode())


def type_name(dtype):
    """Returns the name of a dtype, such as "float32"."""
    return str(dtype).replace("torch.", "", 1)


def bytes_of(tensor):
    return tensor.numel() * tensor.element_size()
