"""The mean gradient of all workers before the step that takes it."""
import threading

import torch


class MeanGradient:
    """The mean over all workers, whose loops may take different numbers of steps: one that rests, because it has
    finished or waits in `align`, takes part with no sample until all workers rest.

    It has a group of its own, which all workers open at their first `of`, so that collectives of the script go on
    beside it.
    """

    def __init__(self, job):
        self._job = job
        self._resting = None  # the thread's, from the first `of` on
        self._group = None
        self._rests, self._ended = False, False

    def of(self, gradients, weight):
        """Replaces a flat gradient of `weight` samples by the mean over the samples of all workers."""
        if self._group is None:
            self._group = self._job.open_group(range(self._job.size))
            # Made now: a script that is ending can start no thread.
            self._resting = _Resting(self._group, len(gradients))
        own = torch.tensor([float(weight), 1.0])
        weighted = self._group.allreduce(torch.cat([gradients.cpu() * weight, own]))
        gradients.copy_(weighted[:-2] / max(float(weighted[-2]), 1e-30))

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

    def end(self):
        """As `wake`, for the last time; an error that has ended the job is that of its training."""
        self._ended = True
        if self._rests:
            self._rests = False
            self._resting.end.wait()


class _Resting:
    """A thread that takes part with no sample in one rest after the other."""

    def __init__(self, group, length):
        self.begin, self.end = threading.Event(), threading.Event()
        self._group, self._nothing, self._failure = group, torch.zeros(length + 2), None
        threading.Thread(target=self._run, name="syncopate-mean-gradient", daemon=True).start()

    def join_round(self):
        self.end.wait()
        self.end.clear()
        if self._failure is not None:
            raise self._failure

    def _run(self):
        while self._failure is None:
            self.begin.wait()
            self.begin.clear()
            try:
                while self._group.allreduce(self._nothing.clone())[-1] > 0:
                    pass
            except Exception as error:  # noqa: BLE001 (`join_round` raises it)
                self._failure = error
            self.end.set()
