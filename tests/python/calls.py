"""Calls functions of a file of training scripts. FILE NAME [ARGUMENT...] calls one. FILE each CALLS calls several in the same
process, one after the other and each in its own job, since importing torch takes longer than many short jobs."""
import gc
import json
import sys

import torch

_index = {}  # with `each`: {"call": index of the current call}


def say(**facts):
    """Prints a line for the test; with `each` the line has the index of the call as `call`."""
    print(json.dumps({**_index, **facts}), flush=True)


def run_calls(functions, leave=gc.collect):
    """Makes the calls that the command line names. With `each`, `leave` ends the job after each call."""
    torch.set_num_threads(1)
    name, *arguments = sys.argv[1:]
    if name != "each":
        functions[name](*arguments)
        return
    for index, (name, *arguments) in enumerate(json.loads(arguments[0])):
        _index["call"] = index
        functions[name](*arguments)
        leave()
