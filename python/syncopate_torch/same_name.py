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


def number_of(name):
    """A number that stands for a name [0 where there is none]."""
    return 0 if name is None else int.from_bytes(_digest(name), "little") >> 1


def _digest(name):
    return hashlib.blake2b(str(name).encode(), digest_size=_DIGEST).digest()


def _bytes_of(name):
    return _digest(name) + str(name).encode()[-_SHOWN:].ljust(_SHOWN, b"\0")


def _shown(content):
    return content[_DIGEST:].rstrip(b"\0").decode(errors="replace")
