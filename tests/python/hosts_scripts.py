"""A script for hosts_test.py."""
import syncopate_torch  # noqa: F401 (torch 1 does not find the backend by itself)
import torch
from torch import distributed as dist

from calls import run_calls, say


def sends_known_values():
    """Rank 0 sends values by which a recording of the network is searched (hosts_test.py)."""
    dist.init_process_group("syncopate")
    values = torch.full((10000,), 1.2345678 if dist.get_rank() == 0 else 0.0)
    dist.broadcast(values, src=0)
    say(sum=values.double().sum().item())


if __name__ == "__main__":
    run_calls(globals())
