"""Data-parallel PyTorch on machines of unequal speed: five calls in an existing training script.

    import syncopate_torch as syncopate

    job = syncopate.init(scheme="esync")                    # with syncopate run, mpirun, srun, torchrun, or none
    data = job.partition_dataset(dataset, batch_size=64)    # every sample once an epoch, over all workers
    job.broadcast_parameters(model)
    optimizer = job.DistributedOptimizer(optimizer, model)  # any optimizer of torch.optim, every scheme
    for x, y in data:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step(weight=len(x))                       # sum(n_i g_i) / N

Start it with `syncopate run -n 4 -- python3 train.py`. A script that uses torch.distributed changes one word instead:

    torch.distributed.init_process_group("syncopate")

All errors derive from `syncopate_torch.Error`.
"""
import syncopate_backend
import torch

from syncopate_torch.core import launch
from syncopate_torch.core.errors import (Cancelled, ConfigError, DataError, Error, InternalError, NotFinite, PeerLost,
                                         ProtocolError, TimedOut, error_behind)
from syncopate_torch.core.group import Group, Work
from syncopate_torch.core.library import version
from syncopate_torch.distributed.rendezvous import init
from syncopate_torch.training.job import Job
from syncopate_torch.training.optimizer import DistributedOptimizer
from syncopate_torch.training.samples import IndexSampler, ShareLoader, ShareSampler
from syncopate_torch.training.torch_optimizers import SampleScheduler
from syncopate_torch.training.summary import Summary

__all__ = ["Cancelled", "ConfigError", "DataError", "DistributedOptimizer", "Error", "Group", "IndexSampler", "InternalError", "Job",
           "NotFinite", "PeerLost", "ProtocolError", "SampleScheduler", "ShareLoader", "ShareSampler", "Summary", "TimedOut", "Work",
           "error_behind", "init", "version"]
__version__ = version()

if torch.distributed.is_available():
    launch.set_torch_variables()
    syncopate_backend.register()
