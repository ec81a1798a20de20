"""A private Slurm with four virtual nodes on this machine, on loopback. Its files are in a temporary folder."""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from jobs import JobTest

LIMIT = 60  # seconds after which a daemon must have started
NODES = 4
CPUS = 8  # of each virtual node

CONFIGURATION = """\
ClusterName=syncopate
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,defer_batch
KillWait=5
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""

# This Slurm does not use cgroups, but if none are mounted, slurmd starts only with an explicit choice of their version.
CGROUPS = "CgroupPlugin=cgroup/v1\n"


class Unavailable(Exception):
    """Raised if Slurm does not start on this machine; its message is one line that says why."""


def free_ports(count):
    """Returns the first of `count` consecutive ports that are free at this moment."""
    for first in range(21000, 29000, count):
        probes = [socket.socket() for _ in range(count)]
        try:
            for number, probe in enumerate(probes):
                probe.bind(("127.0.0.1", first + number))
            return first
        except OSError:
            continue
        finally:
            for probe in probes:
                probe.close()
    raise AssertionError("no row of ports is free")


def complaint_in(path):
    """Returns the line that says why a daemon cannot start: its first fatal error, else its first error, else its last line."""
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    worst = [line for line in lines if "fatal:" in line] or [line for line in lines if "error:" in line] or lines[-1:]
    return worst[0].strip() if worst else "nothing"


class Slurm:
    """The cluster; use it as `with Slurm() as slurm: slurm.run("srun", …)`."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="syncopate-slurm-"))
        self.daemons = []
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SLURM_")},
            "SLURM_CONF": str(self.folder / "slurm.conf"),
        }

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        for node in range(1, NODES + 1):
            (self.folder / f"spool-n{node}").mkdir()
            (self.folder / f"tmp-n{node}").mkdir()
        self.write_configuration()
        self.start_munge()
        self.daemon("slurmctld", "-D")
        for node in range(1, NODES + 1):
            self.daemon("slurmd", "-D", "-N", f"n{node}")
        self.wait_for_start("the nodes to be idle", self.is_idle)

    def write_configuration(self):
        self.port = free_ports(NODES + 1)
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=socket.gethostname().split(".")[0], port=self.port, first=self.port + 1, last=self.port + NODES,
                folder=self.folder, nodes=NODES, cpus=CPUS, user=os.geteuid(),
            )
        )
        (self.folder / "cgroup.conf").write_text(CGROUPS)

    def start_munge(self):
        place = self.folder / "munge"
        place.mkdir(mode=0o755)
        key = place / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.daemon(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
            f"--pid-file={place}/pid", f"--log-file={place}/log", f"--seed-file={place}/seed",
        )
        self.wait_for_start("munged's socket", (self.folder / "munge.socket").exists)

    def daemon(self, *command):
        if not shutil.which(command[0]):
            raise Unavailable(f"no Slurm: {command[0]} is not installed")
        with open(self.output_of(command[0], len(self.daemons)), "wb") as log:
            self.daemons.append(
                subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )

    def output_of(self, program, number):
        return self.folder / f"{program}-{number}.out"

    def is_idle(self):
        """Returns True once all nodes are idle. Errors: Unavailable if slurmctld has refused a node."""
        if not self.answers():
            return False
        listed = self.run("sinfo", "--noheader", "--format=%T %D %E").stdout.splitlines()
        nodes = [line.split(maxsplit=2) for line in listed]
        for state, _, reason in nodes:
            if state in ("drained", "inval"):
                raise Unavailable(f"no Slurm: nodes are {state}: {reason.strip()}")
        return [node[:2] for node in nodes] == [["idle", str(NODES)]]

    def answers(self):
        """Returns True if slurmctld listens. Slurm's commands would wait for a slurmctld that has ended."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def wait_for_start(self, what, happens):
        """Waits until `happens()`. Errors: Unavailable if a daemon ends in the meantime or the limit passes."""
        deadline = time.monotonic() + LIMIT
        while not happens():
            self.require_daemons()
            if time.monotonic() > deadline:
                reason = complaint_in(self.folder / "slurmctld.log")
                raise Unavailable(f"no Slurm: waited {LIMIT} s for {what}; slurmctld says: {reason}")
            time.sleep(0.1)  # polls: Slurm has no event for this

    def require_daemons(self):
        for number, daemon in enumerate(self.daemons):
            if daemon.poll() is not None:
                program = daemon.args[0]
                raise Unavailable(f"no Slurm: {program} ended: {complaint_in(self.output_of(program, number))}")

    def wait_for(self, what, happens, limit=LIMIT):
        deadline = time.monotonic() + limit
        while not happens():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {limit} s for {what}; the daemons say:\n{self.logs()}")
            time.sleep(0.1)  # polls: Slurm has no event for this

    def logs(self):
        """Returns the last lines of the daemons. They are few, so that what else a failed test says is found beside them."""
        return "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-300:]}"
            for path in sorted(self.folder.glob("*.log"))
        )

    def run(self, *command, limit=120, **more):
        """Runs a Slurm command to its end. Errors: AssertionError with the words of the command and the daemons after `limit` s."""
        try:
            return subprocess.run(
                [str(word) for word in command],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, timeout=limit, check=False, **more,
            )
        except subprocess.TimeoutExpired as late:
            said = (late.stderr or b"").decode(errors="replace")
            raise AssertionError(f"{late}; it says:\n{said}\nthe daemons say:\n{self.logs()}") from None

    def state_of(self, job):
        """Returns the state of a job: "COMPLETED", "FAILED", …"""
        shown = self.run("scontrol", "--oneliner", "show", "job", job).stdout
        return next((word.split("=")[1] for word in shown.split() if word.startswith("JobState=")), "UNKNOWN")

    def runs(self, job):
        """Returns True if the job runs or will."""
        return self.state_of(job) in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")

    def await_end(self, job, limit):
        self.wait_for(f"job {job}", lambda: not self.runs(job), limit)
        return self.state_of(job)


class SlurmJobTest(JobTest):
    """A test whose jobs run under a Slurm of its class."""

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm()
        try:
            cls.enterClassContext(cls.slurm)
        except Unavailable as unavailable:
            raise unittest.SkipTest(str(unavailable)) from None
