"""The suite of compressed gradients: steps of ResNet-18 over a slow link, and the accuracy that each codec costs."""
import json
import statistics
import subprocess

from hosts import two_hosts
from measuring import ROOT, Contestant, interleave, table, with_spread

CODECS = ("none", "bf16", "fp16", "int8", "onebit", "topk:0.01", "topk:0.01/2bit")
BATCH, STEPS = 4, 6
COORDINATOR = "10.84.0.1:9092"
SEEDS = (1, 2, 3)
EPOCHS = 3
OPTIMIZERS = ("sgd", "momentum")


def steps(programs, hosts, codec):
    """Returns the steps per second of two workers, one on each host, and the megabytes that a worker sends in a step."""
    workers = []
    for rank, host in enumerate(hosts):
        own = f"10.84.0.{rank + 1}:0"
        command = [programs.bin / "compress_rank", rank, len(hosts), COORDINATOR, own, "resnet18-v1", BATCH, codec, STEPS]
        workers.append(
            subprocess.Popen(
                host.words(*command), stdout=subprocess.PIPE, text=True, env=programs.environment
            )
        )
    outputs = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        raise SystemExit(f"compress: a worker of {codec} has failed")
    result = json.loads(outputs[0])
    return {
        "steps/s": STEPS / sum(result["seconds"]),
        "MB": result["bytes_sent"] / STEPS / 1e6,
    }


def accuracy(programs, codec, optimizer):
    """Returns the accuracy of LeNet-5 on Fashion-MNIST after some epochs of ssgd with five workers: real gradients in
    virtual time."""
    runs = [
        programs.job(
            ["--scheme", "ssgd", "--network", "lenet5", "--cluster", ROOT / "clusters/ratio-1.toml", "--virtual-time",
             "--epochs", EPOCHS, "--schedule", "cosine", "--schedule-factor", 0, "--batch-size", 32,
             "--seed", seed, "--optimizer", optimizer, "--compress", codec]
        )
        for seed in SEEDS
    ]  # fmt: skip
    for seed, run in zip(SEEDS, runs):
        print(f"  {codec}, {optimizer}, seed {seed}: accuracy {run['accuracy']:.4f}")
    return runs


def compress(programs, options):
    """Compressed gradients: two workers of ResNet-18 over 100 Mbit/s, and accuracy of LeNet-5 after equal samples."""
    with two_hosts("100mbit", "64kb") as hosts:
        results = interleave(
            [Contestant(codec, lambda codec=codec: steps(programs, hosts, codec)) for codec in CODECS], options.rounds
        )
    yield (
        "Steps: ssgd of ResNet-18, two workers of one thread in network namespaces joined by 100 Mbit/s each way\n"
        f"(`tc tbf`), {BATCH} samples each, {STEPS} steps a run. Accuracy: LeNet-5 on Fashion-MNIST, five workers of 32 samples\n"
        f"each, {EPOCHS} epochs with a cosine schedule, usual rates, {len(SEEDS)} seeds: mean and standard deviation. Error: that of\n"
        "the codec in the job with plain SGD, relative to the norm of the encoded values.\n"
    )
    baseline = statistics.median(results["none"]["steps/s"])
    yield table(
        ["", "steps/s", "relative", "MB sent a step", "accuracy, plain SGD", "accuracy, momentum 0.9", "error"],
        [row(codec, results[codec], baseline, {each: accuracy(programs, codec, each) for each in OPTIMIZERS})
         for codec in CODECS],
    )  # fmt: skip


def row(codec, figures, baseline, runs):
    def mean(optimizer):
        accuracies = [run["accuracy"] for run in runs[optimizer]]
        return f"{statistics.mean(accuracies):.4f} ± {statistics.stdev(accuracies):.4f}"

    of_worker = runs["sgd"][0]["workers"][0]["compression"]
    return [
        codec,
        with_spread(figures["steps/s"]),
        f"{statistics.median(figures['steps/s']) / baseline:.1f}",
        with_spread(figures["MB"]),
        *map(mean, OPTIMIZERS),
        f"{100 * of_worker['relative_error']:.2g} %" if of_worker else "0",
    ]
