#!/usr/bin/python3
"""Measures the cost of the Python module in a script that runs as a single worker. Prints a line of JSON.

    python_alone.py import             seconds in which a new interpreter imports torch, and torch with syncopate_torch
    python_alone.py step --seconds 10  seconds of a step of LeNet-5, with the optimizer of torch.optim and with ours
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

# Measures only the imports: the clock runs after the interpreter has started and the system has loaded its libraries.
TIMED_IMPORT = "import time; begun = time.perf_counter(); import {}; print(time.perf_counter() - begun)"
BLOCK = 5  # steps of one kind before those of the other; the first two blocks of each do not count


def seconds_of(modules, bytecode):
    """Returns the seconds of an import. bytecode: the folder for bytecode, which an installed package already has."""
    command = [sys.executable, "-X", f"pycache_prefix={bytecode}", "-c", TIMED_IMPORT.format(modules)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout)


def imports(options):
    """Returns medians over interleaved interpreters; the first of each kind compiles and reads files for the others."""
    seconds = {"torch": [], "torch, syncopate_torch": []}
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as bytecode:
        while len(seconds["torch"]) < 3 or time.perf_counter() - begun < options.seconds:
            for modules, values in seconds.items():
                values.append(seconds_of(modules, bytecode))
    plain, both = (statistics.median(values[1:]) for values in seconds.values())
    return {"import_torch_seconds": plain, "import_both_seconds": both}


def steps(options):
    """Returns medians over steps; two networks of equal parameters take turns, block by block."""
    import torch

    import syncopate_torch as syncopate
    from torch_local import training_set

    torch.set_num_threads(1)
    job = syncopate.init()
    loops = {}
    for kind in ("plain", "wrapped"):
        torch.manual_seed(1)
        network, features, labels = training_set(options)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
        if kind == "wrapped":
            optimizer = job.DistributedOptimizer(optimizer, network, batch_size=options.batch_size)
        loops[kind] = (network, features, labels, optimizer, [])
    begun = time.perf_counter()
    while time.perf_counter() - begun < options.seconds or len(loops["plain"][-1]) < 4 * BLOCK:
        for network, features, labels, optimizer, seconds in loops.values():
            for _ in range(BLOCK):
                start = time.perf_counter()
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(network(features), labels).backward()
                optimizer.step()
                seconds.append(time.perf_counter() - start)
    return {f"{kind}_step_seconds": statistics.median(loop[-1][2 * BLOCK:]) for kind, loop in loops.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("import", "step"))
    parser.add_argument("--network", default="lenet5")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    print(json.dumps(imports(options) if options.what == "import" else steps(options)), flush=True)


if __name__ == "__main__":
    main()
