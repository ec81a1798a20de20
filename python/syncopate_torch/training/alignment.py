"""Synchronization of loops with different numbers of steps: at the end of an epoch, before a test or a checkpoint."""
import threading
import zlib

import torch

from syncopate_torch.core import library
from syncopate_torch.core.errors import ConfigError

# Pause between two steps without samples, in seconds, which leaves the core to computing workers.
_PAUSE = 0.005
# Interval in seconds at which a waiting worker checks for an error of its own thread. After this time a step may be
# held up.
_GLANCE = 0.1
# Rounds after the last one that any worker has seen. A running step ends one of them, and with overlap the next one
# begins in the background; the third holds no sample of any worker.
_FURTHER_ROUNDS = 3
# Less than every round and step: no further step.
_NO_FURTHER = -1
# Longest wait of the end of a script for a step without samples, in seconds.
_LONGEST_STEP = 10.0


class Alignment:
    """Brings all workers of a job to one place of their scripts, even after different numbers of steps.

    A worker at the place continues with steps without samples, which by themselves change no model, so that no other
    worker waits for it. Once all are there, workers of a scheme with rounds end with the same round, and workers of a
    scheme with a model on a server fetch it. Their replicas are then equal, except for BatchNorm statistics that a
    scheme leaves to each worker.

    Threads: its own thread takes the steps while the script's thread waits. No step is running when `align` returns.
    """

    def __init__(self, job, step, progress, scheme):
        """step: weak reference to a method that takes a step without samples. progress: that of this worker."""
        self._job, self._step, self._progress, self._scheme = job, step, progress, scheme
        self._steps_while_waiting = scheme.in_rounds or scheme.waits_for_steps
        self._thread, self._failure = None, None
        self._condition = threading.Condition()
        self._target = None  # None: until `_pause_steps`; otherwise until `_reached`
        self._paused = False
        self._begun = 0  # steps begun by the thread

    def align(self, place):
        """Waits until all workers are at `place`, a text. Errors: ConfigError if workers are at different places; those
        of a step and of a collective."""
        if self._job.size == 1:
            return
        if self._steps_while_waiting:
            self._start()
        codes = [int(code) for code in self._gathered(zlib.crc32(place.encode()))]
        if len(set(codes)) > 1:
            others = [rank for rank, code in enumerate(codes) if code != codes[self._job.rank]]
            raise ConfigError(f"worker {self._job.rank} waits for all workers at {place}, but worker {others[0]} is "
                              "elsewhere: workers take different numbers of steps; let what they do together follow "
                              "epochs, not steps")
        if self._scheme.pulls_some_steps:
            self._progress.samples = sum(int(each) for each in self._gathered(self._progress.own_samples))
        if self._scheme.pulls_each_step and not self._scheme.waits_for_steps:
            self._step()()
        if self._scheme.in_rounds:
            self._end_one_round()
        elif self._steps_while_waiting:
            self._take_one_model()

    def _end_one_round(self):
        self._pause_steps()
        last = max(int(each) for each in self._gathered(self._progress.round))
        self._continue_until(last + _FURTHER_ROUNDS)
        self._join()

    def _take_one_model(self):
        """Fetches the model. All workers are at the place, so a step that begins now returns a model with the gradients
        of all. The server may hold it up until others take further steps: they do so until no step is running."""
        self._continue_until(self._begun + 1)
        patience = _GLANCE
        while not all(self._gathered(self._ends_within(patience))):
            if not self._thread.is_alive():
                self._start(self._begun + 1)
            patience *= 2
        self._join()

    def resume(self):
        """Ends the steps without samples before this worker's next step with samples."""
        if self._thread is not None:
            self._continue_until(_NO_FURTHER)
            self._join()

    def leave(self):
        """Runs before the training is freed, while a step may be running. That step ends with the job, or with a step
        of others."""
        thread = self._thread
        if thread is not None:
            self._continue_until(_NO_FURTHER)
            thread.join(_LONGEST_STEP)

    def _gathered(self, number):
        """Gathers a number from every worker, by rank, while this worker's thread may take steps."""
        work = self._job.allgather_async(torch.tensor([number], dtype=torch.int64))
        while not work.is_done():
            if self._failure is not None:
                raise self._failure
            library.wait(work.handle, _GLANCE)
        return work.wait()

    def _start(self, target=None):
        self._join()
        self._target, self._paused = target, False
        self._thread = threading.Thread(target=self._run, name="syncopate-align", daemon=True)
        self._thread.start()

    def _run(self):
        try:
            while self._goes_on():
                self._step()()
        except BaseException as error:  # the waiting thread raises it
            self._failure = error

    def _goes_on(self):
        """Returns True if another step is due; waits while the script's thread has paused the steps."""
        with self._condition:
            if self._target is None and not self._paused:
                self._condition.wait(_PAUSE)
            self._condition.wait_for(lambda: not self._paused)
            due = self._target is None or self._reached() < self._target
            self._begun += due
            return due

    def _reached(self):
        return self._progress.round if self._scheme.in_rounds else self._begun

    def _ends_within(self, seconds):
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _pause_steps(self):
        """Pauses the steps; at most the running one continues."""
        with self._condition:
            self._paused = True
            self._condition.notify_all()

    def _continue_until(self, target):
        with self._condition:
            self._target, self._paused = target, False
            self._condition.notify_all()

    def _join(self):
        thread, self._thread = self._thread, None
        while thread is not None and thread.is_alive():
            thread.join(_GLANCE)  # Ctrl-C is handled in between
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
