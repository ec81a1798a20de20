"""Scripts that need a process of their own, for backend_misuse_test.py: backend_process_scripts.py NAME [ARGUMENT...]."""
import json
import multiprocessing
import sys


def order(first):
    """Imports torch and the module in either order: each loads its own copy of protobuf."""
    if first == "torch":
        import torch
        import syncopate_torch
    else:
        import syncopate_torch
        import torch
    torch.distributed.init_process_group("syncopate")
    ones = torch.ones(3)
    torch.distributed.all_reduce(ones)
    print(json.dumps({"rank": torch.distributed.get_rank(), "sum": ones.tolist(),
                      "module": syncopate_torch.__name__}), flush=True)


def fork():
    """Forks a child, which calls a collective of its parent's group."""
    import syncopate_torch
    import torch
    torch.distributed.init_process_group("syncopate")
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()

    def child():
        try:
            torch.distributed.all_reduce(torch.ones(2))
        except syncopate_torch.ConfigError as error:
            said.put(str(error))

    process = context.Process(target=child)
    process.start()
    message = said.get()
    process.join()
    ones = torch.ones(3)
    torch.distributed.all_reduce(ones)
    print(json.dumps({"rank": torch.distributed.get_rank(), "sum": ones.tolist(), "child": message,
                      "status": process.exitcode}), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
