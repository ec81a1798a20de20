#!/usr/bin/python3
"""Goal:   a program in another language can join, exchange values and train through the C interface, and gets a status
        and a message for each mistake.
Method: calls through Python's ctypes, by this process alone and by the programs of `syncopate run` (c_interface.py).
"""
import ctypes
import json
import os
import re
import subprocess
import sys
import threading
import unittest

import jobs
from c_interface import (ANY, BIT_AND, CONFIG_ERROR, FLAGS, FLOAT32, FLOAT64, INT8, LIBRARY, OK, SUM, Failed, JoinOptions, Line,
                         Option, Replica, SchemeTraits, TrainingOptions, everyone, join)

PROGRAM = [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "c_interface.py")]


def last_error():
    return LIBRARY.syncopate_last_error().decode()


class Alone(unittest.TestCase):
    """A job that consists of this process only."""

    def setUp(self):
        self.job = join()
        self.addCleanup(LIBRARY.syncopate_leave, self.job)
        self.everyone = everyone(self.job)

    def assert_refused(self, status, pattern):
        self.assertEqual(status, CONFIG_ERROR)
        self.assertRegex(last_error(), pattern)

    def test_who_it_is(self):
        self.assertEqual(LIBRARY.syncopate_rank(self.job), 0)
        self.assertEqual(LIBRARY.syncopate_worker_count(self.job), 1)
        self.assertRegex(LIBRARY.syncopate_version().decode(), r"^\d+\.\d+\.\d+$")

    def test_collectives(self):
        values = (ctypes.c_double * 3)(1, 2, 3)
        self.assertEqual(LIBRARY.syncopate_allreduce(self.everyone, values, ctypes.c_size_t(3), FLOAT64, SUM, None), OK)
        self.assertEqual(list(values), [1, 2, 3])
        every = (ctypes.c_double * 3)()
        self.assertEqual(LIBRARY.syncopate_allgather(self.everyone, values, ctypes.c_size_t(24), every, None), OK)
        self.assertEqual(list(every), [1, 2, 3])
        work = ctypes.c_void_p()
        self.assertEqual(LIBRARY.syncopate_barrier(self.everyone, ctypes.byref(work)), OK)
        self.assertEqual(LIBRARY.syncopate_work_wait(work), OK)
        self.assertEqual(LIBRARY.syncopate_work_is_done(work), 1)
        LIBRARY.syncopate_work_free(work)

    def described(self, scheme=None, *options):
        traits = SchemeTraits(size=ctypes.sizeof(SchemeTraits))
        array = (Option * len(options))(*options)
        status = LIBRARY.syncopate_describe_scheme(self.job, scheme and scheme.encode(), array, ctypes.c_size_t(len(options)),
                                                   ctypes.byref(traits))
        self.assertEqual(status, OK, last_error())
        return traits

    def test_the_traits_of_schemes(self):
        expected = {
            "local": {"in_lockstep"},
            "ssgd": {"in_rounds", "in_lockstep", "takes_means"},
            "local-sgd": {"in_rounds", "in_lockstep", "local_steps", "takes_means"},
            "diloco": {"in_rounds", "in_lockstep", "local_steps"},
            "esync": {"in_rounds", "local_steps"},
            "nbssgd": {"in_rounds"},
            "asgd": {"pulls_each_step"}, "dc-asgd": {"pulls_each_step"}, "hogwild": {"pulls_each_step"},
            "ssp": {"pulls_each_step", "waits_for_steps"},
            "downpour": {"pulls_some_steps"}, "easgd": {"pulls_some_steps"}}
        for scheme, flags in expected.items():
            traits = self.described(scheme)
            self.assertEqual({flag for flag in FLAGS if getattr(traits, flag)}, flags, scheme)
            self.assertEqual(traits.scheme.decode(), scheme)
        racy = self.described("nbssgd", Option(b"commit", b"racy"))
        self.assertFalse(any(getattr(racy, flag) for flag in FLAGS))
        self.assertEqual(json.loads(racy.options), {"scheme": "nbssgd", "commit": "racy"})
        self.assertEqual(self.described().scheme, b"ssgd")

    def test_what_no_scheme_takes(self):
        traits = SchemeTraits(size=ctypes.sizeof(SchemeTraits))

        def describe(scheme, into, *options):
            array = (Option * len(options))(*options)
            return LIBRARY.syncopate_describe_scheme(self.job, scheme, array, ctypes.c_size_t(len(options)), into)

        self.assert_refused(describe(b"esinc", ctypes.byref(traits)), "esync")
        self.assert_refused(describe(b"ssgd", ctypes.byref(traits), Option(b"pacing", b"paper")), "pacing")
        self.assert_refused(describe(b"ssgd", None), "NULL")
        self.assert_refused(describe(b"ssgd", ctypes.byref(SchemeTraits())), "size is not set")
        cut = SchemeTraits(size=SchemeTraits.in_lockstep.offset)  # the struct of an older program
        self.assertEqual(describe(b"ssgd", ctypes.byref(cut)), OK)
        self.assertEqual((cut.in_rounds, cut.in_lockstep), (1, 0))

    def share_of_fifty(self):
        share = ctypes.c_void_p()
        self.assertEqual(LIBRARY.syncopate_share_open(
            self.job, ctypes.c_uint64(50), ctypes.c_uint64(8), ctypes.byref(share)), OK)
        self.addCleanup(LIBRARY.syncopate_share_close, share)
        self.assertEqual(LIBRARY.syncopate_share_step_size(share), 8)
        return share

    def rest_of_epoch(self, share):
        seen = []
        indices, count = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_size_t(1)
        while count.value:
            self.assertEqual(LIBRARY.syncopate_share_next(share, ctypes.byref(indices), ctypes.byref(count)), OK)
            seen += indices[:count.value]
        return seen

    def test_a_share_has_every_sample_once(self):
        share = self.share_of_fifty()
        orders = [self.rest_of_epoch(share) for _ in range(2)]
        for order in orders:
            self.assertEqual(sorted(order), list(range(50)))
        self.assertNotEqual(orders[0], orders[1])

    def test_a_share_goes_on_where_another_one_was(self):
        first = self.share_of_fifty()
        orders = [self.rest_of_epoch(first) for _ in range(3)]
        for epoch, step in ((2, 0), (1, 3), (1, 6), (0, 1)):
            share = self.share_of_fifty()
            for used in (share, first):  # a new share, and one that has begun
                self.assertEqual(LIBRARY.syncopate_share_resume(used, ctypes.c_uint64(epoch), ctypes.c_uint64(step)), OK)
                self.assertEqual((LIBRARY.syncopate_share_epoch(used), LIBRARY.syncopate_share_step(used)), (epoch, step))
                self.assertEqual(self.rest_of_epoch(used), orders[epoch][8 * step:])
        self.assertEqual(LIBRARY.syncopate_share_resume(share, ctypes.c_uint64(1), ctypes.c_uint64(7)), OK)
        self.assertEqual(LIBRARY.syncopate_share_step(share), 7)  # the epoch has no more steps
        self.assertEqual(self.rest_of_epoch(share), [])
        self.assertEqual(self.rest_of_epoch(share), orders[2])
        steps, samples = ctypes.c_uint64(), ctypes.c_uint64()
        self.assertEqual(LIBRARY.syncopate_share_length(share, ctypes.byref(steps), ctypes.byref(samples)), OK)
        self.assertEqual((steps.value, samples.value), (7, len(orders[2])))
        self.assertEqual(LIBRARY.syncopate_share_length(share, None, None), OK)
        self.assertEqual(LIBRARY.syncopate_share_length(None, None, None), CONFIG_ERROR)
        self.assertEqual(LIBRARY.syncopate_share_resume(None, ctypes.c_uint64(1), ctypes.c_uint64(0)), CONFIG_ERROR)

    def test_a_share_goes_on_at_no_place_that_does_not_exist(self):
        share = self.share_of_fifty()
        resume = lambda epoch, step: LIBRARY.syncopate_share_resume(  # noqa: E731
            share, ctypes.c_uint64(epoch), ctypes.c_uint64(step))
        place = lambda: (LIBRARY.syncopate_share_epoch(share), LIBRARY.syncopate_share_step(share))  # noqa: E731
        self.assertEqual(resume(1, 3), OK)
        for step in (8, 500, 2**64 - 1):
            self.assert_refused(resume(3, step), f"in epoch 3 behind 0 to 7 steps, .* found {step};")
        for epoch, step in ((2**32, 0), (2**64 - 1, 5)):
            self.assert_refused(resume(epoch, step), f"an epoch from 0 to 4294967295, found epoch {epoch};")
        self.assertEqual(place(), (1, 3))
        self.assertEqual(len(self.rest_of_epoch(share)), 50 - 3 * 8)
        self.assertEqual(resume(2**32 - 1, 7), OK)
        self.assertEqual(place(), (2**32 - 1, 7))

    def test_training(self):
        line = Line()
        training = line.start(self.job)
        for _ in range(300):
            line.set_gradient([0, 0.25, 0.5, 1])
            self.assertEqual(LIBRARY.syncopate_training_step(training, 4), OK)
        self.assertEqual(LIBRARY.syncopate_training_finish(training), OK)
        self.assert_refused(LIBRARY.syncopate_training_step(training, 4), "takes no further step")
        LIBRARY.syncopate_training_close(training)
        self.assertAlmostEqual(line.vectors[0][0], 2, places=2)
        self.assertAlmostEqual(line.vectors[0][1], 1, places=2)

    def test_a_pass_that_is_reported(self):
        line = Line()
        training = line.start(self.job, overlap=b"on")
        self.assertEqual(LIBRARY.syncopate_training_overlaps(training), 1)
        ready = lambda first, count: LIBRARY.syncopate_training_gradients_ready(  # noqa: E731
            training, ctypes.c_uint64(first), ctypes.c_uint64(count))
        self.assert_refused(ready(0, 1), "before its pass has begun")
        for _ in range(300):
            line.set_gradient([0, 0.25, 0.5, 1])
            self.assertEqual(LIBRARY.syncopate_training_begin_pass(training, 4), OK)
            self.assertEqual(ready(1, 1), OK)
            self.assertEqual(LIBRARY.syncopate_training_step(training, 4), OK)
        self.assertEqual(LIBRARY.syncopate_training_begin_pass(training, 4), OK)
        self.assert_refused(LIBRARY.syncopate_training_begin_pass(training, 4), "take the step before the next one")
        self.assert_refused(LIBRARY.syncopate_training_step(training, 5), "began with 4 samples, found 5")
        self.assertEqual(LIBRARY.syncopate_training_finish(training), OK)
        self.assert_refused(LIBRARY.syncopate_training_begin_pass(training, 4), "takes no further step")
        LIBRARY.syncopate_training_close(training)
        self.assertAlmostEqual(line.vectors[0][0], 2, places=2)

    def test_null_where_something_is_needed(self):
        size = ctypes.c_size_t(3)
        self.assert_refused(LIBRARY.syncopate_join(None, None), "what the call makes is NULL")
        self.assert_refused(LIBRARY.syncopate_allreduce(None, (ctypes.c_float * 3)(), size, FLOAT32, SUM, None), "group is NULL")
        self.assert_refused(LIBRARY.syncopate_allreduce(self.everyone, None, size, FLOAT32, SUM, None), "values is NULL")
        self.assert_refused(LIBRARY.syncopate_training_step(None, 1), "training is NULL")
        for free in ("leave", "group_close", "host_close", "share_close", "work_free", "training_close", "memory_release"):
            getattr(LIBRARY, "syncopate_" + free)(None)

    def test_null_where_a_value_is_asked_for(self):
        nothing = {"rank": "job", "worker_count": "job", "local_rank": "job", "everyone": "job",
                   "host_coordinator": "host", "host_key": "host", "group_rank": "group", "group_size": "group",
                   "share_step_size": "share", "share_epoch": "share", "share_step": "share", "work_is_done": "work",
                   "training_server_steps": "training", "training_server_moves_all": "training",
                   "training_shares_gradients": "training",
                   "training_overlaps": "training", "training_batch_size": "training"}
        for function, handle in nothing.items():
            with self.subTest(function):
                self.assertFalse(getattr(LIBRARY, "syncopate_" + function)(None))
                self.assertEqual(last_error(), handle + " is NULL")
        self.assertEqual(LIBRARY.syncopate_work_source(None) % 2**32, ANY)
        self.assert_refused(LIBRARY.syncopate_training_may_start(None), "job is NULL")

    def test_a_second_training(self):
        self.assertEqual(LIBRARY.syncopate_training_may_start(self.job), OK)
        training = Line().start(self.job)
        self.addCleanup(LIBRARY.syncopate_training_close, training)
        self.assert_refused(LIBRARY.syncopate_training_may_start(self.job), "a job has one optimizer")

    def test_sizes_that_are_too_large(self):
        for samples, batch, message in ((64, 2**33 + 1, "at most 4294967295 samples in a step, found a batch of 8589934593"),
                                        (2**33, 64, "at most 4294967295 samples, found 8589934592")):
            share = ctypes.c_void_p()
            self.assert_refused(LIBRARY.syncopate_share_open(
                self.job, ctypes.c_uint64(samples), ctypes.c_uint64(batch), ctypes.byref(share)), message)

    def test_lengths_that_no_memory_has(self):
        values, found = (ctypes.c_float * 3)(), (ctypes.c_float * 3)()
        most = ctypes.c_size_t(2**64 - 1)
        half = ctypes.c_size_t(2**63)
        calls = {
            "allreduce": (values, most, FLOAT32, SUM), "reduce": (values, ctypes.c_size_t(2**62), FLOAT32, SUM, 0),
            "reduce_scatter": (values, found, half, INT8, SUM), "broadcast": (values, most, 0),
            "allgather": (values, half, found), "gather": (values, half, found, 0), "scatter": (values, half, found, 0),
            "alltoall": (values, ctypes.byref(most), found, ctypes.byref(most)), "send": (values, most, 0, 0),
            "receive": (values, most, 0, 0)}
        for name, arguments in calls.items():
            with self.subTest(name):
                self.assert_refused(getattr(LIBRARY, "syncopate_" + name)(self.everyone, *arguments, None),
                                    r"^memory has at most 9223372036854775807 bytes, found a length of \d+ ")

    def test_bits_of_floating_values(self):
        values, found = (ctypes.c_double * 3)(), (ctypes.c_double * 3)()
        size = ctypes.c_size_t(3)
        message = "^floating values have no and, or, xor of bits"
        self.assert_refused(LIBRARY.syncopate_allreduce(self.everyone, values, size, FLOAT64, BIT_AND, None), message)
        self.assert_refused(LIBRARY.syncopate_reduce(self.everyone, values, size, FLOAT64, BIT_AND, 0, None), message)
        self.assert_refused(
            LIBRARY.syncopate_reduce_scatter(self.everyone, values, found, size, FLOAT64, BIT_AND, None), message)
        self.assertEqual(LIBRARY.syncopate_allreduce(self.everyone, values, size, INT8, BIT_AND, None), OK)

    def test_values_that_do_not_exist(self):
        values = (ctypes.c_float * 3)()
        self.assert_refused(LIBRARY.syncopate_allreduce(self.everyone, values, ctypes.c_size_t(3), 77, SUM, None), "type .* 77")
        self.assert_refused(LIBRARY.syncopate_allreduce(self.everyone, values, ctypes.c_size_t(3), FLOAT32, 77, None), "operation .* 77")
        share = ctypes.c_void_p()
        self.assert_refused(LIBRARY.syncopate_share_open(
            self.job, ctypes.c_uint64(50), ctypes.c_uint64(0), ctypes.byref(share)), "batch of 0 samples")
        self.assertIsNone(share.value)

    def test_structs_whose_size_is_not_set(self):
        training = ctypes.c_void_p()
        self.assert_refused(LIBRARY.syncopate_training_start(
            self.job, ctypes.byref(Replica()), ctypes.byref(TrainingOptions()), ctypes.byref(training)),
            r"syncopate_replica\.size is not set")

    def test_a_replica_without_callbacks(self):
        replica = Replica(size=ctypes.sizeof(Replica), parameter_count=2)
        options = TrainingOptions(size=ctypes.sizeof(TrainingOptions), batch_size=1)
        training = ctypes.c_void_p()
        self.assert_refused(LIBRARY.syncopate_training_start(
            self.job, ctypes.byref(replica), ctypes.byref(options), ctypes.byref(training)), "callbacks view and take_step")

    def test_options(self):
        def joined_with(*pairs, scheme=None):
            options = (Option * len(pairs))(*(Option(*pair) for pair in pairs))
            return join(JoinOptions(size=ctypes.sizeof(JoinOptions), scheme=scheme, options=options, option_count=len(pairs)))

        LIBRARY.syncopate_leave(joined_with((b"seed", b"7"), scheme=b"esync"))
        for pairs, scheme, message in [([(b"sede", b"7")], None, "did you mean"), ([], b"no-such", "no-such"),
                                       ([(b"seed", b"7"), (b"seed", b"8")], None, "given twice"),
                                       ([(b"epochs", b"7")], None, "decides about"), ([(None, b"7")], None, "NULL")]:
            with self.assertRaisesRegex(Failed, message) as caught:
                joined_with(*pairs, scheme=scheme)
            self.assertEqual(caught.exception.status, CONFIG_ERROR)

    def test_an_older_program_has_a_smaller_struct(self):
        options = JoinOptions(size=2 * ctypes.sizeof(ctypes.c_void_p), scheme=b"ssgd",
                              options=ctypes.cast(1, ctypes.POINTER(Option)), option_count=1 << 40)
        LIBRARY.syncopate_leave(join(options))  # does not read the fields behind `scheme`

    def test_each_thread_has_its_own_error(self):
        LIBRARY.syncopate_training_step(None, 1)
        other = []
        thread = threading.Thread(target=lambda: other.append(last_error()))
        thread.start()
        thread.join()
        self.assertEqual(other, [""])
        self.assertEqual(last_error(), "training is NULL")


class OfALauncher(jobs.JobTest):
    def run_programs(self, workers, *words):
        return self.run_command("run", "-n", workers, "--run-dir", "run", "--", *PROGRAM, *words)

    def run_command(self, *words):
        return subprocess.run([jobs.SYNCOPATE, *map(str, words)], capture_output=True, text=True,
                                   timeout=jobs.LIMIT, check=False, cwd=self.folder)

    def test_every_worker_learns_the_same_line(self):
        for scheme in ("ssgd", "esync", "asgd"):
            with self.subTest(scheme):
                # Emulated devices stay equally fast while other tests run. The steps of each device determine the weights
                # of a round of esync.
                done = self.run_command("run", *self.steady(3), "--run-dir", scheme, "--", *PROGRAM, "train", scheme, 400)
                self.assertEqual(done.returncode, 0, done.stderr)
                found = re.findall(r"worker \d: w (\S+) b (\S+) moved (\d)$", done.stderr, re.MULTILINE)
                self.assertEqual(len(found), 3, done.stderr)
                for w, b, moved in found:
                    self.assertAlmostEqual(float(w), 2, places=1)
                    self.assertAlmostEqual(float(b), 1, places=1)
                    self.assertEqual(moved, "2")  # parameters and gradients, into shared memory of this host
                rounds = re.findall(r"rounds (\d+) to (\d+), samples (\d+)$", done.stderr, re.MULTILINE)
                self.assertEqual(len(rounds), 3, done.stderr)
                for count, last, samples in rounds:
                    self.assertGreater(int(count), 0)
                    self.assertEqual(int(samples), 400 * 4)
                    if scheme == "ssgd":  # rounds of esync overlap, and a worker may be notified of two at once
                        self.assertEqual(count, last)
                if scheme != "asgd":
                    self.assertEqual(len(set(found)), 1)

    def test_a_callback_that_fails_ends_the_job_with_its_reason(self):
        done = self.run_programs(2, "train_or_say", "ssgd", 50, 7)
        said = re.findall(r"\[worker (\d)\] status (\d): (.*)$", done.stderr, re.MULTILINE)
        self.assertEqual(sorted(rank for rank, _, _ in said), ["0", "1"], done.stderr)
        for _, _, message in said:
            self.assertIn("the optimizer of this program has lost its state", message)
        self.assertEqual(done.returncode, 1)

    def test_log_lines_go_to_the_callback_alone(self):
        done = self.run_programs(2, "train_logged", "esync", 20)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = re.findall(r"^\[worker 0\] (.*)$", done.stderr, re.MULTILINE)
        logged = [line for line in lines if re.match(r"log [012]: \S", line)]
        self.assertEqual([line for line in lines if line not in logged], lines[-2:])  # the program's own
        self.assertGreater(len(logged), 0)


if __name__ == "__main__":
    unittest.main()
