"""Process groups of torch.distributed over the backend of Syncopate or over Gloo."""
from torch import distributed


def init_group(backend, **options):
    if backend == "syncopate":
        import syncopate_torch  # noqa: F401, PLC0415 (makes the backend known)
    distributed.init_process_group(backend, **options)
