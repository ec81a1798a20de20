"""What launchers leave in the environment: ranks, and the options of the command line of `syncopate run`."""
import json
import os
import pathlib
import re
import warnings
import zlib

from syncopate_torch.core.errors import ConfigError

# A variable that the launcher alone sets; those of the rank, of the number of ranks, of both on this host, and of the job.
# Inner launchers come before outer ones.
_LAUNCHERS = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"),
    ("HYDI_CONTROL_FD", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", None),
    ("SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID"),
    ("PMI_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"),
]

# Below those that the system gives to connections.
_FIRST_PORT, _PORTS = 20000, 12000


def set_torch_variables(environment=os.environ, parent=None):
    """Sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, where a launcher has started more than one rank
    and nothing has set them. A variable that is set stays. MASTER_ADDR stays unset where ranks run on several hosts and
    nothing names the first one: `env://` of torch.distributed then asks for it at once, and `init` refuses these ranks.

    parent: the name of the process that has started this one [as the system says]. What a user types into a shell that
            `srun --pty` has started is no rank.
    """
    for present, rank, size, local_rank, local_size, job in _LAUNCHERS:
        if "RANK" in environment or present not in environment:
            continue
        if environment.get(size, "1") == "1" or rank not in environment:
            continue
        if present == "SLURM_STEP_ID" and _is_typed(environment, parent):
            continue  # `init` refuses it, and says what to do
        environment["RANK"] = environment[rank]
        environment.setdefault("WORLD_SIZE", environment[size])
        environment.setdefault("LOCAL_RANK", environment.get(local_rank, environment[rank]))
        # Slurm writes "2(x3),1" for three hosts of two, and one of one.
        here = re.match(r"\d+", environment.get(local_size, environment[size]))
        environment.setdefault("LOCAL_WORLD_SIZE", here[0])
        environment.setdefault("MASTER_PORT", str(_port(environment, job)))
        first = _first_host(environment)
        if first is not None:
            environment.setdefault("MASTER_ADDR", first)


def _is_typed(environment, parent):
    name = _name_of_parent() if parent is None else parent
    return "SLURM_PTY_PORT" in environment and name not in ("", "slurmstepd")


def _name_of_parent():
    """Empty for one that runs a script or a command, which each task of a step may do, and where the system does not say."""
    try:
        name, *words = os.fsdecode(pathlib.Path(f"/proc/{os.getppid()}/cmdline").read_bytes()).rstrip("\0").split("\0")
    except OSError:
        return ""
    is_a_shell = all(word.startswith("-") and word != "-c" for word in words)
    return name.rpartition("/")[2] if is_a_shell else ""


def _port(environment, job):
    """The same in all ranks of a job, and another for most others. Where no variable tells jobs apart, the launcher's
    process does: it starts all ranks of a host."""
    name = environment.get(job or "") or os.getppid()
    identity = f"{os.getuid()}/{name}/{environment.get('SLURM_STEP_ID', '')}"
    return _FIRST_PORT + zlib.crc32(identity.encode()) % _PORTS


def _first_host(environment):
    """Of Slurm's "node[03-07,9],other"; this one, where all ranks run on it; else None: nothing names it."""
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", "")
    if environment.get("SLURM_NNODES", "1") == "1" or not nodes:
        return "127.0.0.1" if environment["LOCAL_WORLD_SIZE"] == environment["WORLD_SIZE"] else None
    return re.sub(r"^([^,\[]*)(?:\[([^,\-\]]*)[^\]]*\])?.*$", r"\1\2", nodes)


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
