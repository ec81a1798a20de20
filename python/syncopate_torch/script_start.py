"""Whether a process imports the script of its parent, as multiprocessing with `spawn` or `forkserver` makes it do, and would
join the job a second time."""
import multiprocessing
import os

from syncopate_torch.errors import ConfigError

_JOINED = "SYNCOPATE_JOINED"  # the rank of a process that is in a job; what it starts inherits it


def remember_rank(rank):
    """This process is in a job of several."""
    os.environ[_JOINED] = str(rank)


def expect_first_reading():
    """Before a process joins its job. Errors: ConfigError, while a process that one of a job has started reads the script: it
    would join as the same worker. One that has read it, such as a rank that torch.multiprocessing starts, may join a job."""
    rank = os.environ.get(_JOINED)
    if rank is not None and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ConfigError(f"worker {rank} is in its job already, and multiprocessing has started this process for it, which "
                          "reads the script again: put the body of the script under `if __name__ == \"__main__\":`, or "
                          "start processes by fork")
