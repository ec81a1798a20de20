"""Ranks that wait, for backend_signals_test.py: backend_signals_scripts.py waits HOW."""
import signal

import syncopate_torch  # noqa: F401 (makes the backend known)
import torch
from calls import run_calls
from torch import distributed as dist


def waits(how):
    """Rank 1 waits for something that rank 0 never begins."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start background jobs with SIGINT ignored
    dist.init_process_group("syncopate")
    if dist.get_rank() == 0:
        print("ready", flush=True)
        signal.pause()
    place = torch.ones(2)
    work = dist.irecv(place, 0) if how == "message" else dist.all_reduce(place, async_op=True)
    waiting = {"message": work.wait, "collective": work.wait, "future": lambda: work.get_future().wait(),
               "callback": lambda: work.get_future().then(lambda future: future.value()).wait()}
    print("ready", flush=True)
    waiting[how]()


if __name__ == "__main__":
    run_calls(globals())
