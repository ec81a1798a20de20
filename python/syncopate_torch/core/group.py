"""Collectives of all workers of a job, or of some."""
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

# Others may be wrappers around tensors.
_HAVE_MEMORY = (torch.Tensor, torch.nn.Parameter)

# Operations whose works have gone before they ended: their handles, and what they read and write.
_going_on = collections.deque()


class Work:
    """A collective that goes on while its caller does something else; so do a send and a receive. One that nobody keeps
    goes on, too, but for a receive."""

    def __init__(self, handle, result=None, host=None, keeps=None, goes_on=True):
        """keeps: what else the operation uses. goes_on: also without this object."""
        self._handle, self._result, self._host = handle, result, host
        # With what the collective uses, until it has ended.
        self._free = weakref.finalize(self, _free, handle, [result, host, keeps] if goes_on else [])

    @property
    def handle(self):
        return self._handle

    def is_done(self):
        """True once the collective has ended."""
        return bool(library.call("work_is_done", self._handle))

    def wait(self):
        """The tensor with the result, once the collective has ended. Errors: those of the collective."""
        library.wait(self._handle)
        if self._host is not None and self._host.data_ptr() != self._result.data_ptr():
            with changing([self._result]), torch.no_grad():
                self._result.copy_(self._host)
        self._host = None
        self._free.peek()[2][1].clear()
        return self._result

    def source(self):
        """The sender, once a receive has ended; else None."""
        rank = library.call("work_source", self._handle)
        return None if rank == library.ANY else rank


def _free(handle, memory):
    """Of a work that has gone. An operation that has not ended keeps its memory until another work goes."""
    if memory:
        _going_on.append((handle, memory))
    else:
        library.call("work_free", handle)
    for _ in range(len(_going_on)):
        try:
            each = _going_on.popleft()
        except IndexError:
            return  # another thread looks at them, too
        if library.call("work_is_done", each[0]):
            library.call("work_free", each[0])
        else:
            _going_on.append(each)


class Group(Uncopyable):
    """Some workers of a job, or all of them.

    Every member calls the collectives of one group in the same order, with the same types and shapes. Those of `_async`
    return a `Work` at once; they are carried out one after the other, and what they read and write stays as it is until
    they have ended. Those of several groups go on beside each other, and so does what one worker sends to another.
    Workers are named by their ranks in the group.

    Threads: collectives of one group one at a time, while other threads use other groups, or the job; sends and
             receives any.
    Errors:  PeerLost, TimedOut (another worker has ended, or has not come within the limit); ConfigError, for ranks,
             types and operations that are impossible, and in a forked process.
    """

    def __init__(self, job, opened):
        """opened: an `EveryoneInJob` or an `OpenedGroup`."""
        self._job = job  # leaves after this
        self._opened = opened

    @property
    def handle(self):
        """Of the C interface."""
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
        """Replaces a tensor by its reduction over all members, the same bits on each, and returns it.

        tensor: of float32, float64, float16, bfloat16, int8, uint8, int32 or int64.
        op:     "sum", "product", "min", "max", and for integers "and", "or", "xor" of their bits.
        """
        return self.allreduce_async(tensor, op).wait()

    def allreduce_async(self, tensor, op="sum"):
        """As `allreduce`, but returns a `Work` at once."""
        host = host_values_to_change(tensor)
        return self._work(self._made("allreduce", host.data_ptr(), *values(host), operation(op)), tensor, host)

    def reduce(self, tensor, root=0, op="sum"):
        """Replaces a tensor by its reduction on member `root`, and returns it; that of the others stays."""
        host = host_values_to_change(tensor)
        return self._work(self._made("reduce", host.data_ptr(), *values(host), operation(op),
                                     root_among(root, self.size)), tensor, host).wait()

    def reduce_scatter(self, tensor, op="sum"):
        """This member's block of the reduction of a tensor, whose first dimension has the blocks of all members."""
        host = host_values(tensor)
        if host.dim() == 0 or host.shape[0] % self.size:
            raise ConfigError(f"reduce_scatter needs a first dimension that {self.size} members can divide, found the "
                              f"shape {list(host.shape)}")
        mine = torch.empty((host.shape[0] // self.size, *host.shape[1:]), dtype=host.dtype, device="cpu")
        self._work(self._made("reduce_scatter", host.data_ptr(), mine.data_ptr(), *values(mine), operation(op)), mine,
                   keeps=host).wait()
        return mine.to(tensor.device)

    def broadcast(self, tensor, root=0):
        """Replaces a tensor of any type by that of member `root`, and returns it."""
        return self.broadcast_async(tensor, root).wait()

    def broadcast_async(self, tensor, root=0):
        """As `broadcast`, but returns a `Work` at once."""
        host = host_values_to_change(tensor)
        return self._work(self._made_of(host, "broadcast", host.data_ptr(), bytes_of(host), root_among(root, self.size)),
                          tensor, host)

    def allgather(self, tensor):
        """The tensors of all members, by rank: they have the same type and shape."""
        return list(self.allgather_async(tensor).wait().unbind())

    def allgather_async(self, tensor):
        """As `allgather`, but returns a `Work` at once. The result has one more dimension, the ranks, in front."""
        host = host_values(tensor)
        gathered = torch.empty((self.size, *host.shape), dtype=host.dtype, device="cpu")
        return self._work(self._made_of(host, "allgather", host.data_ptr(), bytes_of(host), gathered.data_ptr()), gathered,
                          keeps=host)

    def barrier(self):
        """Returns when every member has called it."""
        self._work(self._made("barrier")).wait()

    def send(self, tensor, to, tag=0):
        """Sends a tensor to one other member, which receives one of the same type and shape under the same tag, a number
        below 4096. Messages under one tag arrive in order."""
        self.send_async(tensor, to, tag).wait()

    def send_async(self, tensor, to, tag=0):
        """As `send`, but returns a `Work` at once."""
        host = host_values(tensor)
        place = receiver_among("to", to, tag, self.size)
        return self._work(self._made("send", host.data_ptr(), bytes_of(host), *place), keeps=host)

    def receive(self, tensor, sender=None, tag=0):
        """Replaces a tensor by that which `sender`, or any member, sends. Returns the sender."""
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
        """A collective that takes a tensor as bytes."""
        say_type(self.handle, tensor)
        return self._made(*call)

    def _work(self, handle, result=None, host=None, keeps=None, goes_on=True):
        return Work(handle, result, host, (keeps, self._opened), goes_on)


class EveryoneInJob:
    """The group of all workers, which the job has. An operation that is under way does not keep the job."""

    def __init__(self, job):
        self._job = weakref.proxy(job)

    @property
    def handle(self):
        """Errors: ConfigError, once this worker has left the job."""
        return ctypes.c_void_p(library.call("everyone", self._job.handle))


class OpenedGroup:
    """Closes a group when nobody has it any more: neither a `Group` nor an operation that is under way."""

    def __init__(self, handle):
        self.handle = handle
        # Not at the end of the script: a thread may use it until this worker leaves.
        weakref.finalize(self, library.call, "group_close", handle).atexit = False


def opened_group(job, ranks=None, timeout=0.0):
    """The handle of a group of some workers of a job, or of all; a wait takes at most `timeout` seconds, or half an
    hour. The caller closes it."""
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
    """How many values a tensor has, and of which type, as a reduction takes them."""
    if tensor.dtype not in TYPES:
        raise ConfigError(f"a reduction takes tensors of {', '.join(map(str, TYPES))}, found {tensor.dtype}; convert it by "
                          "tensor.to(torch.float32)")
    return tensor.numel(), TYPES[tensor.dtype]


def divide(numbers, count):
    """In place. Integers are rounded towards zero, as those of NCCL are."""
    numbers.div_(count, rounding_mode=None if numbers.is_floating_point() else "trunc")


def host_values(tensor):
    """The values next to each other in the memory of the host: the tensor's own, where they are so already.
    Errors: ConfigError, for what is no tensor, for a sparse one, and for one that stands for others, such as a DTensor."""
    expect_tensor(tensor)
    tensor = _with_memory(tensor)
    if tensor.layout != torch.strided:
        raise ConfigError("a collective takes dense tensors, found a sparse one: call to_dense() before")
    return tensor.detach().cpu().contiguous().resolve_conj().resolve_neg()


def _with_memory(tensor):
    """The tensor, or that which a functional collective of torch has promised, once it is there."""
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
    """The mode in which tensors may change, whatever that of the thread is: those of torch.inference_mode change in that
    alone, and so do copies that an operation has made which began `in_inference`."""
    return torch.inference_mode(in_inference or any(each.is_inference() for each in tensors))


def root_among(root, size):
    """A root's rank. Errors: ConfigError, for one that is none of `size` members."""
    number = number_of(root)
    if number is None or not 0 <= number < size or number != int(number):
        raise ConfigError(f"root {shown(root)} is no worker of this group, which has {size}")
    return int(number)


def receiver_among(name, rank, tag, size):
    """The other member of a message, among `size`, and the tag. Errors: ConfigError."""
    return whole(f"{name}, a rank in the group,", rank, size - 1), whole("tag", tag, _TAGS - 1)


def sender_among(name, rank, tag, size):
    """The same, where None is any member."""
    return receiver_among(name, rank, tag, size) if rank is not None else (library.ANY, whole("tag", tag, _TAGS - 1))


def host_values_to_change(tensor):
    """The same of a tensor that gets the result. Errors: also for one with fewer values in memory than it shows."""
    host = host_values(tensor)
    if any(stride == 0 and length > 1 for stride, length in zip(tensor.stride(), tensor.shape)):
        raise ConfigError("a collective takes dense tensors, found an expanded one, whose values share memory: call "
                          "contiguous() before")
    return host


def say_type(handle, tensor):
    """What the next collective of a group takes as bytes: members with tensors of different types get a ConfigError."""
    say(handle, type_name(tensor.dtype))


def say(handle, what):
    """What the bytes of a group's next collective are, or what its reduction is for, a text of at most 63 bytes: members that
    say different things get a ConfigError."""
    library.call("next_type", handle, what.encode())


def type_name(dtype):
    """"float32"."""
    return str(dtype).replace("torch.", "", 1)


def bytes_of(tensor):
    return tensor.numel() * tensor.element_size()
