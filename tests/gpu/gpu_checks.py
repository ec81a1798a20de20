#!/usr/bin/env python3
"""Trains on the GPU of this machine with the installed wheel of Syncopate, and prints a table of what passed.

Usage: gpu_checks.py [--device DEVICE] [--only PATTERN] [--steps N]
  --device DEVICE  device of the workers [cuda]; with cpu the checks run without a GPU, to see that they work
  --only PATTERN   only checks whose names match this regular expression
  --steps N        steps of the check of memory [2000]

Two workers share the GPU. Exit status: 0 if all passed, 1 if some failed, 3 without a GPU.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import time

import torch

SCRIPTS = str(pathlib.Path(__file__).with_name("gpu_scripts.py"))
LIMIT = 150  # seconds of one command
IN_ROUNDS = ("ssgd", "local-sgd", "diloco", "esync", "nbssgd")
BY_SERVER = ("asgd", "dc-asgd", "ssp", "backup", "downpour", "easgd", "hogwild")


class Failed(Exception):
    """A check that did not hold; the text says why."""


def expect(holds, text):
    if not holds:
        raise Failed(text)


class Machine:
    def __init__(self, device):
        self.device = device
        self._program = os.environ.get("SYNCOPATE", pathlib.Path(sysconfig.get_path("scripts"), "syncopate"))

    def run(self, *call, workers=2, cpu_rank=None):
        """Returns what each worker of a script has printed, by rank. Errors: Failed."""
        variables = {**os.environ, "CHECK_DEVICE": self.device, "OMP_NUM_THREADS": "1"}
        if cpu_rank is not None:
            variables["CHECK_CPU_RANK"] = str(cpu_rank)
        command = [self._program, "run", "-n", workers, "--", sys.executable, "-B", SCRIPTS, *call]
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT, check=False,
                                      cwd=folder, env=variables)
            except subprocess.TimeoutExpired:
                raise Failed(f"had not ended after {LIMIT} s") from None
        expect(done.returncode == 0, f"ended with status {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}")
        lines = (done.stdout + done.stderr).splitlines()
        facts = [json.loads(found[1]) for found in map(re.compile(r"(?:\[worker \d+\] )?(\{.*\})$").match, lines) if found]
        expect(len(facts) == workers, f"expected a line of each of {workers} workers, found {len(facts)}")
        return sorted(facts, key=lambda each: each["rank"])

    def trained(self, scheme, *kinds):
        """Trains; expects one model that has learned."""
        first, *others = self.run("trains", scheme, 120, *kinds)
        expect(all(each["equal"] for each in (first, *others)), "the models of the workers differ")
        expect(first["last"] < 0.8 * first["first"], f"the loss went from {first['first']:.3f} to {first['last']:.3f}")
        return f"loss {first['first']:.2f} to {first['last']:.2f}"


def checks_on(machine, steps):
    """Returns the checks by name: functions that return what they found."""
    checks = {"ssgd, ten steps as on the CPU": lambda: short_parity(machine)}
    for scheme in IN_ROUNDS + BY_SERVER:
        checks[f"{scheme}, two workers"] = lambda scheme=scheme: machine.trained(scheme)
    for kind in ("stream", "channels-last", "fused", "compile", "autocast-bf16", "autocast-fp16", "bf16"):
        checks[f"ssgd, {kind}"] = lambda kind=kind: machine.trained("ssgd", kind)
    checks["esync, bf16"] = lambda: machine.trained("esync", "bf16")
    for scheme in ("ssgd", "esync"):
        checks[f"{scheme}, sums by a process group of Gloo"] = lambda scheme=scheme: machine.trained(scheme, "group")
    if machine.device != "cpu":
        checks["overlap on is refused by name"] = lambda: overlap(machine)
    checks[f"memory over {steps} steps"] = lambda: memory(machine, steps)
    checks["all-reduce of 44.7 MB"] = lambda: sums(machine)
    checks["a step of one worker"] = lambda: alone(machine)
    for network in ("lenet", "wide"):
        checks[f"a GPU beside a CPU, {network}"] = lambda network=network: beside(machine, network)
    return checks


def short_parity(machine):
    distance = machine.run("trains", "ssgd", 10)[0]["distance"]
    expect(distance <= 1e-4, f"{distance:.1e} from the model of the CPU, at most 1e-4")
    return f"{distance:.1e} from the model of the CPU"


def overlap(machine):
    reasons = [facts["reason"] for facts in machine.run("overlap_is_refused")]
    expect(all("overlap on needs a module on the CPU" in reason for reason in reasons), f"said {reasons[0]!r}")
    return "refused"


def memory(machine, steps):
    grown = [(facts["device_grew"], facts["host_grew"]) for facts in machine.run("memory", steps)]
    expect(max(of_device for of_device, _ in grown) <= 1, f"the GPU's memory grew by {grown} MB")
    expect(max(of_host for _, of_host in grown) <= 30, f"the host's memory grew by {grown} MB")
    return f"grew by at most {max(map(max, grown)):.1f} MB"


def sums(machine):
    first = machine.run("sums")[0]
    expect(first["right"], "the sum is wrong")
    text = (f"{first['syncopate'] * 1e3:.1f} ms, Gloo {first['gloo'] * 1e3:.1f} ms, "
            f"the copies by themselves {first['copies'] * 1e3:.1f} ms")
    expect(first["gloo"] >= 2 * first["syncopate"], f"{text}: expected half of Gloo's time")
    return text


def alone(machine):
    [facts] = machine.run("alone", workers=1)
    text = f"{facts['syncopate'] * 1e3:.2f} ms, plain torch {facts['plain'] * 1e3:.2f} ms"
    expect(facts["syncopate"] <= 1.01 * facts["plain"], f"{text}: expected at most 1 % more")
    return text


def beside(machine, network):
    """ESync's own case: worker 1 is on the CPU."""
    seconds = 15
    [gpu] = machine.run("paced", "ssgd", network, seconds, workers=1)
    lockstep, both = (machine.run("paced", scheme, network, seconds, cpu_rank=1)[0] for scheme in ("ssgd", "esync"))
    ratios = ", ".join(f"{ratio:.0%}" for ratio in both["computing"])
    text = (f"samples/s: esync {both['samples_per_second']:.0f}, ssgd {lockstep['samples_per_second']:.0f}, the GPU alone "
            f"{gpu['samples_per_second']:.0f}; losses {both['loss']:.3f}, {lockstep['loss']:.3f}, {gpu['loss']:.3f}; computing {ratios}")
    expect(both["samples_per_second"] >= 0.97 * gpu["samples_per_second"], f"{text}: expected no less than the GPU alone")
    expect(min(both["computing"]) >= 0.9, f"{text}: expected each device to compute 90 % of the time")
    return text


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("Usage: "), add_help=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print(f"torch {torch.__version__} finds no GPU here: none of the checks was run", file=sys.stderr)
        return 3
    name = torch.cuda.get_device_name() if options.device == "cuda" else "the CPU"
    print(f"torch {torch.__version__} on {name}", flush=True)
    failed = 0
    for check, run in checks_on(Machine(options.device), options.steps).items():
        if not re.search(options.only, check):
            continue
        begun = time.monotonic()
        try:
            outcome, text = "passed", run()
        except Failed as failure:
            outcome, text = "FAILED", str(failure)
            failed += 1
        print(f"{outcome}  {time.monotonic() - begun:5.1f} s  {check}: {text}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
