"""The suites: each compares a figure of Syncopate with that of its peers."""
import pathlib
import statistics
from concurrent import futures

from allreduce import allreduce, allreduce_tcp, backend, unequal
from between_hosts import between_hosts
from compress import compress
from measuring import ROOT, Contestant, comparison, interleave, speed, table, with_spread
from mpi import mpi
from overlap import overlap
from process_group import process_group
from programs import processor_flags
from slowed import slowed

MIB = 2**20


def local(programs, options):
    """One device, one thread: images per second of a replica, beside PyTorch."""
    for network in ("lenet5", "resnet18-v1"):
        results = interleave(
            [
                Contestant("Syncopate, the replica", lambda: speed(programs.replica(network, options.seconds))),
                Contestant("Syncopate, `train --scheme local`", lambda: trained(programs, network, 1, options)),
                Contestant("PyTorch", lambda: speed(programs.pytorch(network, options.seconds))),
                Contestant(
                    "PyTorch, OpenBLAS left to guess the processor",
                    lambda: speed(programs.pytorch(network, options.seconds, as_installed=True)),
                ),
            ],
            options.rounds,
        )
        yield f"## {network}, one thread, batch 64\n"
        yield comparison(results, "images/s", "PyTorch")


def libtorch(programs, options):
    """Debian's libtorch beside that of PyPI's torch, one thread: images per second of a replica and of PyTorch."""
    sides = {its.libtorch_version(): its for its in (programs, programs.of_pip())}
    for network in ("lenet5", "resnet18-v1"):
        contestants = []
        for version, its in sides.items():
            contestants += [
                Contestant(f"Syncopate, libtorch {version}",
                           lambda its=its: speed(its.replica(network, options.seconds))),
                Contestant(f"PyTorch {version}", lambda its=its: speed(its.pytorch(network, options.seconds))),
            ]  # fmt: skip
        results = interleave(contestants, options.rounds)
        yield f"## {network}, one thread, batch 64\n"
        yield comparison(results, "images/s", contestants[0].name)


# Each network, with a batch size for which a step takes at most about half a second.
NETWORK_BATCHES = {
    "mlp": 64, "lenet5": 64, "alexnet": 16, "resnet9": 16, "resnet18-v1": 64, "resnet50-v1": 16, "resnet50-v2": 16,
    "mobilenet-v1": 64, "mobilenet-v2": 64, "inception-v3": 16,
}  # fmt: skip


def networks(programs, options):
    """Each network on one device, one thread: images per second of a replica, beside PyTorch."""
    yield (
        f"libtorch {programs.libtorch_version()} on both sides. Images of one channel and of 28×28, or of the smallest size\n"
        "that a network takes: 63×63 for `alexnet`, 75×75 for `inception-v3`. Ten classes; SGD with momentum.\n"
    )
    rows = []
    for network, batch in NETWORK_BATCHES.items():
        print(f"  {network}, batch {batch}", flush=True)
        results = interleave(
            [
                Contestant("Syncopate", lambda: speed(programs.replica(network, options.seconds, batch))),
                Contestant("PyTorch", lambda: speed(programs.pytorch(network, options.seconds, batch=batch))),
            ],
            options.rounds,
        )
        rows.append(row_of_network(network, batch, results))
    yield table(["", "batch", "Syncopate, images/s", "PyTorch, images/s", "relative"], rows)


def precision(programs, options):
    """--precision bf16 beside float32 on one CPU, one thread: images per second of a replica."""
    instructions = ", ".join(bfloat16_instructions()) or "no instructions"
    yield f"libtorch {programs.libtorch_version()}; the processor has {instructions} for bfloat16.\n"
    rows = []
    for network, side, batch in (("lenet5", 28, 64), ("resnet18-v1", 28, 64), ("resnet18-v1", 112, 16), ("mobilenet-v2", 112, 16)):
        results = interleave(
            [Contestant(name, lambda name=name: speed(programs.replica(
                network, options.seconds, batch, "--image-size", side, "--precision", name)))
             for name in ("float32", "bf16")],
            options.rounds,
        )  # fmt: skip
        full, half = (results[name]["images/s"] for name in ("float32", "bf16"))
        rows.append([f"`{network}`", f"{side}×{side}", str(batch), with_spread(full), with_spread(half),
                     f"{statistics.median(half) / statistics.median(full):.2f}"])  # fmt: skip
    yield table(["", "images", "batch", "float32, images/s", "bf16, images/s", "relative"], rows)


def ssgd(programs, options):
    """Synchronous SGD, two workers of one thread: images per second, beside DistributedDataParallel."""
    for network in ("lenet5", "resnet18-v1"):
        results = interleave(
            [
                Contestant("Syncopate, `train --scheme ssgd`", lambda: trained(programs, network, 2, options)),
                Contestant(
                    "Syncopate, two jobs of `train --scheme local` at once",
                    lambda: apart(programs, network, 2, options),
                ),
                Contestant(
                    "PyTorch DistributedDataParallel, Gloo",
                    lambda: speed(programs.ddp(network, 2, options.seconds)),
                ),
            ],
            options.rounds,
        )
        yield f"## {network}, two workers, batch 64 each\n"
        yield comparison(results, "images/s", "PyTorch DistributedDataParallel, Gloo")


def loops(programs, options):
    """Programs with a loop of their own, in C++: the network of examples/dist_mnist, beside DistributedDataParallel."""
    peer = "PyTorch DistributedDataParallel, Gloo"
    results = interleave(
        [
            Contestant("Syncopate, `syncopate run`, ssgd", lambda: speed(programs.loops(2, options.seconds))),
            Contestant(peer, lambda: speed(programs.ddp("dist-mnist", 2, options.seconds))),
        ],
        options.rounds,
    )
    yield "## Two workers, batch 64 each\n"
    yield comparison(results, "images/s", peer)
    overhead = [100 * programs.loop_overhead(options.seconds) for _ in range(options.rounds)]
    yield f"\nA program by itself: the wrapper adds {with_spread(overhead)} % to a step.\n"
    results = interleave(
        [
            Contestant("Syncopate, `syncopate run`", lambda: {"seconds": programs.loops_first_step(4)}),
            Contestant(peer, lambda: {"seconds": programs.ddp_first_step("dist-mnist", 4)}),
        ],
        options.rounds,
    )
    yield "## Four workers, seconds from the command to the first step of all\n"
    yield comparison(results, "seconds", peer)


def python(programs, options):
    """What the Python module costs a script by itself: the time of its import, and of a step of one worker."""
    added = []
    for _ in range(options.rounds):
        seconds = programs.python_alone("import", "--seconds", options.seconds)
        added.append(1e3 * (seconds["import_both_seconds"] - seconds["import_torch_seconds"]))
        print(f"  import: {added[-1]:.1f} ms more than import torch")
    yield f"`import syncopate_torch` adds {with_spread(added)} ms to `import torch`.\n"
    rows = []
    for network, batch in (("lenet5", 64), ("resnet18-v1", 16)):
        shares, plain = [], []
        for _ in range(options.rounds):
            steps = programs.python_alone("step", "--network", network, "--batch-size", batch, "--seconds", options.seconds)
            plain.append(1e3 * steps["plain_step_seconds"])
            shares.append(100 * (steps["wrapped_step_seconds"] / steps["plain_step_seconds"] - 1))
            print(f"  {network}: {shares[-1]:.2f} % more")
        rows.append([f"`{network}`", str(batch), with_spread(plain), f"{with_spread(shares)} %"])
    yield table(["", "batch", "step with torch.optim, ms", "five calls of one worker add"], rows)


def start(programs, options):
    """Four workers of LeNet-5: seconds from the command to the first step of all."""
    peer = "PyTorch DistributedDataParallel, Gloo"
    results = interleave(
        [
            Contestant("Syncopate, `train --scheme ssgd`", lambda: first_step(programs)),
            Contestant(peer, lambda: {"seconds": programs.ddp_first_step("lenet5", 4)}),
        ],
        options.rounds,
    )
    yield "Syncopate's figure is an upper bound: the time at which a job of a single step reported its end.\n"
    yield comparison(results, "seconds", peer)


def memory(programs, options):
    """The most memory resident in one worker of four, beside one process that trains alone."""
    for network in ("lenet5", "resnet18-v1"):
        alone = "Syncopate, the replica alone in a process"
        results = interleave(
            [
                Contestant(alone, lambda: resident(programs.replica(network, options.seconds))),
                Contestant("Syncopate, worker of `local`", lambda: worker_memory(programs, network, 1, options)),
                Contestant("Syncopate, worker of `ssgd`", lambda: worker_memory(programs, network, 4, options)),
                Contestant("PyTorch alone", lambda: resident(programs.pytorch(network, options.seconds))),
                Contestant(
                    "PyTorch DistributedDataParallel, Gloo",
                    lambda: resident(programs.ddp(network, 4, options.seconds)),
                ),
            ],
            options.rounds,
        )
        yield f"## {network}, batch 64\n"
        yield comparison(results, "MiB", alone)


def simulator(programs, options):
    """Small messages between 64 simulated nodes, per second."""

    def measure():
        result = programs.simulator()
        return {
            "messages/s": result["median_messages_per_second"],
            "messages per second of CPU": result["messages_per_cpu_second"],
        }

    results = interleave([Contestant("Syncopate, simulated transport", measure)], options.rounds)
    yield comparison(results, "messages/s") + "\n"
    yield comparison(results, "messages per second of CPU")


def latency(programs, options):
    """Messages between two processes of a host: one-way time of 64 bytes, and bandwidth of 44.7 MB."""

    def measured(transport):
        results = programs.bench(
            "latency", "--transport", transport, "--bytes", "64,44695848", "--seconds", options.seconds / 3
        )
        found = {result["pattern"]: result for result in results}
        figures = {"µs, 64 bytes one way": 1e6 * found["back and forth"]["median_seconds"]}
        for pattern in ("one way", "both ways"):
            figures[f"GB/s, {pattern}"] = 1e-9 * found[pattern]["bytes_per_second"]
        return figures

    results = interleave(
        [
            Contestant("Syncopate, shared memory", lambda: measured("shm")),
            Contestant("Syncopate, tcp on loopback", lambda: measured("tcp")),
        ],
        options.rounds,
    )
    for figure in results["Syncopate, shared memory"]:
        yield comparison(results, figure) + "\n"


def rules(programs, options):
    """One step of each update rule on 11,175,370 parameters, on one core: GB/s of parameters."""
    peer = "PyTorch, `torch.optim`"
    results = interleave(
        [
            Contestant("Syncopate", lambda: by_rule(programs.rules())),
            Contestant(peer, lambda: by_rule(programs.peer_rules("optim"))),
            Contestant("PyTorch, `w.sub_(g, alpha=rate)`", lambda: by_rule(programs.peer_rules("sub_"))),
            Contestant("NumPy, `w -= rate * g`", lambda: by_rule(programs.peer_rules("numpy"))),
        ],
        options.rounds,
    )
    for figure in results[peer]:
        have_it = {name: figures for name, figures in results.items() if figure in figures}
        yield comparison(have_it, figure, peer) + "\n"


def push_pull(programs, options):
    """An exchange with the parameter server, 11,175,370 floats each way: milliseconds of a worker's round."""
    peer = "torch.distributed, Gloo, isend and irecv"
    for servers, workers in ((1, 2), (1, 4), (2, 2)):
        shape = ["--servers", servers, "--workers", workers]
        results = interleave(
            [
                Contestant(
                    "Syncopate, shared memory",
                    lambda: exchange(programs.bench("push-pull", "--rounds", 40, *shape)[0]),
                ),
                Contestant(
                    "Syncopate, tcp",
                    lambda: exchange(programs.bench("push-pull", "--transport", "tcp", "--rounds", 40, *shape)[0]),
                ),
                Contestant(peer, lambda: exchange(programs.peer_server(shape))),
            ],
            options.rounds,
        )
        yield f"## {servers} server{'s' if servers > 1 else ''}, {workers} workers\n"
        yield comparison(results, "ms", peer)


def asynchronous(programs, options):
    """LeNet-5 on Fashion-MNIST with four unequal devices: throughput and accuracy of each scheme, three seeds."""
    epochs = 2
    schemes = {
        "ssgd": [],
        "backup": [],
        "ssp": [],
        "ssp, slack 100": ["--slack", 100],
        "asgd": [],
        "dc-asgd": [],
        "downpour": [],
        "easgd": [],
        "hogwild": [],
    }
    summaries = {name: [] for name in schemes}
    for seed in (1, 2, 3):
        for name, extra in schemes.items():
            scheme = name.split()[0].rstrip(",")
            summary = programs.job(
                ["--scheme", scheme, "--cluster", ROOT / "clusters/mixed.toml", "--epochs", epochs, "--seed", seed, *extra]
            )
            summaries[name].append(summary)
            print(f"  seed {seed}  {name}: {summary['throughput']:,.0f} samples/s, accuracy {summary['accuracy']:.4f}")
    yield f"`clusters/mixed.toml`, {epochs} epochs, defaults; the devices by themselves: 8,800 samples/s.\n"
    yield table(
        ["scheme", "samples/s", "cluster efficiency", "accuracy", "waiting", "staleness", "dropped"],
        [row_of_scheme(name, each) for name, each in summaries.items()],
    )


SUITES = {
    suite.__name__.replace("_", "-"): suite
    for suite in (
        local, libtorch, networks, precision, ssgd, loops, backend, unequal, slowed, overlap, process_group, python, start,
        memory, simulator, latency, rules, push_pull, asynchronous, allreduce, allreduce_tcp, between_hosts, mpi, compress,
    )  # fmt: skip
}


def bfloat16_instructions():
    """Returns the bfloat16 instruction sets of this processor, by the system's names."""
    flags = processor_flags(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return sorted(flags & {"avx512_bf16", "amx_bf16"})


def exchange(result):
    return {"ms": 1e3 * result["median_seconds"]}


def row_of_network(network, batch, results):
    ours, peers = (results[name]["images/s"] for name in ("Syncopate", "PyTorch"))
    relative = statistics.median(ours) / statistics.median(peers)
    return [f"`{network}`", str(batch), with_spread(ours), with_spread(peers), f"{relative:.2f}"]


def row_of_scheme(name, summaries):
    """Returns a row with medians over seeds; the accuracy is a mean with its standard deviation."""

    def median(figure):
        return statistics.median(figure(summary) for summary in summaries)

    def waiting(summary):
        return max(worker["wait_ratio"] for worker in summary["workers"])

    accuracies = [summary["accuracy"] for summary in summaries]
    staleness = [summary["staleness"] for summary in summaries]
    return [
        name,
        f"{median(lambda summary: summary['throughput']):,.0f}",
        f"{100 * median(lambda summary: summary['cluster_efficiency']):.1f} %",
        f"{statistics.mean(accuracies):.4f} ± {statistics.stdev(accuracies):.4f}",
        f"up to {100 * median(waiting):.0f} %",
        f"{statistics.median(each['median'] for each in staleness):.0f}, at most {max(each['max'] for each in staleness)}",
        f"{median(lambda summary: summary['dropped_gradients']):,.0f}",
    ]


def by_rule(rates):
    return {f"GB/s, {rule}": rate for rule, rate in rates.items()}


def resident(result):
    return {"MiB": result["peak_resident_bytes"] / MIB}


def trained(programs, network, workers, options):
    return {"images/s": training(programs, network, workers, options).images_per_second}


def apart(programs, network, workers, options):
    """Returns the total speed of this number of workers if none of them waits for another."""
    with futures.ThreadPoolExecutor(workers) as pool:
        runs = [pool.submit(training, programs, network, 1, options) for _ in range(workers)]
        return {"images/s": sum(run.result().images_per_second for run in runs)}


def worker_memory(programs, network, workers, options):
    return {"MiB": training(programs, network, workers, options).worker_resident_bytes / MIB}


def training(programs, network, workers, options):
    scheme = "local" if workers == 1 else "ssgd"
    return programs.train(
        ["--scheme", scheme, "--network", network, "--workers", workers, "--max-time", options.seconds]
    )


def first_step(programs):
    run = programs.train(["--scheme", "ssgd", "--network", "lenet5", "--workers", 4, "--max-steps", 1])
    return {"seconds": run.first_step_seconds}
