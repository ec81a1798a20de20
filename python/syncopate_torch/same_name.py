"""Collectives that a script names: whether all workers have called the one of that name."""
import hashlib

import torch

from syncopate_torch.errors import ConfigError

_DIGEST, _SHOWN = 8, 56  # bytes that travel: of the digest of a name, and of its end


class SameName:
    """Compares the name of the collective that comes next with those of the other workers.

    Collectives of several names in unequal order would otherwise reduce values of different names, where these have one
    shape. It costs an allgather of 64 bytes in front of the collective, which goes on meanwhile.
    """

    def __init__(self, job, name):
        self._rank = job.rank
        self._work = job.allgather_async(torch.frombuffer(bytearray(_bytes_of(name)), dtype=torch.uint8))

    def wait(self):
        """The names of all workers, as they travel. Errors: those of the allgather."""
        return [bytes(each.tolist()) for each in self._work.wait()]

    def expect(self, names):
        """Errors: ConfigError, where another worker has called a collective of another name."""
        for rank, name in enumerate(names):
            if name != names[self._rank]:
                raise ConfigError(f"worker {self._rank} calls a collective named {_shown(names[self._rank])!r} where worker "
                                  f"{rank} calls the one named {_shown(name)!r}: call named collectives in the same order on "
                                  "all workers")


class NamesUnderWay:
    """The named collectives of this worker that have not ended. Horovod finds collectives by their names, so two of one name
    at once are an error."""

    def __init__(self):
        self._works = {}  # by kind, name and process set

    def expect_free(self, kind, name, process_set):
        """Errors: ConfigError, while another collective of that kind and name goes on."""
        self._works = {key: work for key, work in self._works.items() if not work.is_done()}
        if (kind, name, process_set.process_set_id) in self._works:
            raise ConfigError(f"hvd.{kind} has been called with the name {name!r} again, before the first one has ended: give "
                              "each collective under way a name of its own, or wait for its handle")

    def begin(self, kind, name, process_set, work):
        """Keeps the name until the work has ended; returns the work."""
        if name is not None:
            self._works[kind, name, process_set.process_set_id] = work
        return work


def number_of(name):
    """A number that stands for a name."""
    return int.from_bytes(_digest(name), "little") >> 1


def _digest(name):
    return hashlib.blake2b(str(name).encode(), digest_size=_DIGEST).digest()


def _bytes_of(name):
    return _digest(name) + str(name).encode()[-_SHOWN:].ljust(_SHOWN, b"\0")


def _shown(content):
    return content[_DIGEST:].rstrip(b"\0").decode(errors="replace")
