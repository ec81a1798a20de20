"""Goal: `syncopate data` describes a user's own data and the part of each worker, and refuses bad data in one line.
Method: the test writes small arrays byte by byte and compares the printed JSON and tables."""
import json
import struct
import subprocess
import unittest
import zlib

from jobs import LIMIT, SYNCOPATE, JobTest


def npy(kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(values)


class Data(JobTest):
    def setUp(self):
        super().setUp()
        self.arrays = self.folder / "arrays"
        self.arrays.mkdir()
        for name, count in (("train", 12), ("test", 4)):
            (self.arrays / f"{name}_images.npy").write_bytes(npy("|u1", (count, 2, 1, 3), [10, 20, 30, 20, 20, 20] * count))
            (self.arrays / f"{name}_labels.npy").write_bytes(npy("|u1", (count,), [label % 4 // 2 for label in range(count)]))

    def data(self, *options):
        return subprocess.run([str(word) for word in (SYNCOPATE, "data", "--data", f"{self.arrays}/", *options)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)

    def test_files_of_cifar_have_checksums(self):
        files = {f"data_batch_{number}.bin": bytes([number]) * 3073 for number in range(1, 6)}
        files["test_batch.bin"] = bytes(3073)
        for name, data in files.items():
            (self.folder / name).write_bytes(data)
        command = [SYNCOPATE, "data", "--data", "cifar10", "--data-dir", str(self.folder)]
        lines = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True).stdout.splitlines()
        found = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=LIMIT,
                                          check=True).stdout)["files"]
        for file, (name, data) in zip(found, files.items(), strict=True):
            self.assertEqual((file["path"], file["bytes"]), (str(self.folder / name), 3073))
            self.assertEqual(file["crc32"], f"{zlib.crc32(data):08x}")
            self.assertTrue(any(line.split() == [name, "3,073", file["crc32"]] for line in lines), lines)

    def test_arrays_are_described_class_by_class(self):
        found = json.loads(self.data("--json").stdout)
        self.assertEqual((found["training_samples"], found["test_samples"], found["classes"]), (12, 4, 2))
        self.assertEqual(found["shape"], [2, 1, 3])
        self.assertEqual(found["training_samples_by_class"], [6, 6])
        self.assertEqual(found["test_samples_by_class"], [2, 2])
        for value, expected in zip(found["mean"], (20 / 255, 20 / 255)):
            self.assertAlmostEqual(value, expected, places=6)
        self.assertAlmostEqual(found["standard_deviation"][0], 8.1649658 / 255, places=6)
        self.assertEqual(found["standard_deviation"][1], 1, "a channel without differences")
        self.assertNotIn("parts", found)
        lines = self.data().stdout.splitlines()
        self.assertIn("2x1x3", lines[1])
        self.assertIn("0.0784, 0.0784", lines[1])
        self.assertEqual([line.split() for line in lines[4:6]], [["0", "6", "2"], ["1", "6", "2"]])

    def test_parts_are_those_of_the_options(self):
        def parts(*options):
            return json.loads(self.data("--json", "--batch-size", "1", *options).stdout)["parts"]

        self.assertEqual([part["samples"] for part in parts("--workers", "3", "--shares", "3,2,1")], [6, 4, 2])
        self.assertEqual([part["samples_by_class"] for part in parts("--workers", "2", "--split", "class")], [[6, 0], [0, 6]])
        drawn = parts("--workers", "2", "--split", "dirichlet:0.5")
        self.assertEqual([sum(counts) for counts in zip(*(part["samples_by_class"] for part in drawn))], [6, 6])
        self.assertIn("Part of each worker, split class", self.data("--workers", "2", "--split", "class").stdout)

    def test_bad_data_and_shares_are_refused(self):
        self.assert_refused(self.data("--workers", "2", "--shares", "1,1,1"), "shares 1,1,1 lists 3 shares for 2 workers")
        self.assert_refused(self.data("--image-size", "8"), "image size has no effect on the arrays")
        (self.arrays / "test_labels.npy").write_bytes(npy("|u1", (4,), [0, 1, 2, 0]))
        self.assert_refused(self.data(), "test_labels.npy", "expected labels from 0 to 1, found 2 at sample 2")


if __name__ == "__main__":
    unittest.main()
