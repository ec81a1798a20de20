"""Goal: `syncopate data --order` prints the order that docs/reference/data-order.md describes, and the page suffices to reproduce it.
Method: the test implements the page's rules in Python, independently of the program, and compares both for several seeds,
workers, shares and epochs."""
import json
import subprocess
import unittest

from jobs import LIMIT, SYNCOPATE, JobTest

SAMPLES = 10_000  # of the synthetic training set
MASK = (1 << 64) - 1

CLUSTER = """name = "two"
[[devices]]
name = "fast"
seconds_per_batch = 0.01
batch_size = 48
[[devices]]
name = "slow"
seconds_per_batch = 0.02
batch_size = 16
"""


def splitmix64(state):
    state = (state + 0x9E3779B97F4A7C15) & MASK
    mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return state, mixed ^ (mixed >> 31)


def rotated(value, bits):
    return ((value << bits) | (value >> (64 - bits))) & MASK


class Random:
    """The generator xoshiro256**."""

    def __init__(self, seed):
        self.seed = seed
        self.words = []
        for _ in range(4):
            seed, word = splitmix64(seed)
            self.words.append(word)

    def fork(self, purpose, index):
        mixed = 0xCBF29CE484222325
        for byte in purpose.encode():
            mixed = ((mixed ^ byte) * 0x100000001B3) & MASK
        return Random((splitmix64(self.seed ^ mixed)[1] + index) & MASK)

    def bits(self):
        word = self.words
        result = (rotated((word[1] * 5) & MASK, 7) * 9) & MASK
        shifted = (word[1] << 17) & MASK
        word[2] ^= word[0]
        word[3] ^= word[1]
        word[1] ^= word[2]
        word[0] ^= word[3]
        word[2] ^= shifted
        word[3] = rotated(word[3], 45)
        return result

    def below(self, bound):
        threshold = (1 << 64) % bound
        while True:
            product = self.bits() * bound
            if product & MASK >= threshold:
                return product >> 64

    def shuffle(self, values):
        for left in range(len(values), 1, -1):
            other = self.below(left)
            values[left - 1], values[other] = values[other], values[left - 1]


def part_sizes(samples, shares):
    quotas = [samples * share / sum(shares) for share in shares]
    sizes = [int(quota) for quota in quotas]
    by_fraction = sorted(range(len(shares)), key=lambda rank: -(quotas[rank] - sizes[rank]))
    for rank in by_fraction[:samples - sum(sizes)]:
        sizes[rank] += 1
    return sizes


def expected_order(seed, batch_sizes, rank, epoch, shares=None):
    order = list(range(SAMPLES))
    Random(seed).fork("order of samples", epoch).shuffle(order)
    sizes = part_sizes(SAMPLES, shares or batch_sizes)
    begin = sum(sizes[:rank])
    part = order[begin:begin + sizes[rank]]
    steps = max(-(-size // batch) for size, batch in zip(sizes, batch_sizes))
    return [part[step * batch_sizes[rank]:(step + 1) * batch_sizes[rank]] for step in range(steps)]


class DataOrder(JobTest):
    def data(self, *options):
        return subprocess.run([str(word) for word in (SYNCOPATE, "data", "--data", "synthetic", *options)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)

    def printed(self, *options):
        done = self.data("--order", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [[int(sample) for sample in line.split()] for line in done.stdout.splitlines()]

    def test_the_order_is_the_one_of_the_page(self):
        for seed, workers, rank, epoch in ((1, 4, 1, 0), (1, 4, 3, 2), (7, 1, 0, 0), (0, 3, 2, 5), (123_456_789_012, 7, 6, 1)):
            with self.subTest(seed=seed, workers=workers, rank=rank, epoch=epoch):
                found = self.printed("--seed", seed, "--workers", workers, "--rank", rank, "--epoch", epoch,
                                     "--batch-size", 32)
                self.assertEqual(found, expected_order(seed, [32] * workers, rank, epoch))

    def test_parts_follow_the_batch_sizes_of_a_cluster(self):
        cluster = self.folder / "two.toml"
        cluster.write_text(CLUSTER)
        for rank in range(2):
            self.assertEqual(self.printed("--cluster", cluster, "--rank", rank, "--seed", 5),
                             expected_order(5, [48, 16], rank, 0))

    def test_parts_follow_the_speeds_of_a_cluster_whose_devices_go_on_at_their_own(self):
        cluster = self.folder / "two.toml"
        cluster.write_text(CLUSTER)
        for scheme in ("esync", "nbssgd"):
            for rank in range(2):
                with self.subTest(scheme=scheme, rank=rank):
                    self.assertEqual(self.printed("--scheme", scheme, "--cluster", cluster, "--rank", rank, "--seed", 5),
                                     expected_order(5, [48, 16], rank, 0, shares=[6400, 3200]))
        for scheme in ("local-sgd", "asgd"):
            with self.subTest(scheme=scheme):
                self.assertEqual(self.printed("--scheme", scheme, "--cluster", cluster, "--rank", 1, "--seed", 5),
                                 expected_order(5, [48, 16], 1, 0))

    def test_json_names_the_settings_of_the_order(self):
        done = self.data("--order", "--workers", 2, "--rank", 1, "--epoch", 3, "--seed", 4, "--json")
        found = json.loads(done.stdout)
        self.assertEqual(found.pop("batches"), expected_order(4, [64, 64], 1, 3))
        self.assertEqual(found, {"data": "synthetic", "seed": 4, "workers": 2, "rank": 1, "epoch": 3, "batch_size": 64})

    def test_a_dataset_is_described(self):
        found = json.loads(self.data("--json").stdout)
        self.assertEqual((found["training_samples"], found["classes"], found["shape"]), (SAMPLES, 10, [1, 28, 28]))
        self.assertIn("synthetic", self.data().stdout)

    def test_absent_ranks_and_epochs_are_refused(self):
        self.assert_refused(self.data("--order", "--workers", 2, "--rank", 2), "--rank", "below 2 workers")
        self.assert_refused(self.data("--order", "--epoch", "x"), "--epoch", "whole number")
        self.assert_refused(self.data("--rank", 0), "--rank has no effect without --order")


if __name__ == "__main__":
    unittest.main()
