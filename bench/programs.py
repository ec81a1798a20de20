"""Runs the programs of the benchmarks, Syncopate's and its peers', and parses their output."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
WARM_UP_ROUNDS = 5

# The folder into which `script/build --torch pip` builds, and the torch that it uses.
PIP_BUILD = HERE.parent / "build/release-pip"
PIP_PYTHON = HERE.parent / "build/torch-pip-venv/bin/python"


def resident_bytes(pid):
    """Returns the peak resident memory of a process so far; None once it has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


class Programs:
    """The locations of the programs, and the environment that all of them share.

    The environment names the processor for OpenBLAS, as `syncopate` does by itself. Otherwise OpenBLAS
    selects the kernels of an old processor on new ones, which would slow the peers down.
    """

    def __init__(self, build, python):
        self.bin = pathlib.Path(build) / "bin"
        self.python = python
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.environment["SYNCOPATE_LIBRARY"] = str(build / "lib/libsyncopate.so.0")
        self.environment["PYTHONPATH"] = str(HERE.parent / "python")
        self.environment.update(blas_core(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")))

    def of_pip(self):
        """Returns the same programs with PyPI's torch, as built by `script/build --torch pip`."""
        return Programs(PIP_BUILD, PIP_PYTHON)

    def libtorch_version(self):
        return self.last_json([self.bin / "syncopate", "version", "--json"])["libtorch"]

    def last_json(self, command, as_installed=False, settings=None):
        """Runs a program to its end; returns its last line, a JSON object. settings: further environment variables."""
        environment = {**self.environment, **(settings or {})}
        if as_installed:
            environment.pop("OPENBLAS_CORETYPE", None)
        done = subprocess.run(
            [str(word) for word in command], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return json.loads(done.stdout.splitlines()[-1])

    def bench(self, benchmark, *options, launcher=()):
        """Returns the results of a benchmark of `syncopate bench`; `launcher`, if any, starts its ranks."""
        command = [*launcher, self.bin / "syncopate", "bench", benchmark, "--json", *options]
        return self.last_json(command)["results"]

    def replica(self, network, seconds, batch=64, *options):
        """Measures a replica of Syncopate in a process without a job."""
        results = self.bench("step", "--network", network, "--seconds", seconds, "--batch-size", batch, *options)
        step = next(result for result in results if result["part"] == "step")
        return {"images_per_second": step["samples_per_second"], "peak_resident_bytes": step["peak_resident_bytes"]}

    def pytorch(self, network, seconds, as_installed=False, batch=64):
        """Measures the same network in PyTorch."""
        script = HERE / "torch_local.py"
        return self.last_json(
            [self.python, script, "--network", network, "--seconds", seconds, "--batch-size", batch, "--json"],
            as_installed,
        )

    def ddp_command(self, network, processes, seconds, backend="gloo"):
        script = HERE / "peer_ddp.py"
        return [
            self.python, script, "--network", network, "--processes", processes, "--seconds", seconds,
            "--backend", backend, "--json",
        ]  # fmt: skip

    def ddp(self, network, processes, seconds, backend="gloo", keeps_memory=False):
        """Measures PyTorch's DistributedDataParallel. keeps_memory: with the malloc settings of Syncopate's jobs."""
        settings = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**30)} if keeps_memory else {}
        return self.last_json(self.ddp_command(network, processes, seconds, backend), settings=settings)

    def ddp_first_step(self, network, processes):
        """Returns the seconds from the command to the end of the first step of all processes."""
        begun = time.monotonic()
        command = [str(word) for word in self.ddp_command(network, processes, 0.1)]
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True) as program:
            first = next(iter(program.stdout))
            elapsed = time.monotonic() - begun
            program.stdout.read()
        if json.loads(first).get("event") != "first_step" or program.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed")
        return elapsed

    def loops_command(self, workers, seconds):
        return [self.bin / "syncopate", "run", "-n", workers, "--trace", "off", "--run-dir", tempfile.mkdtemp() + "/run",
                "--", self.bin / "loop_speed", "--seconds", seconds]  # fmt: skip

    def loops(self, workers, seconds):
        """Measures programs with a loop of their own as the workers of one job."""
        done = subprocess.run([str(word) for word in self.loops_command(workers, seconds)], env=self.environment,
                              capture_output=True, text=True, check=True)  # fmt: skip
        return json.loads(re.search(r"\{\"images_per_second.*\}", done.stderr)[0])

    def two_workers(self, way, network, seconds, slowdown):
        """Measures two workers of a script; the second sleeps `slowdown` times as long as it computes. way: "ddp",
        "none" (no synchronization), or the scheme of the script with five calls."""
        words = ["--network", network, "--seconds", seconds, "--slowdown", slowdown]
        script = HERE / "unequal_scripts.py"
        if way in ("ddp", "none"):
            return self.last_json([self.python, script, way, *words])
        command = [self.bin / "syncopate", "run", "-n", 2, "--scheme", way, "--trace", "off", "--run-dir",
                   tempfile.mkdtemp() + "/run", "--", self.python, script, "five", *words]  # fmt: skip
        done = subprocess.run([str(word) for word in command], env=self.environment, capture_output=True, text=True,
                              check=True)  # fmt: skip
        return json.loads(re.search(r"\{\"images_per_second.*\}", done.stderr)[0])

    def loops_first_step(self, workers):
        """Returns the seconds from the command to the end of the first step of all workers."""
        begun = time.monotonic()
        command = [str(word) for word in self.loops_command(workers, 0.1)]
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as program:  # fmt: skip
            for _ in range(workers):
                next(line for line in program.stderr if "first_step" in line)
            elapsed = time.monotonic() - begun
            program.stderr.read()
        if program.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed")
        return elapsed

    def loop_overhead(self, seconds):
        """Returns the relative overhead of the wrapped optimizer in a step of a single worker."""
        steps = self.last_json([self.bin / "loop_speed", "--alone", "--seconds", seconds])
        return steps["wrapped_step_seconds"] / steps["plain_step_seconds"] - 1

    def python_alone(self, what, *options):
        """Measures the cost of the Python module in a script that runs as a single worker."""
        return self.last_json([self.python, HERE / "python_alone.py", what, *options])

    def simulator(self):
        """Measures small messages between 64 simulated nodes."""
        return self.last_json([self.bin / "simulator_bench", "--repetitions", 1, "--json"])

    def rules(self):
        """Returns the GB/s of a step, by update rule of a server."""
        mark = "update "
        return {
            result["kernel"].removeprefix(mark): 1e-9 * result["bytes_per_second"]
            for result in self.bench("kernels")
            if result["kernel"].startswith(mark)
        }

    def peer_rules(self, peer):
        """Returns the same for NumPy or PyTorch, for the rules that `peer` has."""
        script = HERE / "peer_rules.py"
        return self.last_json([self.python, script, "--peer", peer, "--json"])["gigabytes_per_second"]

    def peer_server(self, options):
        """Measures the exchange with a parameter server in torch.distributed."""
        return self.last_json([self.python, HERE / "peer_server.py", *options])

    def job(self, options):
        """Runs `syncopate train` to its end, with a test in every epoch; returns its summary."""
        with tempfile.TemporaryDirectory(prefix="syncopate-bench-") as folder:
            return self.last_json(
                [
                    self.bin / "syncopate", "train", "--json", "--run-dir", pathlib.Path(folder) / "run",
                    "--checkpoint-every", "never", *options,
                ]  # fmt: skip
            )

    def train(self, options):
        """Runs `syncopate train --json` to its end, without evaluations and checkpoints."""
        with tempfile.TemporaryDirectory(prefix="syncopate-bench-") as folder:
            command = [
                self.bin / "syncopate", "train", "--json", "--run-dir", pathlib.Path(folder) / "run",
                "--epochs", 100000, "--eval-every", "never", "--checkpoint-every", "never", *options,
            ]  # fmt: skip
            return TrainingRun([str(word) for word in command], self.environment)


class TrainingRun:
    """One run of `syncopate train`, with figures from its events and from the system."""

    def __init__(self, command, environment):
        self.first_step_seconds = None
        self.resident = {}
        self._statuses = []
        self._workers = []
        self._begun = time.monotonic()
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as program:
            for line in program.stdout:
                self._on_event(json.loads(line))
        if program.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with status {program.returncode}")

    def _on_event(self, event):
        kind = event.get("event")  # the last line, the summary, has none
        if kind == "started":
            self._workers = [worker["pid"] for worker in event["workers"]]
        stepped = kind == "finished" or kind == "status" and event["samples"] > 0
        if stepped and self.first_step_seconds is None:
            self.first_step_seconds = time.monotonic() - self._begun
        if kind == "status":
            self._statuses.append(event)
            peaks = {pid: resident_bytes(pid) for pid in self._workers}
            self.resident.update({pid: peak for pid, peak in peaks.items() if peak})

    @property
    def images_per_second(self):
        """Returns the speed from the first status after the warm-up to the last; the peers skip a warm-up, too."""
        warm = [status for status in self._statuses if status["round"] >= WARM_UP_ROUNDS]
        if len(warm) < 2:
            raise RuntimeError("the run was too short to have a speed; give it more --seconds")
        samples, seconds = (warm[-1][name] - warm[0][name] for name in ("samples", "training_seconds"))
        return samples / seconds

    @property
    def worker_resident_bytes(self):
        """Returns the peak resident memory of the worker with the highest peak."""
        return max(self.resident.values())


def processor_flags(cpuinfo):
    """Returns the instruction sets that the text of /proc/cpuinfo names."""
    found = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    return set(found[1].split()) if found else set()


def blas_core(cpuinfo):
    """Returns the variables that select OpenBLAS kernels for this processor, as in src/job/launch/environment.cpp."""
    flags = processor_flags(cpuinfo)
    if {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        return {"OPENBLAS_CORETYPE": "SKYLAKEX"}
    return {"OPENBLAS_CORETYPE": "HASWELL"} if {"avx2", "fma"} <= flags else {}


def debian_python():
    """Returns the interpreter for which Debian's python3-torch is installed."""
    return shutil.which("python3", path="/usr/bin") or "python3"
