"""The entry point that torch loads from 2.5 on, so that init_process_group("syncopate") needs no import. Every script
that imports torch pays for it, so it loads Syncopate's library and the rest of its module only when a process group is
made."""


def register():
    """Registers "syncopate" as a backend of torch.distributed, once. Has no effect if torch is built without
    torch.distributed."""
    from torch import distributed

    if not distributed.is_available() or hasattr(distributed.Backend, "SYNCOPATE"):
        return
    options = getattr(distributed.distributed_c10d, "_DistributedBackendOptions", None)
    if hasattr(options, "enable_reconfigure"):  # torch 2.14
        distributed.Backend.register_backend("syncopate", _group_with_options, extended_api=True, devices=["cpu", "cuda"])
        return
    try:
        distributed.Backend.register_backend("syncopate", _group_of, devices=["cpu", "cuda"])
    except TypeError:  # torch 1.13 has no argument devices
        distributed.Backend.register_backend("syncopate", _group_of)


def _group_of(*arguments):
    from syncopate_torch.distributed.backend import ProcessGroup

    return ProcessGroup.of(*arguments)


def _group_with_options(*arguments):
    from syncopate_torch.distributed.backend import ProcessGroup

    return ProcessGroup.with_options(*arguments)
