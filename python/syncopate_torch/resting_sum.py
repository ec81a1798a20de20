"""What workers add up before a step, though their loops take different numbers of steps."""
import threading

import torch


class RestingSum:
    """A sum over all workers. One that rests, because it has finished or waits in `align`, takes part with zeros until all
    workers rest.

    It has a group of its own, which all workers open at their first `of`, so that collectives of the script go on
    beside it.
    """

    def __init__(self, job):
        self._job = job
        self._group = None
        self._resting = None  # the thread's, from the first `of` on
        self._rests, self._ended = False, False

    def of(self, values):
        """The sum of float32 vectors, always of the same length."""
        if self._group is None:
            self._group = self._job.open_group(range(self._job.size))
            # Made now: a script that is ending can start no thread.
            self._resting = _Resting(self._group, len(values))
        return self._group.allreduce(torch.cat([values.cpu(), torch.ones(1)]))[:-1]

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
    """A thread that takes part with zeros in one rest after the other."""

    def __init__(self, group, length):
        self.begin, self.end = threading.Event(), threading.Event()
        # The last value counts the workers that do not rest.
        self._group, self._nothing, self._failure = group, torch.zeros(length + 1), None
        threading.Thread(target=self._run, name="syncopate-resting", daemon=True).start()

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
