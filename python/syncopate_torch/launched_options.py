"""Options of the command line of `syncopate run`, which its programs find in their environment."""
import json
import os
import warnings

from syncopate_torch.errors import ConfigError

# Of every job, whatever its programs do.
_OF_ANY_JOB = {"run-dir", "threads", "trace", "transport", "wait-limit"}
# Said, and nothing else than what is the case without them.
_AS_WITHOUT = {("scheme", "ssgd"), ("compress", "none"), ("schedule", "constant"), ("on-nan", "stop"), ("seed", "1")}


def given_by_launcher():
    """A dict of them; an empty one under other launchers."""
    return json.loads(os.environ.get("SYNCOPATE_OPTIONS") or "{}")


def expect_effect(what):
    """Errors: ConfigError, where the command line has options of a training that `what` does without."""
    text = _without_effect(what)
    if text is not None:
        raise ConfigError(f"{text}; a script that trains by both begins with job = syncopate_torch.init()")


def warn_without_effect(what):
    """The same as a warning, where the script may train later by what they are for."""
    text = _without_effect(what)
    if text is not None:
        warnings.warn(text, stacklevel=2)


def _without_effect(what):
    """One line; None: there are none."""
    found = [f"--{name}" if value == "true" else f"--{name} {value}" for name, value in given_by_launcher().items()
             if name not in _OF_ANY_JOB and (name, value) not in _AS_WITHOUT and value != "auto"]
    if not found:
        return None
    have = "has" if len(found) == 1 else "have"
    return (f"{' and '.join(found)} of `syncopate run` {have} no effect on {what}: leave out what does not apply, or train by "
            "syncopate_torch.init and job.DistributedOptimizer, which take schemes and their options (docs/guides/python.md, Five calls)")
