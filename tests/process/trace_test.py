"""Goal: TensorBoard and Perfetto can read the files of a run: event files follow their format, and the slices, arrows and
instants of the trace are consistent; `syncopate trace` makes the trace of a job that was killed.
Method: a job in virtual time and a real one; the test parses the files independently of the code that writes them. If the
Python of these tests has TensorBoard (pip install tensorboard), that reads the event file, too."""
import gzip
import json
import os
import signal
import struct
import subprocess
import unittest

from jobs import SMALL, SYNCOPATE, JobTest, descendants, wait_until_gone

PYTHON = os.environ["SYNCOPATE_PYTHON"]
DEBIANS_PYTHON = "/usr/bin/python3"  # Debian has no TensorBoard for it

# Prints {tag: [[step, value], ...]} of the event files in a folder. The size guidance 0 keeps every value.
READ_BY_TENSORBOARD = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
print(json.dumps({tag: [[one.step, one.value] for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
"""

CLUSTER = """name = "two"
batch_samples = 64
[[devices]]
name = "fast"
seconds_per_batch = 0.1
[[devices]]
name = "slow"
seconds_per_batch = 0.3
"""


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    """Yields the records of a TFRecord file and checks their checksums."""
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked_crc32c(data[:8])
        record = data[12 : 12 + length]
        assert struct.unpack("<I", data[12 + length : 16 + length])[0] == masked_crc32c(record)
        yield record
        data = data[16 + length :]


def fields(message):
    """Yields the number and the value of each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            value = message[at : at + size]
            at += size
        yield key >> 3, value


def scalars(path):
    """The curves of an event file: {tag: [(step, value)]}."""
    curves = {}
    for record in records(path):
        event = dict(fields(record))
        for number, value in fields(event.get(5, b"")):
            if number == 1:
                scalar = dict(fields(value))
                curves.setdefault(scalar[1].decode(), []).append((event.get(2, 0), struct.unpack("<f", scalar[2])[0]))
    return curves


class Traces(JobTest):
    def simulate(self, *options):
        cluster = self.folder / "cluster.toml"
        cluster.write_text(CLUSTER)
        done = self.train("--network", "mlp", "--data", "synthetic", "--scheme", "esync", "--cluster", cluster,
                          "--virtual-time", "--max-steps", 40, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / "run"

    def trace(self, run_dir):
        """The trace's events, by kind."""
        with gzip.open(run_dir / "trace.json.gz") as file:
            trace = json.load(file)
        kinds = {}
        for event in trace["traceEvents"]:
            kinds.setdefault(event["ph"], []).append(event)
        return kinds

    def test_event_files_have_the_curves_of_the_run(self):
        run = self.simulate()
        [path] = run.glob("events.out.tfevents.*")
        curves = scalars(path)
        evaluations = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
        self.assertEqual([step for step, _ in curves["evaluation/accuracy"]], [line["round"] for line in evaluations])
        for (_, value), line in zip(curves["evaluation/accuracy"], evaluations, strict=True):
            self.assertAlmostEqual(value, line["accuracy"], places=6)
        self.assertIn("training/throughput", curves)
        self.assertIn("computing_time_ratio/worker 1 (slow (simulated))", curves)

    if PYTHON != DEBIANS_PYTHON:
        def test_tensorboard_reads_the_steps_and_values_of_every_curve(self):
            if subprocess.run([PYTHON, "-c", "import tensorboard"], capture_output=True, check=False).returncode != 0:
                self.skipTest(f"{PYTHON} has no tensorboard (pip install tensorboard)")
            run = self.simulate("--eval-every", "0.05epochs")
            done = subprocess.run([PYTHON, "-c", READ_BY_TENSORBOARD, str(run)], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            read = {tag: [tuple(point) for point in curve] for tag, curve in json.loads(done.stdout).items()}
            [path] = run.glob("events.out.tfevents.*")
            self.assertEqual(read, scalars(path))
            evaluations = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
            self.assertGreater(len(evaluations), 1)
            self.assertEqual([(step, round(value, 5)) for step, value in read["evaluation/accuracy"]],
                             [(line["round"], round(line["accuracy"], 5)) for line in evaluations])

    def test_a_trace_adds_up(self):
        run = self.simulate("--trace", "steps")
        kinds = self.trace(run)
        names = {event["pid"]: event["args"]["name"] for event in kinds["M"] if event["name"] == "process_name"}
        threads = {(event["pid"], event["tid"]): event["args"]["name"] for event in kinds["M"]
                   if event["name"] == "thread_name"}
        for rank, device in enumerate(("fast", "slow")):
            [pid] = [pid for pid, name in names.items() if name.startswith(f"worker {rank}: {device}")]
            last = json.loads((run / "workers" / f"{rank}.jsonl").read_text().splitlines()[-1])
            computed = sum(event["dur"] for event in kinds["X"] if event["pid"] == pid and
                           threads[pid, event["tid"]] == "compute" and event["args"]["round"] <= last["round"])
            self.assertAlmostEqual(computed / 1e6, last["compute_seconds"], places=5)
        self.assertEqual(sorted(event["id"] for event in kinds["s"]), sorted(event["id"] for event in kinds["f"]))
        instants = {event["name"] for event in kinds["i"]}
        self.assertIn("worker 0 joined", instants)
        self.assertIn("evaluation", instants)

    def test_the_trace_of_a_job_that_was_killed_is_made_later(self):
        job = self.start(*SMALL, "--epochs", 1000)
        job.wait_for("status", lambda event: event["training_seconds"] > 2)
        processes = descendants(job.process.pid)
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
        job.process.wait()
        wait_until_gone(processes[1:])
        self.assertFalse((job.run_dir / "trace.json.gz").exists())
        done = subprocess.run([SYNCOPATE, "trace", str(job.run_dir), "--json"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["processes"], 3)
        kinds = self.trace(job.run_dir)
        self.assertGreater(len(kinds["X"]), 100)

    def test_esyncs_tools_read_what_is_exported(self):
        run = self.simulate()
        out = self.folder / "logs"
        done = subprocess.run([SYNCOPATE, "export", "esync-logs", str(run), "--out", str(out)], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in (0, 1):
            [folder] = out.glob(f"*/worker{rank}")
            lines = [json.loads(line) for line in (run / "workers" / f"{rank}.jsonl").read_text().splitlines()]
            for number, line in enumerate(lines, 1):
                report = json.loads((folder / f"iter-{number}.txt").read_text())
                last = report["time"][str(max(map(int, report["time"])))]
                self.assertIn("global update", last)
                self.assertEqual(report["num_samples"], line["own_samples"])
        again = subprocess.run([SYNCOPATE, "import", "esync-logs", str(out), "--out", str(self.folder / "again")],
                               capture_output=True, text=True, check=False)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.summary("again")["samples"], lines[-1]["samples"])

    def test_a_folder_without_spans_is_refused(self):
        for folder, words in ((self.folder, "found none"), (self.folder / "none", "found no folder")):
            done = subprocess.run([SYNCOPATE, "trace", str(folder)], capture_output=True, text=True, check=False)
            self.assert_refused(done, words)


if __name__ == "__main__":
    unittest.main()
