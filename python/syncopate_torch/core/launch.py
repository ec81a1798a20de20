"""The environment that launchers set: ranks, and the command-line options of `syncopate run`."""
import json
import os
import pathlib
import re
import warnings
import zlib

from syncopate_torch.core.errors import ConfigError

# A variable that only this launcher sets; those of the rank, of the number of ranks, of both on this host, and of the
# job. Inner launchers come before outer ones.
_LAUNCHERS = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"),
    ("HYDI_CONTROL_FD", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", None),
    ("SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID"),
    ("PMI_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"),
]

# Below the ports that the system gives to outgoing connections.
_FIRST_PORT, _PORTS = 20000, 12000


def set_torch_variables(environment=os.environ, parent=None):
    """Sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT if a launcher has started more than one rank. It
    does not replace a variable that is set already. MASTER_ADDR stays unset if ranks run on several hosts and no
    variable names the first host: `env://` of torch.distributed then reports it as missing at once, and `init` raises
    an error for these ranks.

    parent: name of the process that has started this one [from the system]. Commands that a user types into a shell
            started by `srun --pty` are not ranks.
    """
    for present, rank, size, local_rank, local_size, job in _LAUNCHERS:
        if "RANK" in environment or present not in environment:
            continue
        if environment.get(size, "1") == "1" or rank not in environment:
            continue
        if present == "SLURM_STEP_ID" and _is_typed(environment, parent):
            continue  # `init` raises an error with instructions
        environment["RANK"] = environment[rank]
        environment.setdefault("WORLD_SIZE", environment[size])
        environment.setdefault("LOCAL_RANK", environment.get(local_rank, environment[rank]))
        # Slurm writes "2(x3),1" for three hosts of two ranks and one host of one.
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
    """Returns the name of the parent if it is an interactive shell. Empty if the parent runs a script or a command, as
    in any task of a step, and if the system does not provide the name."""
    try:
        name, *words = os.fsdecode(pathlib.Path(f"/proc/{os.getppid()}/cmdline").read_bytes()).rstrip("\0").split("\0")
    except OSError:
        return ""
    is_a_shell = all(word.startswith("-") and word != "-c" for word in words)
    return name.rpartition("/")[2] if is_a_shell else ""


def _port(environment, job):
    """Returns a port that is the same in all ranks of a job and differs between most jobs. If no variable identifies
    the job, the process id of the launcher does: it starts all ranks of a host."""
    name = environment.get(job or "") or os.getppid()
    identity = f"{os.getuid()}/{name}/{environment.get('SLURM_STEP_ID', '')}"
    return _FIRST_PORT + zlib.crc32(identity.encode()) % _PORTS


def _first_host(environment):
    """Returns the first host of Slurm's list, such as "node[03-07,9],other"; 127.0.0.1 if all ranks run on this host;
    else None."""
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", "")
    if environment.get("SLURM_NNODES", "1") == "1" or not nodes:
        return "127.0.0.1" if environment["LOCAL_WORLD_SIZE"] == environment["WORLD_SIZE"] else None
    return re.sub(r"^([^,\[]*)(?:\[([^,\-\]]*)[^\]]*\])?.*$", r"\1\2", nodes)


# Options that apply to every job, regardless of its programs.
_OF_ANY_JOB = {"run-dir", "threads", "trace", "transport", "wait-limit"}
# Options with their default values.
_AS_WITHOUT = {("scheme", "ssgd"), ("compress", "none"), ("schedule", "constant"), ("on-nan", "stop"), ("seed", "1")}


def given_by_launcher():
    """Returns a dict of the options of `syncopate run`; empty with other launchers."""
    return json.loads(os.environ.get("SYNCOPATE_OPTIONS") or "{}")


def expect_effect(what):
    """Errors: ConfigError if the command line has options of a training that have no effect on `what`."""
    text = _without_effect(what)
    if text is not None:
        raise ConfigError(f"{text}; a script that trains by both begins with job = syncopate_torch.init()")


def warn_without_effect(what):
    """Warns instead, if the script may later train in a way that uses these options."""
    text = _without_effect(what)
    if text is not None:
        warnings.warn(text, stacklevel=2)


def _without_effect(what):
    """Returns one line about the options without effect, or None."""
    found = [f"--{name}" if value == "true" else f"--{name} {value}" for name, value in given_by_launcher().items()
             if name not in _OF_ANY_JOB and (name, value) not in _AS_WITHOUT and value != "auto"]
    if not found:
        return None
    have = "has" if len(found) == 1 else "have"
    return (f"{' and '.join(found)} of `syncopate run` {have} no effect on {what}: leave out what does not apply, or train by "
            "syncopate_torch.init and job.DistributedOptimizer, which take schemes and their options (docs/guides/python.md, Five calls)")
