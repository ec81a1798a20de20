"""Reductions before a step for workers whose loops take different numbers of steps."""
import threading
import weakref

import torch

from syncopate_torch.core.errors import ConfigError

# Explicit, because the script may have changed torch's defaults.
_KIND = {"dtype": torch.float32, "device": "cpu"}
_COUNTS = {"dtype": torch.float64, "device": "cpu"}


class RestingSum:
    """A sum or a mean over all workers. A worker that rests, because it has finished or waits in `align`, contributes
    zeros until all workers rest.

    It has its own group, so that it runs in parallel to collectives of the script. All workers make it together.
    """

    def __init__(self, job, length, flags=0, compares=False):
        """length: length of the vectors. flags: number of flags that a mean combines besides its values. compares:
        `mean` gets a code that must be the same on all workers."""
        self._flags, self._compares = flags, compares
        self.last_weight = 0  # of all workers together, in the last mean
        self._group = job.open_group(range(job.size)) if job.size > 1 else None
        # Made now: a script that is ending cannot start a thread.
        self._resting = _Resting(self._group, length, 2 + flags + 2 * compares) if job.size > 1 else None
        if self._resting is not None:
            # The thread keeps the group, and thereby the job. Not at exit: workers may rest until they leave.
            weakref.finalize(self, self._resting.stop).atexit = False
        self._rests, self._ended = False, False

    def of(self, values):
        """Returns the sum of float32 vectors."""
        if self._group is None:
            return values
        self._total(0, bytes(self._flags))
        return self._group.allreduce(values.cpu().clone())

    def mean(self, values, weight, flags=b"", code=0):
        """Returns the weighted mean of float32 vectors in host memory, zeros if no worker has a weight; and the flags,
        a byte each, that are set on any worker with a weight. Errors: ConfigError on all workers if their codes
        differ."""
        total, flags = self._total(weight, flags if weight > 0 else bytes(len(flags)), code)
        self.last_weight = total
        share = values * (weight / total) if weight > 0 else torch.zeros_like(values)  # also for non-finite values
        return share if self._group is None else self._group.allreduce(share), flags

    def _total(self, weight, flags, code=0):
        """Returns the totals of weights and flags over all workers that do not rest."""
        if self._group is None:
            return weight, flags
        codes = _squared(code) if self._compares else ()
        facts = self._group.allreduce(torch.tensor([1, weight, *flags, *codes], **_COUNTS)).tolist()
        if self._compares and facts[0] * facts[-1] != facts[-2] ** 2:
            raise ConfigError("workers step with optimizers of different settings, such as the rates of a schedule that follows each "
                              "worker's own loss, and their models would differ: give all workers the same rates and settings")
        return facts[1], bytes(count > 0 for count in facts[2:2 + len(flags)])

    def rest(self):
        """Makes this worker rest: it takes no step until `wake`."""
        if self._resting is not None and not self._rests and not self._ended:
            self._rests = True
            self._resting.begin.set()

    def wake(self):
        """Waits until all workers rest. Errors: those of a collective."""
        if self._rests:
            self._rests = False
            self._resting.join_round()

    def end(self, all_rest=True):
        """As `wake`, for the last time; an error that has ended the job is reported by its training.

        all_rest: if False, some workers may never rest, and the thread takes part until this worker leaves the job.
        """
        self._ended = True
        if self._rests and all_rest:
            self._rests = False
            self._resting.end.wait()
        if self._resting is not None:
            self._resting.stop()
            if not self._rests:
                self._resting.thread.join()


def _squared(code):
    """Returns 16 bits of a code, and their square. For n workers, n times the sum of the squares equals the square of
    the sum only if all codes are equal; both are exact."""
    part = (code ^ code >> 16) & 0xFFFF
    return part, part * part


class _Resting:
    """A thread that contributes zeros during each rest."""

    def __init__(self, group, length, facts):
        self.begin, self.end = threading.Event(), threading.Event()
        self._group, self._length, self._facts, self._failure = group, length, facts, None
        self._stopped = False
        self.thread = threading.Thread(target=self._run, name="syncopate-resting", daemon=True)
        self.thread.start()

    def join_round(self):
        self.end.wait()
        self.end.clear()
        if self._failure is not None:
            raise self._failure

    def stop(self):
        """Ends the thread, and with it its group."""
        self._stopped = True
        self.begin.set()

    def _run(self):
        while self._failure is None:
            self.begin.wait()
            self.begin.clear()
            if self._stopped:
                break
            try:
                while self._group.allreduce(torch.zeros(self._facts, **_COUNTS))[0] > 0:
                    self._group.allreduce(torch.zeros(self._length, **_KIND))
            except Exception as error:  # noqa: BLE001 (`join_round` raises it)
                self._failure = error
            self.end.set()
