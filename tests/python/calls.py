"""Calls the functions of a file of training scripts: FILE NAME [ARGUMENT...] one, and FILE each CALLS several, one after
another in the same process and each in a job of its own. An import of torch takes longer than many a short job."""
import gc
import json
import sys

import torch

_index = {}  # of the call, where there are several


def say(**facts):
    """A line for the test, with the index of the call as `call` where there are several."""
    print(json.dumps({**_index, **facts}), flush=True)


def run_calls(functions, leave=gc.collect):
    """What the command line asks for. With `each`, `leave` ends the job of each call."""
    torch.set_num_threads(1)
    name, *arguments = sys.argv[1:]
    if name != "each":
        functions[name](*arguments)
        return
    for index, (name, *arguments) in enumerate(json.loads(arguments[0])):
        _index["call"] = index
        functions[name](*arguments)
        leave()
