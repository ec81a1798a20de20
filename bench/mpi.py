"""The suite of the mpi transport, compared with shm, tcp, and MPI without Syncopate."""
import statistics

from allreduce import size_text, spread_text
from measuring import Contestant, interleave, table
from peers import OPEN_MPI, Peers

SIZES = (1_000, 100_000, 1_000_000, 10_000_000, 44_695_848, 100_000_000)
RANKS = (2, 4)
OWN, RAW = "mpi, MPI's own sum", "MPI_Allreduce alone"


def mpi(programs, options):
    """The mpi transport: allreduce and push-pull beside shm and tcp, and its sums by MPI beside MPI_Allreduce alone."""
    peers = Peers(options.build, options.python, programs.environment)
    launchers = {"Open MPI": (OPEN_MPI, peers.open_mpi), "MPICH": (["mpirun.mpich"], peers.mpich)}
    for library, (launcher, raw) in launchers.items():
        for ranks in RANKS:
            results = interleave(sides(programs, options, [*launcher, "-n", ranks], raw, ranks), options.rounds)
            yield f"## {library}, {ranks} ranks: time of a round, the slowest rank's\n"
            yield own_beside_raw(results) + "\n"
    yield from push_pull(programs, options, {library: launcher for library, (launcher, _) in launchers.items()})


def sides(programs, options, launcher, raw, ranks):
    each = ["--ranks", ranks, "--bytes", ",".join(map(str, SIZES)), "--seconds", options.seconds / len(SIZES)]

    def side(name, launcher, transport, algorithm):
        words = ["--transport", transport, "--aggregate", algorithm, *each]
        return Contestant(name, lambda: by_size(programs.bench("allreduce", *words, launcher=launcher)))

    return [
        side("shm", [], "shm", "auto"),
        side("tcp", [], "tcp", "auto"),
        side("mpi", launcher, "mpi", "auto"),
        side("mpi, ring of messages", launcher, "mpi", "ring"),
        side(OWN, launcher, "mpi", "mpi"),
        Contestant(RAW, lambda: by_size(raw(ranks, SIZES, options.seconds).values())),
    ]


def by_size(results):
    """Returns the seconds as microseconds."""
    return {size_text(result["bytes"]): 1e6 * result["median_seconds"] for result in results}


def own_beside_raw(results):
    """Returns a table with a line for each size. The last column: the overhead of MPI's allreduce inside Syncopate."""
    rows = []
    for size in map(size_text, SIZES):
        medians = {name: statistics.median(values[size]) for name, values in results.items()}
        times = (spread_text(values[size]) for values in results.values())
        rows.append([size, *times, f"{medians[OWN] / medians[RAW]:.2f}"])
    return table(["", *results, "MPI's own sum / alone"], rows)


def push_pull(programs, options, launchers):
    shape = ["--rounds", 40, "--workers", 2, "--servers", 1]

    def side(name, transport, launcher=()):
        words = ["--transport", transport, *shape]
        return Contestant(
            name, lambda: {"µs": 1e6 * programs.bench("push-pull", *words, launcher=launcher)[0]["median_seconds"]}
        )

    results = interleave(
        [
            side("shm", "shm"),
            side("tcp", "tcp"),
            *(side(f"mpi, {name}", "mpi", [*words, "-n", 3]) for name, words in launchers.items()),
        ],
        options.rounds,
    )
    yield "## An exchange with the parameter server, 11,175,370 floats each way, 1 server, 2 workers\n"
    yield table(["", "time of a worker's round"], [[name, spread_text(values["µs"])] for name, values in results.items()])
