"""A private Slurm: four virtual nodes on this machine, on loopback, in a folder that is removed with it."""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

LIMIT = 60  # seconds in which a daemon must start
NODES = 4
CPUS = 8  # of each virtual node

CONFIGURATION = """\
ClusterName=syncopate
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
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


def free_ports(count):
    """Consecutive ports that are all free at this moment."""
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


class Slurm:
    """The cluster, for use as `with Slurm() as slurm: slurm.run("srun", …)`."""

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
        self.wait_for("the nodes to be idle", self.is_idle)

    def write_configuration(self):
        first = free_ports(NODES + 1)
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=socket.gethostname().split(".")[0], port=first, first=first + 1, last=first + NODES,
                folder=self.folder, nodes=NODES, cpus=CPUS,
            )
        )

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
        self.wait_for("munged's socket", (self.folder / "munge.socket").exists)

    def daemon(self, *command):
        log = open(self.folder / f"{command[0]}-{len(self.daemons)}.out", "wb")
        with log:
            self.daemons.append(
                subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )

    def is_idle(self):
        done = self.run("sinfo", "--noheader", "--format=%T %D")
        return done.stdout.split() == ["idle", str(NODES)]

    def wait_for(self, what, happens, limit=LIMIT):
        deadline = time.monotonic() + limit
        while not happens():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {limit} s for {what}; the daemons say:\n{self.logs()}")
            time.sleep(0.1)  # polls: Slurm has no event for this

    def logs(self):
        return "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-1500:]}"
            for path in sorted([*self.folder.glob("*.out"), *self.folder.glob("*.log")])
        )

    def run(self, *command, limit=120, **more):
        """Runs a command of Slurm to its end."""
        return subprocess.run(
            [str(word) for word in command],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, timeout=limit, check=False, **more,
        )

    def state_of(self, job):
        """The state of a job: "COMPLETED", "FAILED", …"""
        shown = self.run("scontrol", "--oneliner", "show", "job", job).stdout
        return next((word.split("=")[1] for word in shown.split() if word.startswith("JobState=")), "UNKNOWN")

    def await_end(self, job, limit):
        running = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
        self.wait_for(f"job {job}", lambda: self.state_of(job) not in running, limit)
        return self.state_of(job)
