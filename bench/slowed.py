"""Suite `slowed`: the time to a loss of two workers of which one has a part of a processor core, beside the ways of PyTorch."""
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile

import measuring
from programs import HERE

RATIOS = (1, 2, 4, 8)
RATES = (0.02, 0.05)
RATIO_OF_RATES = 4  # at which each way gets the best of these rates
CGROUPS = pathlib.Path("/sys/fs/cgroup/cpu")
LIMIT = 120  # seconds of one run

# name: (way of slowed_scripts.py, options of `syncopate run`); the others are started by themselves
WAYS = {
    "PyTorch DistributedDataParallel, Gloo": ("ddp", None),
    "Accelerate LocalSGD, 8 steps": ("accelerate", None),
    "torchft DiLoCo, 8 steps": ("torchft", None),
    "Syncopate, ssgd, batch_size": ("batch", ["--scheme", "ssgd"]),
    "Syncopate, ssgd, global_batch": ("global", ["--scheme", "ssgd"]),
    "Syncopate, esync, batch_size": ("batch", ["--scheme", "esync"]),
    "Syncopate, esync, global_batch": ("global", ["--scheme", "esync"]),
}


def train(programs, way, ratio, rate, seed):
    """Runs a job; returns the seconds of training until the loss was low, or None."""
    script, run_options = WAYS[way]
    words = [programs.python, HERE / "slowed_scripts.py", script, "--ratio", ratio, "--rate", rate, "--seed", seed]
    with tempfile.TemporaryDirectory(prefix="syncopate-slowed-") as folder:
        group = CGROUPS / pathlib.Path(folder).name
        group.mkdir()
        environment = {**programs.environment, "SLOWED_CGROUP": str(group), "SLOWED_ENDED": f"{folder}/ended"}
        try:
            if script == "torchft":
                output = with_lighthouse(programs, words, environment)
            elif run_options is None:
                output = torch_processes(words, environment)
            else:
                command = [programs.bin / "syncopate", "run", "-n", 2, *run_options, "--trace", "off", "--seed", seed,
                           "--run-dir", f"{folder}/run", "--", *words]  # fmt: skip
                output = output_of([(command, environment)])
        finally:
            group.rmdir()  # all of its processes have ended
    return json.loads(re.search(r'\{"seconds".*\}', output)[0])["seconds"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torch_processes(words, environment):
    """Starts both processes as torchrun would."""
    shared = {**environment, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2",
              "LOCAL_WORLD_SIZE": "2", "ACCELERATE_USE_CPU": "true"}  # fmt: skip
    return output_of([(words, {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(2)])


def with_lighthouse(programs, words, environment):
    """The same with torchft's own coordinator."""
    serve = "from torchft.coordination import LighthouseServer; import time; " \
            "server = LighthouseServer(bind='127.0.0.1:0', min_replicas=2); print(server.address(), flush=True); time.sleep(1000)"
    command = [str(word) for word in (programs.python, "-c", serve)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as lighthouse:
        try:
            address = f"http://127.0.0.1:{lighthouse.stdout.readline().strip().rsplit(':', 1)[1]}"
            return torch_processes(words, {**environment, "SLOWED_LIGHTHOUSE": address})
        finally:
            lighthouse.kill()


def output_of(starts):
    """Runs commands at the same time; returns all that they print. Errors: RuntimeError if one fails."""
    started = [
        subprocess.Popen([str(word) for word in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True)  # fmt: skip
        for command, environment in starts
    ]
    try:
        outputs = [started[0].communicate(timeout=LIMIT)[0]]
        for other in started[1:]:
            try:
                outputs.append(other.communicate(timeout=5)[0])
            except subprocess.TimeoutExpired:  # it waits for the first one, which has ended
                other.kill()
                outputs.append(other.communicate()[0])
    finally:
        for process in started:
            process.kill()  # without effect on one that has ended
            process.wait()
    if started[0].returncode != 0:
        raise RuntimeError("\n".join(outputs))
    return "\n".join(outputs)


def ways_of(programs):
    """Returns the ways whose packages are installed."""
    missing = [name for name in ("accelerate", "torchft")
               if subprocess.run([programs.python, "-c", f"import {name}"], capture_output=True, check=False).returncode != 0]
    return [way for way, (script, _) in WAYS.items() if script not in missing]


def best_rates(programs, ways):
    """Returns the best of RATES for each way, by one run each."""
    rates = {}
    for way in ways:
        found = {rate: train(programs, way, RATIO_OF_RATES, rate, seed=1) for rate in RATES}
        rates[way] = min(RATES, key=lambda rate: found[rate] or float("inf"))
        print(f"  {way}: rate {rates[way]} of {found}", flush=True)
    return rates


def slowed(programs, options):
    """Two workers, one with a part of a core: seconds of training to a loss of LeNet-5 on Fashion-MNIST."""
    if not os.access(CGROUPS / "cpu.cfs_quota_us", os.W_OK) and not os.access(CGROUPS, os.W_OK):
        return [f"Not measured: {CGROUPS} is not writable."]
    ways = ways_of(programs)
    rates = best_rates(programs, ways)
    page = ["Scripts in Python, 64 samples in a step of both workers, SGD with momentum 0.9. Worker 1 has 1 / R of a core, by a "
            "quota of its cgroup. Seconds of training until the loss on 2,000 test images is at most 0.5; in brackets the "
            f"least and the greatest of {options.rounds} seeds. Each way has the best learning rate of "
            f"{', '.join(map(str, RATES))} at R = {RATIO_OF_RATES}, by one run each.", ""]  # fmt: skip
    rows = {way: [way, f"{rates[way]}"] for way in ways}
    for ratio in RATIOS:
        found = {way: [] for way in ways}
        for seed in range(1, options.rounds + 1):
            for way in ways:
                found[way].append(train(programs, way, ratio, rates[way], seed))
                print(f"  R = {ratio}, seed {seed}  {way}: {found[way][-1]}", flush=True)
        for way, seconds in found.items():
            known = [value for value in seconds if value is not None]
            all_known = len(known) == len(seconds)
            rows[way].append(measuring.with_spread(known) if all_known else f"not in {len(seconds) - len(known)} runs")
    return [*page, measuring.table(["", "rate", *(f"R = {ratio}" for ratio in RATIOS)], rows.values())]
