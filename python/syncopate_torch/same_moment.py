"""Whether the states with which workers go on are those of one moment of one job."""
import secrets

from syncopate_torch.errors import ConfigError
from syncopate_torch.summary import gathered

_PLACE = {"epoch": "epoch {}", "step": "step {}"}
# What the states of one moment have in common: the first that differs is named. Those of earlier versions, and of schemes
# whose workers take steps of their own, say less.
_COMMON = {"epoch": "epoch {}", "size": "{} workers", "job": "job {}", "alignments": "{} calls of align",
           "round": "round {}"}


def new_name():
    """Of a job: others have another one. It draws no number of the script's generators."""
    return secrets.token_hex(6)


def moment_of(state):
    """Of a state that `Job.state_dict` has returned: the place in its first dataset (later ones may be those of tests), and
    what its optimizer says. A dict of numbers and texts."""
    parts = state["parts"]
    place = _first(parts, "sampler")
    counted = {name: place[name] for name in _PLACE if name in place}
    return {"size": state["size"], **counted, **_first(parts, "optimizer").get("moment", {})}


def expect_same_moment(group, moment):
    """All workers call this before they begin to train, with the moment of the state that each has loaded, or None. Returns
    a name of this job, the same on all. Errors: ConfigError on all, which names the first two workers whose moments
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
