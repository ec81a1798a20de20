"""Goal:   with four ranks under the launchers of Open MPI and MPICH, every scheme gives the same model as a simpler scheme
        that is equivalent for the options used.
Method: whole jobs of a small network under a launcher are compared with jobs of synchronous or sequential SGD by
        `syncopate train` alone. The parameters of the last checkpoints must have the same bits if both jobs add in the same
        order, and otherwise agree to 1e-5 of their norm; few steps keep rounding errors small. The network is smooth: a ReLU
        whose input is zero but for rounding would turn an error of 1e-7 into one of 1e-4. If several workers of a
        server would race, three of the four ranks are shards and one is a worker. Ranks cannot share memory, so that they
        exchange everything through MPI's messages. The schemes alternate between the two launchers.
"""
import math
import os
import resource
import struct
import subprocess
import unittest

from jobs import read_safetensors
from launchers import LAUNCHERS, LaunchedTest, by_turns

RANKS = 4
STEPS = 15  # per worker
RATE = 0.05
BATCH = 50
HIDDEN = 256  # units, so that messages are too long for MPI to send them at once
WRITE_SCRIPT = os.environ.get("SYNCOPATE_WRITE_SCRIPT", "syncopate_write_script")
JOB = ["--data", "synthetic", "--batch-size", BATCH, "--max-steps", STEPS, "--eval-every", "never",
       "--checkpoint-every", "1epochs"]
PLAIN = ["--optimizer", "sgd", "--learning-rate", RATE]
TOLERANCE = 1e-5
OPTIMIZERS = ("optimizer.", "outer.", "server.", "worker.")  # prefixes of optimizer state in checkpoints

# ssgd runs under both launchers, since no other scheme covers what it uses.
LAUNCHED = {**by_turns(("local-sgd", "diloco", "esync", "nbssgd", "backup", "ssp", "asgd", "dc-asgd", "downpour", "easgd",
                        "hogwild")), "ssgd": list(LAUNCHERS)}

# Steps are long, so that the pacer's decision for a round arrives before the round's first step has ended.
EVEN_DEVICES = f"""\
name = "even"
batch_samples = {BATCH}
[[devices]]
name = "any"
seconds_per_batch = 0.2
count = {RANKS}
"""


def without_shared_memory():
    """Limits the size of files, so that a node gets no shared memory but MPI and the job can write all their files."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**26, 2**26))


def parameters(tensors):
    """The parameters without optimizer state, which schemes store under different names."""
    return [
        value
        for name, (_, data) in sorted(tensors.items())
        if not name.startswith(OPTIMIZERS)
        for value in struct.unpack(f"<{len(data) // 4}f", data)
    ]


def relative_distance(tensors, others):
    mine, theirs = parameters(tensors), parameters(others)
    return math.dist(mine, theirs) / math.hypot(*theirs)


class LaunchedIdentities(LaunchedTest):
    models_alone = {}  # by options

    def setUp(self):
        super().setUp()
        network = self.folder / "perceptron.pt"
        subprocess.run([WRITE_SCRIPT, network, "perceptron", "10", str(HIDDEN)], check=True, timeout=120)
        self.job = ["--network", network, *JOB]

    def model(self, run_dir):
        return read_safetensors(self.checkpoints(run_dir)[-1])[1]

    def alone(self, *options):
        """The model that `syncopate train` trains without a launcher; once for all tests, since the network is the same."""
        if options not in self.models_alone:
            done = self.train(*self.job, *options, run_dir="alone")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.models_alone[options] = self.model("alone")
        return self.models_alone[options]

    def launched(self, launcher, scheme, *options, ranks=RANKS, workers=RANKS, transport="mpi"):
        run_dir = f"{len(list(self.folder.iterdir()))}-{launcher.replace(' ', '-')}"
        done = self.launch(launcher, ranks, *self.job, "--scheme", scheme, "--transport", transport, *options, run_dir=run_dir,
                           preexec_fn=without_shared_memory)
        self.assert_trained(done, scheme, workers, run_dir)
        summary = self.summary(run_dir)
        self.assertEqual(summary["samples"], STEPS * BATCH * workers)
        return summary, self.model(run_dir)

    def assert_is(self, other, scheme, *options, tolerance=TOLERANCE, transports=("mpi",), **how):
        """Asserts that a launched job of `scheme` gives the model `other`."""
        for launcher in LAUNCHED[scheme]:
            for transport in transports:
                with self.subTest(launcher=launcher, transport=transport):
                    summary, model = self.launched(launcher, scheme, *options, transport=transport, **how)
                    self.assertEqual(summary["local_bytes"], 0, "all that ranks exchange is messages")
                    self.assertGreater(summary["traffic_bytes"], 0)
                    if tolerance == 0:
                        self.assertTrue(model == other, "to the last bit")  # assertEqual would print megabytes
                    else:
                        self.assertLess(relative_distance(model, other), tolerance)

    def test_ssgd_has_the_same_bits_whoever_starts_it(self):
        ring = ["--aggregate", "ring", "--overlap", "off"]
        self.assert_is(self.alone(*ring, "--workers", RANKS), "ssgd", *ring, tolerance=0, transports=("mpi", "tcp"))

    def test_local_sgd_of_one_step_a_round_is_ssgd(self):
        self.assert_is(self.alone("--workers", RANKS), "local-sgd", "--local-steps", 1)

    def test_diloco_of_one_step_a_round_with_a_plain_outer_step_is_ssgd(self):
        self.assert_is(self.alone("--workers", RANKS), "diloco", "--local-steps", 1, "--outer-optimizer", "sgd")

    def test_esync_of_the_paper_on_even_devices_is_ssgd(self):
        cluster = self.folder / "even.toml"
        cluster.write_text(EVEN_DEVICES)
        self.assert_is(self.alone("--workers", RANKS), "esync", "--pacing", "paper", "--overlap", "off", "--cluster", cluster)

    def test_nbssgd_of_whole_batches_is_ssgd(self):
        self.assert_is(self.alone("--workers", RANKS), "nbssgd", "--mini-batches", 1, "--commit", "barrier")

    def test_backup_without_backups_is_ssgd(self):
        self.assert_is(self.alone("--workers", RANKS - 1), "backup", "--backup-workers", 0, workers=RANKS - 1)

    def test_ssp_without_slack_is_ssgd(self):
        """In ssp each gradient is a separate step, in ssgd it is a part of a mean. Hence the smaller learning rate."""
        self.assert_is(self.alone("--workers", RANKS - 1, *PLAIN), "ssp", "--slack", 0, "--optimizer", "sgd",
                       "--learning-rate", RATE / (RANKS - 1), workers=RANKS - 1)

    def assert_is_sequential_through_shards(self, scheme, *options, like=(), transports=("mpi",)):
        self.assert_is(self.alone("--scheme", "local", *like), scheme, "--servers", RANKS - 1, *options, workers=1,
                       transports=transports)

    def test_asgd_of_one_worker_is_sequential(self):
        self.assert_is_sequential_through_shards("asgd", transports=("mpi", "tcp"))

    def test_dc_asgd_of_one_worker_has_no_delay_to_compensate(self):
        self.assert_is_sequential_through_shards("dc-asgd", "--lambda", 2)

    def test_downpour_of_one_worker_and_every_step_is_sequential(self):
        self.assert_is_sequential_through_shards(
            "downpour", "--push-every", 1, "--fetch-every", 1, *PLAIN, "--server-optimizer", "sgd",
            "--server-learning-rate", RATE, like=PLAIN)

    def test_easgd_of_one_worker_that_takes_the_mean_with_its_centre_is_sequential_at_half_the_rate(self):
        """At α = 1/2 worker and centre both become their mean after each step, which halves the step."""
        self.assert_is_sequential_through_shards(
            "easgd", "--local-steps", 1, "--moving-rate", 0.5, "--optimizer", "sgd", "--learning-rate", 2 * RATE, like=PLAIN)

    def test_hogwild_is_one_rank_whose_one_worker_is_sequential(self):
        """`launchers_test` checks that more ranks are refused."""
        sequential = self.alone("--scheme", "local")
        for launcher in LAUNCHED["hogwild"]:
            with self.subTest(launcher=launcher):
                _, model = self.launched(launcher, "hogwild", ranks=1, workers=1, transport="shm")
                self.assertLess(relative_distance(model, sequential), TOLERANCE)


if __name__ == "__main__":
    unittest.main()
