"""Goal: bad input ends with one clear line and exit status 2, before anything is written.
Method: damaged datasets, impossible clusters, folders in use, a full disk; damaged checkpoints, from which a job resumes at
the last undamaged one."""
import gzip
import json
import signal
import struct
import subprocess
import unittest
import zlib

import privileges
from jobs import LIMIT, SMALL, SYNCOPATE, JobTest, read_safetensors


def idx_images(count, rows=28, columns=28, magic=0x803):
    return struct.pack(">IIII", magic, count, rows, columns) + bytes(count * rows * columns)


def idx_labels(labels, magic=0x801):
    return struct.pack(">II", magic, len(labels)) + bytes(labels)


def checksums(content):
    """Returns the checksum that a checkpoint holds, and the one computed from its content as its documentation says."""
    end = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:end])
    written = header["__metadata__"].pop("crc32")
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return written, f"{zlib.crc32(content[end:], zlib.crc32(text.encode())):08x}"


class Refusals(JobTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        self.data.mkdir()
        self.put("train-images-idx3-ubyte.gz", gzip.compress(idx_images(100)))
        self.put("train-labels-idx1-ubyte.gz", gzip.compress(idx_labels([i % 10 for i in range(100)])))
        self.put("t10k-images-idx3-ubyte.gz", gzip.compress(idx_images(20)))
        self.put("t10k-labels-idx1-ubyte.gz", gzip.compress(idx_labels([i % 10 for i in range(20)])))

    def put(self, name, content):
        (self.data / name).write_bytes(content)

    def train_on_data(self):
        done = self.train("--network", "mlp", "--data", "mnist", "--data-dir", self.data, "--max-steps", "1")
        return done

    def assert_data_refused(self, *words):
        self.assert_refused(self.train_on_data(), *words)
        self.assertFalse((self.folder / "run").exists())

    def test_whole_data_is_accepted(self):
        done = self.train_on_data()
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_truncated_gzip(self):
        path = self.data / "train-images-idx3-ubyte.gz"
        path.write_bytes(path.read_bytes()[:-20])
        self.assert_data_refused("train-images-idx3-ubyte.gz")

    def test_wrong_magic(self):
        self.put("train-images-idx3-ubyte.gz", gzip.compress(idx_images(100, magic=0x123)))
        self.assert_data_refused("train-images-idx3-ubyte.gz")

    def test_wrong_count(self):
        self.put("train-labels-idx1-ubyte.gz", gzip.compress(idx_labels([1] * 99)))
        self.assert_data_refused("99", "100")

    def test_label_out_of_range(self):
        self.put("t10k-labels-idx1-ubyte.gz", gzip.compress(idx_labels([10] * 20)))
        self.assert_data_refused("t10k-labels-idx1-ubyte.gz", "10")

    def test_missing_file(self):
        (self.data / "t10k-images-idx3-ubyte.gz").unlink()
        self.assert_data_refused("t10k-images-idx3-ubyte")

    def test_images_too_small_for_the_network(self):
        done = self.train("--network", "alexnet", "--data", "synthetic", "--workers", "2")
        self.assert_refused(done, "alexnet for images of 28x28: expected at least 63x63", "--resize 63")
        self.assertFalse((self.folder / "run").exists())

    def test_a_cluster_that_the_machine_cannot_pace(self):
        cluster = self.folder / "cluster.toml"
        cluster.write_text('name = "light"\n[[devices]]\nname = "light"\nseconds_per_batch = 1e-5\n')
        done = self.train("--network", "lenet5", "--data", "synthetic", "--cluster", cluster)
        self.assert_refused(done, "cannot pace", "--time-scale")
        self.assertFalse((self.folder / "run").exists())

    def test_a_folder_that_holds_a_run(self):
        self.assertEqual(self.train(*SMALL, "--max-steps", "1").returncode, 0)
        self.assert_refused(self.train(*SMALL, "--max-steps", "1"), "already holds a run", "--resume")

    def resume(self, *options):
        return subprocess.run(
            [SYNCOPATE, "train", "--resume", str(self.folder / "run"), *options],
            capture_output=True, text=True, timeout=LIMIT, check=False,
        )

    def test_a_folder_that_a_running_job_writes(self):
        job = self.start(*SMALL, "--epochs", "1000")
        job.wait_for_round(1)
        message = f"{self.folder / 'run'} is in use: a job writes it, process {job.process.pid} on "
        self.assert_refused(self.train(*SMALL, "--max-steps", "1"), message)
        self.assert_refused(self.resume("--max-steps", "1"), message)
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish()[0], 130)
        self.assertFalse((self.folder / "run" / "run.lock").exists())

    def test_a_damaged_checkpoint_is_named_and_the_one_before_it_taken(self):
        self.train(*SMALL, "--max-steps", "4", "--checkpoint-every", "2steps")
        before, newest = self.checkpoints()[-2:]
        content = bytearray(newest.read_bytes())
        self.assertEqual(*checksums(content))
        content[-1] ^= 1
        newest.write_bytes(content)
        half = newest.with_name("round-0000000009.safetensors.4711.tmp")
        half.write_bytes(content[:1000])
        done = self.resume("--max-steps", "6", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        first = done.stderr.splitlines()[0]
        self.assertIn(f"syncopate: {newest} is not a whole safetensors file: its checksum is ", first)
        self.assertIn(f"; it is now {newest.name}.damaged; the run goes on from {before.name}", first)
        self.assertEqual(read_safetensors(self.checkpoints()[-1])[0]["round"], "6")
        self.assertFalse(half.exists())

    def test_a_run_without_a_whole_checkpoint(self):
        self.train(*SMALL, "--max-steps", "1")
        for checkpoint in self.checkpoints():
            checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
        self.assert_resume_refused("is not a whole safetensors file", "has no checkpoint")

    def assert_resume_refused(self, *texts, options=()):
        """Asserts that a resume is refused and leaves the files of the run unchanged."""
        run = self.folder / "run"
        files = ["config.toml", "evaluations.jsonl", "summary.json"]
        before = [(run / name).read_bytes() for name in files]
        self.assert_refused(self.resume("--max-steps", "2", *options), *texts)
        self.assertEqual([(run / name).read_bytes() for name in files], before)

    def test_a_run_whose_data_have_gone(self):
        self.train("--network", "mlp", "--data", "fashion-mnist", "--max-steps", "1")
        self.assert_resume_refused("/nonexistent", options=("--data-dir", "/nonexistent"))

    def test_a_run_whose_loss_overflows_its_counter_goes_on(self):
        overflow = ["--scheme", "asgd", "--learning-rate", "1e6", "--max-steps", "3", "--on-nan", "skip"]
        done = self.train(*SMALL, *overflow)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read_safetensors(self.checkpoints()[-1])[0]["server.0.loss"], "9000000000000000000")
        done = self.resume("--max-steps", "6")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_file_beyond_the_limit_ends_the_job_in_a_line(self):
        limited = ["bash", "-c", 'ulimit -f 200; exec "$0" "$@"']  # blocks of 1024 bytes
        done = self.train("--network", "lenet5", "--data", "synthetic", "--max-steps", "1", through=limited)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(".safetensors: File too large; raise the limit on the size of files (ulimit -f)", done.stderr)
        self.assertNotIn("signal", done.stderr)
        self.assertEqual(list((self.folder / "run" / "checkpoints").glob("*.tmp")), [])

    def test_a_gzip_of_many_zeros_is_not_unpacked(self):
        zeros = gzip.compress(bytes(1 << 20), 1) * 4096  # 4 GiB in about 20 MB
        header = gzip.compress(struct.pack(">IIII", 0x803, 5_478_274, 28, 28))
        self.put("train-images-idx3-ubyte.gz", header + zeros)
        self.assert_data_refused("train-images-idx3-ubyte.gz", "5478274", "at most 4194304 images")

    def test_a_full_disk_ends_the_job_and_leaves_no_half_file(self):
        disk = self.folder / "disk"
        disk.mkdir()
        copy = self.folder / "copy"
        # The disk is a tmpfs in a mount namespace that ends with the job, so the script copies its content.
        script = (
            f"mount -t tmpfs -o size=400k tmpfs {disk} && {SYNCOPATE} train --network lenet5 "
            f"--data synthetic --workers 2 --max-steps 2 --run-dir {disk}/run; status=$?; "
            f"cp -r {disk} {copy}; exit $status"
        )
        done = subprocess.run(
            [*privileges.mounts().require(), "sh", "-c", script], capture_output=True, text=True, timeout=LIMIT, check=False
        )
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("No space left on device", done.stderr)
        # The checkpoint of round 0 has no optimizer state, so it fits on the disk.
        (first,) = (copy / "run" / "checkpoints").iterdir()
        self.assertEqual(read_safetensors(first)[0]["round"], "0")
        self.assertTrue((copy / "run" / "config.toml").exists())


if __name__ == "__main__":
    unittest.main()
