"""What workers add up before a step, though their loops take different numbers of steps."""
import threading
import weakref

import torch

from syncopate_torch.core.errors import ConfigError

# Whatever the script has made torch's default.
_KIND = {"dtype": torch.float32, "device": "cpu"}
_COUNTS = {"dtype": torch.float64, "device": "cpu"}


class RestingSum:
    """A sum or a mean over all workers. One that rests, because it has finished or waits in `align`, takes part with zeros until all
    workers rest.

    It has a group of its own, so that collectives of the script go on beside it. All workers make it together.
    """

    def __init__(self, job, length, flags=0, compares=False):
        """length: of the vectors. flags: a number of facts that are known of a mean beside its values. compares: `mean` gets a
        code, which has to be the same on all workers."""
        self._flags, self._compares = flags, compares
        self.last_weight = 0  # of all workers together, in the last mean
        self._group = job.open_group(range(job.size)) if job.size > 1 else None
        # Made now: a script that is ending can start no thread.
        self._resting = _Resting(self._group, length, 2 + flags + 2 * compares) if job.size > 1 else None
        if self._resting is not None:
            # The thread keeps the group, and so the job. Not at the end of the script: workers may rest until they leave.
            weakref.finalize(self, self._resting.stop).atexit = False
        self._rests, self._ended = False, False

    def of(self, values):
        """The sum of float32 vectors."""
        if self._group is None:
            return values
        self._total(0, bytes(self._flags))
        return self._group.allreduce(values.cpu().clone())

    def mean(self, values, weight, flags=b"", code=0):
        """The weighted mean of float32 vectors in the host's memory; zeros where no worker has a weight. And which flags, a byte
        each, are set on a worker with a weight. Errors: ConfigError on all workers, for codes that differ."""
        total, flags = self._total(weight, flags if weight > 0 else bytes(len(flags)), code)
        self.last_weight = total
        share = values * (weight / total) if weight > 0 else torch.zeros_like(values)  # also of what is not finite
        return share if self._group is None else self._group.allreduce(share), flags

    def _total(self, weight, flags, code=0):
        """Of the weights and the flags of all workers that do not rest."""
        if self._group is None:
            return weight, flags
        codes = _squared(code) if self._compares else ()
        facts = self._group.allreduce(torch.tensor([1, weight, *flags, *codes], **_COUNTS)).tolist()
        if self._compares and facts[0] * facts[-1] != facts[-2] ** 2:
            raise ConfigError("workers step with optimizers of different settings, such as the rates of a schedule that follows each "
                              "worker's own loss, and their models would differ: give all workers the same rates and settings")
        return facts[1], bytes(count > 0 for count in facts[2:2 + len(flags)])

    def rest(self):
        """This worker takes no step until `wake`."""
        if self._resting is not None and not self._rests and not self._ended:
            self._rests = True
            self._resting.begin.set()

    def wake(self):
        """Returns once all workers rest. Errors: those of a collective."""
        if self._rests:
            self._rests = False
            self._resting.join_round()

    def end(self, all_rest=True):
        """As `wake`, for the last time; an error that has ended the job is that of its training.

        all_rest: else some may never do, and the thread takes part until this worker leaves the job.
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
    """16 bits of a code, and their square. Of n workers n times the sum of the squares is the square of the sum only where all
    have the same, and both are exact."""
    part = (code ^ code >> 16) & 0xFFFF
    return part, part * part


class _Resting:
    """A thread that takes part with zeros in one rest after the other."""

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
        """No more rests: the thread ends, and its group goes with it."""
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
