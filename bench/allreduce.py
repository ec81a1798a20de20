"""The suites of sums over ranks: Syncopate, MPI, Gloo and torch.distributed."""
import statistics

from measuring import Contestant, comparison, interleave, speed, table
from peers import Peers

# Algorithms by their names in `syncopate bench allreduce`.
OURS = [("shm", "auto"), ("tcp", "auto"), ("tcp", "ring")]
RANKS = (2, 4)
BACKENDS = {"Syncopate": "syncopate", "Gloo": "gloo"}
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 44_695_848, 100_000_000)


def allreduce(programs, options):
    """Allreduce of float32 between processes of one host, 1 KB to 100 MB, beside the fastest way of each peer."""
    peers = Peers(options.build, options.python, programs.environment)
    theirs = {
        "Open MPI": peers.open_mpi,
        "MPICH": peers.mpich,
        "Gloo, its best algorithm": peers.gloo,
        "torch.distributed, Gloo": peers.torch,
    }
    yield from compared(programs, options, OURS, theirs)


def allreduce_tcp(programs, options):
    """Allreduce of float32 between processes of one host over TCP alone, 1 KB to 100 MB."""
    peers = Peers(options.build, options.python, programs.environment)
    theirs = {
        "Open MPI, TCP only": peers.open_mpi_tcp,
        "Gloo, its best algorithm": peers.gloo,
        "torch.distributed, Gloo": peers.torch,
    }
    yield from compared(programs, options, [each for each in OURS if each[0] == "tcp"], theirs)


def backend(programs, options):
    """The backend "syncopate" of torch.distributed beside Gloo: DistributedDataParallel, also five calls, and allreduce."""
    for network in ("lenet5", "resnet18-v1"):
        sides = [Contestant(name, lambda each=each: speed(programs.ddp(network, 2, options.seconds, each)))
                 for name, each in BACKENDS.items()]  # fmt: skip
        keeping = Contestant("Gloo, with Syncopate's settings of malloc",
                             lambda: speed(programs.ddp(network, 2, options.seconds, keeps_memory=True)))  # fmt: skip
        five = Contestant("Syncopate, five calls, ssgd",
                          lambda: speed(programs.two_workers("ssgd", network, options.seconds, 0)))  # fmt: skip
        bounds = [Contestant(name, lambda each=each: speed(programs.ddp(network, 2, options.seconds, each)))
                  for name, each in {"DistributedDataParallel that does not communicate": "alone",
                                     "PyTorch, two processes that do not synchronize": "none"}.items()]  # fmt: skip
        results = interleave([*sides, keeping, five, *bounds], options.rounds)
        yield f"## DistributedDataParallel and five calls, {network}, two workers, batch 64 each\n"
        yield comparison(results, "images/s", "Gloo")
    peers = Peers(options.build, options.python, programs.environment)
    for ranks in RANKS:
        sides = [
            Contestant(name, lambda each=each: figures(peers.torch(ranks, SIZES, options.seconds, each)))
            for name, each in BACKENDS.items()
        ]
        yield f"## {ranks} ranks: time of an all_reduce, the slowest rank's\n"
        yield times_table(interleave(sides, options.rounds), "µs", ["Syncopate"], ["Gloo"]) + "\n"


def unequal(programs, options):
    """Scripts in Python on two workers, the second at half the speed: five calls beside DistributedDataParallel."""
    peer = "PyTorch DistributedDataParallel, Gloo"
    for network in ("lenet5", "resnet18-v1"):
        ways = {"Syncopate, five calls, esync": "esync", "Syncopate, five calls, ssgd": "ssgd", peer: "ddp",
                "PyTorch, two processes that do not synchronize": "none"}
        results = interleave(
            [Contestant(name, lambda way=way: speed(programs.two_workers(way, network, options.seconds, 1)))
             for name, way in ways.items()],
            options.rounds,
        )  # fmt: skip
        yield f"## {network}, batch 64 each\n"
        yield comparison(results, "images/s", peer)


def compared(programs, options, ours, theirs):
    own = [f"Syncopate, {transport}, {algorithm}" for transport, algorithm in ours]
    for ranks in RANKS:
        sides = [
            Contestant(name, lambda each=each: figures(summed(programs, each, ranks, options.seconds)))
            for name, each in zip(own, ours)
        ] + [
            Contestant(name, lambda peer=peer: figures(peer(ranks, SIZES, options.seconds)))
            for name, peer in theirs.items()
        ]
        results = interleave(sides, options.rounds)
        yield f"## {ranks} ranks: time of a round, the slowest rank's\n"
        yield times_table(results, "µs", own, list(theirs)) + "\n"
        yield f"## {ranks} ranks: CPU time of a round, all ranks together\n"
        yield times_table(results, "µs of CPU", own, list(theirs)) + "\n"


def summed(programs, ours, ranks, seconds):
    transport, algorithm = ours
    results = programs.bench(
        "allreduce", "--transport", transport, "--aggregate", algorithm, "--ranks", ranks,
        "--bytes", ",".join(str(size) for size in SIZES), "--seconds", seconds / len(SIZES),
    )  # fmt: skip
    return {result["bytes"]: result for result in results}


def figures(results):
    """Returns the seconds as microseconds."""
    found = {f"µs, {size_text(size)}": 1e6 * result["median_seconds"] for size, result in results.items()}
    found.update({f"µs of CPU, {size_text(size)}": 1e6 * result["cpu_seconds"] for size, result in results.items()})
    return found


def times_table(results, what, own, theirs):
    """Returns a table with a line for each size. The last column: how much faster our fastest is than theirs."""
    rows = []
    for size in SIZES:
        times = {name: values[f"{what}, {size_text(size)}"] for name, values in results.items()}
        medians = {name: statistics.median(values) for name, values in times.items()}
        ratio = min(medians[name] for name in theirs) / min(medians[name] for name in own)
        rows.append([size_text(size), *(spread_text(values) for values in times.values()), f"{ratio:.2f}"])
    return table(["", *results, "fastest peer / ours"], rows)


def spread_text(times):
    middle = time_text(statistics.median(times))
    return middle if len(times) == 1 else f"{middle} ({time_text(min(times))} to {time_text(max(times))})"


def time_text(microseconds):
    return f"{microseconds:.3g} µs" if microseconds < 999.5 else f"{microseconds / 1e3:.3g} ms"


def size_text(size):
    for factor, unit in ((1e6, "MB"), (1e3, "KB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"
