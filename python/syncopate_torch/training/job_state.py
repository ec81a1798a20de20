"""The state with which a worker resumes in a later job, and the check that the states of all workers belong
together."""
import random
import secrets
import sys
import weakref

import torch

from syncopate_torch.core.errors import ConfigError
from syncopate_torch.training.summary import gathered

_PLACE = {"epoch": "epoch {}", "step": "step {}"}
# Values that states of one moment have in common: errors name the first one that differs. States of earlier versions,
# and of schemes whose workers take their own steps, have fewer of them.
_COMMON = {"epoch": "epoch {}", "size": "{} workers", "job": "job {}", "alignments": "{} calls of align",
           "round": "round {}"}


def new_name():
    """Returns a name of a job that no other job has. It does not use the script's random generators."""
    return secrets.token_hex(6)


def moment_of(state):
    """Returns the moment of a state that `Job.state_dict` has returned: the position in its first dataset (later ones
    may be those of tests), and values of its optimizer. A dict of numbers and texts."""
    parts = state["parts"]
    place = _first(parts, "sampler")
    counted = {name: place[name] for name in _PLACE if name in place}
    return {"size": state["size"], **counted, **_first(parts, "optimizer").get("moment", {})}


def expect_same_moment(group, moment):
    """Returns a name of this job, the same on all workers. All workers call this before they train, with the moment of
    the state that each has loaded, or None. Errors: ConfigError on all workers that names the first two whose moments
    differ."""
    rows = gathered(group, {"name": new_name(), "moment": moment})
    first, *others = [row["moment"] for row in rows]
    for rank, other in enumerate(others, 1):
        if (first is None) != (other is None):
            raise ConfigError(_without_state(rank, first, other))
        if first is not None:
            _expect_same(rank, first, other)
    return rows[0]["name"]


def _first(parts, kind):
    names = [name for name in parts if name.startswith(f"{kind}.")]
    return parts[min(names, key=lambda name: int(name.split(".")[1]))] if names else {}


def _without_state(rank, first, other):
    has, lacks, moment = (0, rank, first) if other is None else (rank, 0, other)
    words = _words(moment, _PLACE)
    return (f"worker {has} has loaded a state{' of ' + words if words else ''}, and worker {lacks} none: before the "
            "DistributedOptimizer every worker loads the state that it saved at the same moment, or none does")


def _expect_same(rank, first, other):
    differs = [name for name in _COMMON if name in first and name in other and first[name] != other[name]]
    if differs:
        shown = {**_PLACE, differs[0]: _COMMON[differs[0]]}
        raise ConfigError(f"the state of worker 0 is of {_words(first, shown)}, that of worker {rank} of "
                          f"{_words(other, shown)}: load states that all workers saved at the same moment")


def _words(moment, shown):
    return ", ".join(form.format(moment[name]) for name, form in shown.items() if name in moment)


_FORMAT = 1


class JobState:
    """The state of all objects that a script has made from a job: each by its kind and its number among those of the
    kind.

    An object has `job_state()` and `take_job_state(state, same_size)`; `same_size` is True if the earlier job had the
    same number of workers.
    """

    def __init__(self):
        self._owners = {}
        self._loaded = None

    def keep(self, kind, owner):
        """Registers an object, and gives it the state that was loaded for it."""
        name = f"{kind}.{sum(other.startswith(kind) for other in self._owners)}"
        self._owners[name] = weakref.ref(owner)
        if self._loaded is not None:
            state, same_size, same_rank = self._loaded
            if name in state["parts"]:
                owner.take_job_state(state["parts"][name], same_size)
            if kind == "optimizer" and same_rank:  # the model exists by now; creating it used random numbers
                _set_random(state["random"])

    def first(self, kind):
        """Returns the oldest living object of a kind, or None."""
        return next(iter(self._living(kind)), None)

    def last(self, kind):
        """Returns the newest living object of a kind, or None."""
        return next(reversed(self._living(kind)), None)

    def _living(self, kind):
        found = [owner() for name, owner in self._owners.items() if name.startswith(kind)]
        return [owner for owner in found if owner is not None]

    def loaded_moment(self):
        """Returns the moment of the loaded state; None if no state was loaded."""
        return None if self._loaded is None else moment_of(self._loaded[0])

    def saved(self, rank, size):
        living = {name: owner() for name, owner in self._owners.items()}
        parts = {name: owner.job_state() for name, owner in living.items() if owner is not None}
        return {"format": _FORMAT, "rank": rank, "size": size, "parts": parts, "random": _random()}

    def load(self, state, rank, size):
        if not isinstance(state, dict) or {"format", "rank", "size", "parts", "random"} - set(state):
            raise ConfigError("expected a dict that the job's state_dict has made, found "
                              f"{list(state) if isinstance(state, dict) else type(state).__name__}")
        if state["format"] != _FORMAT:
            raise ConfigError(f"this version reads states of format {_FORMAT}, found {state['format']}")
        if self._owners:
            raise ConfigError("load_state_dict comes right after init: before partition_dataset, sampler and "
                              "DistributedOptimizer")
        same_size = state["size"] == size
        self._loaded = (state, same_size, same_size and state["rank"] == rank)


def _random():
    """Returns the states of the random generators as plain tensors, numbers and tuples."""
    states = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        name, keys, *rest = sys.modules["numpy"].random.get_state()
        states["numpy"] = (name, keys.tolist(), *rest)
    return states


def _set_random(states):
    random.setstate(states["python"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.device_count() == len(states["cuda"]):
        torch.cuda.set_rng_state_all(states["cuda"])
    if "numpy" in states and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(states["numpy"])
