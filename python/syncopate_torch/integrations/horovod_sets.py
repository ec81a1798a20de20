"""Process sets and names of collectives in Horovod scripts."""
import hashlib

import torch

from syncopate_torch.core.arguments import MOST_32, whole
from syncopate_torch.core.errors import ConfigError


class ProcessSet:
    """Some workers, given by their ranks in the job. Once `add_process_set` has opened it, collectives with this
    `process_set` run among these workers. Errors: ConfigError if the argument is no list of ranks."""

    #: Its number while it is open, else None.
    process_set_id = None

    def __init__(self, ranks):
        try:
            ranks = list(ranks)
        except TypeError:
            raise ConfigError(f"a process set takes a list of ranks, found a value of type {type(ranks).__name__}") from None
        #: The ranks of its workers, in ascending order.
        self.ranks = sorted(whole("a rank of a process set", rank, MOST_32) for rank in ranks)
        self._own_rank, self._group = None, None

    def size(self):
        """The number of its workers; None if it is not open."""
        return None if self.process_set_id is None else len(self.ranks)

    def rank(self):
        """The rank of this worker in the set; None if this worker is not in it, or if it is not open."""
        return self.ranks.index(self._own_rank) if self.process_set_id is not None and self._own_rank in self.ranks else None

    def included(self):
        """True if this worker is in the set."""
        return self._own_rank in self.ranks

    def members(self):
        """Returns the group of its workers. Errors: ConfigError if this worker is not in it, and if it is not open."""
        if self.process_set_id is None:
            raise ConfigError(f"the process set of ranks {self.ranks} is not open: call hvd.add_process_set on all workers before")
        if self._group is None:
            raise ConfigError(f"worker {self._own_rank} is not in the process set of ranks {self.ranks}")
        return self._group

    def root(self, rank):
        """Returns the rank in the set of a worker, given by its rank in the job. Errors: ConfigError if it is not in
        the set."""
        if rank not in self.ranks:
            raise ConfigError(f"root_rank {rank} is not in the process set of ranks {self.ranks}")
        return self.ranks.index(rank)

    def __str__(self):
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


class Everyone(ProcessSet):
    """All workers, while this one is in a job."""

    process_set_id = 0

    def __init__(self, own_job):
        """own_job: function that returns the job. Its errors are those of all methods."""
        self._job = own_job

    @property
    def ranks(self):
        """The ranks of all workers."""
        return list(range(self._job().size))

    def size(self):
        """The number of workers."""
        return self._job().size

    def rank(self):
        """The rank of this worker in the job."""
        return self._job().rank

    def included(self):
        """True: every worker is a member."""
        return True

    def members(self):
        """The group of all workers."""
        return self._job().everyone

    def root(self, rank):
        """Returns the rank itself, which the library checks."""
        return rank


class OpenSets:
    """The process sets of a job, except that of all workers. All workers open and close the same sets in the same
    order."""

    def __init__(self, job):
        self._job, self._sets, self._last = job, [], 0

    def open(self, given):
        """Opens and returns the set of `given`, a `ProcessSet` or a list of ranks. Errors: ConfigError if a set of
        these ranks exists, and for a rank that is no worker of the job."""
        added = given if isinstance(given, ProcessSet) else ProcessSet(given)
        if any(added.ranks == other.ranks for other in [*self._sets, ProcessSet(range(self._job.size))]):
            raise ConfigError(f"a process set of ranks {added.ranks} is there already: use that one")
        if not added.ranks or added.ranks[-1] >= self._job.size or len(set(added.ranks)) < len(added.ranks):
            raise ConfigError(f"a process set has ranks from 0 to {self._job.size - 1}, each once, found {added.ranks}")
        self._last += 1
        added.process_set_id, added._own_rank = self._last, self._job.rank
        added._group = self._job.open_group(added.ranks) if added.included() else None
        self._sets.append(added)
        return added

    def close(self, removed):
        """Closes a set and returns True if it was open."""
        if removed not in self._sets:
            return False
        self._sets.remove(removed)
        removed.process_set_id = removed._group = None
        return True

    def close_all(self):
        for each in list(self._sets):
            self.close(each)


_DIGEST, _SHOWN = 8, 56  # bytes sent: the digest of a name, and its end


class SameName:
    """Compares the name of the next collective with those of the other workers.

    If workers called collectives of the same shape in different orders, values of different names would be reduced. The
    check costs an allgather of 64 bytes, started before the collective, which runs meanwhile.
    """

    def __init__(self, job, name):
        self._rank = job.rank
        self._work = job.allgather_async(torch.frombuffer(bytearray(_bytes_of(name)), dtype=torch.uint8))

    def wait(self):
        """Returns the names of all workers, as they are sent. Errors: those of the allgather."""
        return [bytes(each.tolist()) for each in self._work.wait()]

    def expect(self, names):
        """Errors: ConfigError if another worker has called a collective with another name."""
        for rank, name in enumerate(names):
            if name != names[self._rank]:
                raise ConfigError(f"worker {self._rank} calls a collective named {_shown(names[self._rank])!r} where worker "
                                  f"{rank} calls the one named {_shown(name)!r}: call named collectives in the same order on "
                                  "all workers")


class NamesUnderWay:
    """The running named collectives of this worker. Horovod identifies collectives by their names, so two with the same
    name at once are an error."""

    def __init__(self):
        self._works = {}  # by kind, name and process set

    def expect_free(self, kind, name, process_set):
        """Errors: ConfigError while another collective of this kind and name runs."""
        self._works = {key: work for key, work in self._works.items() if not work.is_done()}
        if (kind, name, process_set.process_set_id) in self._works:
            raise ConfigError(f"hvd.{kind} has been called with the name {name!r} again, before the first one has ended: give "
                              "each collective under way a name of its own, or wait for its handle")

    def begin(self, kind, name, process_set, work):
        """Stores the name until the work has ended; returns the work."""
        if name is not None:
            self._works[kind, name, process_set.process_set_id] = work
        return work


def number_of(name):
    """Returns a number that identifies a name."""
    return int.from_bytes(_digest(name), "little") >> 1


def _digest(name):
    return hashlib.blake2b(str(name).encode(), digest_size=_DIGEST).digest()


def _bytes_of(name):
    return _digest(name) + str(name).encode()[-_SHOWN:].ljust(_SHOWN, b"\0")


def _shown(content):
    return content[_DIGEST:].rstrip(b"\0").decode(errors="replace")
