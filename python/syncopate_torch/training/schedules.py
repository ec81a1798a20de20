"""Learning rate schedules by the samples of all workers."""
import weakref

import torch

from syncopate_torch.core.errors import ConfigError


class SampleScheduler:
    """Steps a scheduler of torch.optim by the samples of the job instead of the steps of a worker.

    every: samples of all workers between two steps of the scheduler; the size of the dataset for a schedule by epochs.
    """

    def __init__(self, job, scheduler, optimizer, every):
        if not every > 0:
            raise ConfigError(f"a scheduler needs a number of samples above 0 between its steps, found {every}")
        if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            raise ConfigError("a ReduceLROnPlateau follows a loss, not samples: give it no job.scheduler, and call its step(loss) on "
                              "all workers after align(), with a loss that they have reduced")
        #: The scheduler of torch.optim.
        self.scheduler = scheduler
        for each in _with_parts(scheduler):
            if each.optimizer is optimizer:  # breaks a reference cycle that would never be freed
                each.optimizer = weakref.proxy(optimizer)
        self._every = every
        self._steps = 0
        optimizer.follow_samples(self)
        job.keep_state("scheduler", self)

    def follow(self, samples):
        """Takes the steps that are due after `samples` samples of the job."""
        while (self._steps + 1) * self._every <= samples:
            self.scheduler.step()
            self._steps += 1

    def get_last_lr(self):
        """The learning rates of the parameter groups that the scheduler has set last."""
        return self.scheduler.get_last_lr()

    def state_dict(self):
        """The scheduler's state, and the number of its steps."""
        return {"scheduler": _plain(self.scheduler.state_dict()), "steps": self._steps}

    def load_state_dict(self, state):
        """Continues from a state that `state_dict` has returned."""
        self.scheduler.load_state_dict(state["scheduler"])
        self._steps = state["steps"]

    def job_state(self):
        groups = [{name: _copied(value) for name, value in group.items() if name != "params"} for group in self._groups]
        return {**self.state_dict(), "groups": groups}

    def take_job_state(self, state, _same_size):
        """Also restores the settings of the optimizer's groups: creating a scheduler sets rates, and sometimes
        momentum, to their initial values."""
        self.load_state_dict(state)
        for group, kept in zip(self._groups, state.get("groups", ())):
            group.update({name: _copied(value) for name, value in kept.items()})

    @property
    def _groups(self):
        return self.scheduler.optimizer.param_groups


def _with_parts(scheduler):
    """Yields a scheduler and, recursively, its parts, such as those of a SequentialLR."""
    yield scheduler
    for part in getattr(scheduler, "_schedulers", ()):
        yield from _with_parts(part)


def _plain(state):
    """Removes functions, which some schedulers of older torch versions put into their state: a new scheduler has the
    same ones."""
    if isinstance(state, dict):
        return {name: _plain(value) for name, value in state.items() if not callable(value)}
    return [_plain(value) for value in state] if isinstance(state, list) else state


def _copied(value):
    return value.clone() if torch.is_tensor(value) else value
