#!/usr/bin/python3
"""The peers of `syncopate bench kernels`: the same steps over one flat vector in NumPy and PyTorch."""
import argparse
import json
import statistics
import time

import numpy
import torch

LEARNING_RATE = 1e-3

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=LEARNING_RATE),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9),
    "nesterov": lambda parameters: torch.optim.SGD(
        parameters, lr=LEARNING_RATE, momentum=0.9, nesterov=True
    ),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=LEARNING_RATE),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=LEARNING_RATE),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=LEARNING_RATE),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0),
}


def numpy_steps(values):
    gradient = numpy.random.default_rng(1).random(values, dtype=numpy.float32) - numpy.float32(0.5)
    parameters = gradient.copy()
    rate = numpy.float32(LEARNING_RATE)

    def step():
        nonlocal parameters
        parameters -= rate * gradient

    return {"sgd": step}


def tensors(values):
    torch.manual_seed(1)
    gradient = torch.rand(values) - 0.5
    return gradient.clone(), gradient


def subtract_steps(values):
    parameters, gradient = tensors(values)
    return {"sgd": lambda: parameters.sub_(gradient, alpha=LEARNING_RATE)}


def optimizer_steps(values):
    steps = {}
    for rule, make in OPTIMIZERS.items():
        parameters, gradient = tensors(values)
        parameters.requires_grad_()
        parameters.grad = gradient
        steps[rule] = make([parameters]).step
    return steps


PEERS = {"numpy": numpy_steps, "sub_": subtract_steps, "optim": optimizer_steps}


def measure(steps, repetitions):
    """Returns the median seconds of a step, by rule; the rules take turns."""
    seconds = {rule: [] for rule in steps}
    for step in steps.values():
        step()
    for _ in range(repetitions):
        for rule, step in steps.items():
            start = time.perf_counter()
            step()
            seconds[rule].append(time.perf_counter() - start)
    return {rule: statistics.median(times) for rule, times in seconds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=PEERS, default="optim")
    parser.add_argument("--values", type=int, default=11_175_370)
    parser.add_argument("--repetitions", type=int, default=25)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seconds = measure(PEERS[options.peer](options.values), options.repetitions)
    rates = {rule: 4e-9 * options.values / time for rule, time in seconds.items()}
    if options.json:
        print(json.dumps({"peer": options.peer, "gigabytes_per_second": rates}))
    else:
        for rule, rate in rates.items():
            print(f"{rule:9} {rate:6.2f} GB/s of parameters")


if __name__ == "__main__":
    main()
