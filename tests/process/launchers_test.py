"""Goal:   ranks that an MPI launcher starts train the same job as `syncopate train` alone, over MPI or over sockets; they
        fail together, and an error message explains each mistake in the launch command.
Method: real launchers of Open MPI and MPICH, real jobs, real signals. `launched_identities_test` compares the
        models.
"""
import itertools
import os
import signal
import subprocess
import unittest
from concurrent import futures

from jobs import LIMIT, SYNCOPATE, descendants, wait_until_gone
from launchers import LAUNCHERS, LaunchedTest, through

SMALL = ["--network", "mlp", "--data", "synthetic"]
ONE_EPOCH = [*SMALL, "--epochs", "1", "--batch-size", "50", "--checkpoint-every", "1epochs"]


class LaunchersTest(LaunchedTest):
    def test_mpi_may_add_up_itself(self):
        for number, launcher in enumerate(LAUNCHERS):
            for scheme in ("ssgd", "esync"):
                with self.subTest(launcher=launcher, scheme=scheme):
                    run_dir = f"{scheme}-{number}"
                    done = self.launch(launcher, 3, *ONE_EPOCH, "--scheme", scheme, "--aggregate", "mpi", run_dir=run_dir)
                    self.assert_trained(done, scheme, 3, run_dir)
                    self.assertIn("mpi", self.summary(run_dir)["aggregate"])

    def test_the_usual_transport_may_be_named(self):
        self.assert_trained(self.launch("MPICH", 2, *ONE_EPOCH, "--transport", "auto"), "ssgd", 2)

    def test_several_servers_are_the_first_ranks(self):
        done = self.launch("MPICH", 5, *ONE_EPOCH, "--scheme", "nbssgd", "--aggregate", "server", "--servers", "2")
        self.assert_trained(done, "nbssgd", 3)
        self.assertIn("server 1", done.stdout)

    def test_messages_need_no_shared_memory(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher=launcher):
                run_dir = launcher.replace(" ", "-")
                done = self.launch(launcher, 3, *ONE_EPOCH, "--transport", "mpi", "--aggregate", "ring", run_dir=run_dir)
                self.assert_trained(done, "ssgd", 3, run_dir)

    def assert_printed_once(self, done, reason, by="syncopate: "):
        self.assertEqual(done.returncode, 2, done.stderr)
        lines = [line for line in done.stderr.splitlines() if reason in line]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertIn(by + reason, lines[0])

    def test_an_error_of_all_ranks_is_printed_once(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher=launcher):
                done = self.launch(launcher, 4, *SMALL, "--workers", "7")
                self.assert_printed_once(done, "7 workers do not fit 4 ranks; leave out workers")
                self.assert_printed_once(self.launch(launcher, 4, *SMALL, "--workerz", "7"), "unknown option --workerz")
                self.assertFalse((self.folder / "run").exists())

    def test_an_error_of_one_rank_is_printed_by_it_and_ends_all(self):
        def with_an_error(ranks):
            launcher, transport = ranks
            job = [SYNCOPATE, "train", "--run-dir", self.folder / "-".join(ranks), *SMALL, "--transport", transport]
            words = [*through(launcher, 2), *job, ":", "-n", "1", *job, "--data-dir", "x"]
            return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT)

        cases = list(itertools.product(LAUNCHERS, ("mpi", "tcp")))
        with futures.ThreadPoolExecutor() as all_at_once:  # each launcher takes seconds to end the other ranks
            ends = list(all_at_once.map(with_an_error, cases))
        for (launcher, transport), done in zip(cases, ends):
            with self.subTest(launcher=launcher, transport=transport):
                self.assert_printed_once(done, "--data-dir has no effect", by="syncopate: rank 2: ")

    def test_an_error_of_rank_zero_alone_ends_all(self):
        (self.folder / "run").mkdir()
        (self.folder / "run/config.toml").write_text("")
        for launcher in LAUNCHERS:
            for transport in ("mpi", "tcp"):
                with self.subTest(launcher=launcher, transport=transport):
                    done = self.launch(launcher, 3, *SMALL, "--transport", transport)
                    self.assert_printed_once(done, f"{self.folder}/run already holds a run")

    def test_a_scheme_of_one_process_is_refused(self):
        self.assertIn("scheme hogwild needs memory that all workers share",
                      self.launch("MPICH", 2, *SMALL, "--scheme", "hogwild").stderr)
        self.assertIn("--server-process shared has no effect",
                      self.launch("MPICH", 2, *SMALL, "--scheme", "asgd", "--server-process", "shared").stderr)

    def test_mpi_without_its_launcher_is_refused(self):
        self.assert_refused(self.train(*SMALL, "--workers", "2", "--transport", "mpi"), "transport mpi", "mpirun")
        self.assert_refused(self.train(*SMALL, "--workers", "2", "--aggregate", "mpi"), "aggregate mpi", "mpirun")

    def test_ranks_that_do_not_come_together_are_told_why(self):
        """The process has the environment of a launcher but no launcher, as if another MPI had started it."""
        forged = {**os.environ, "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "1", "PMIX_RANK": "1"}
        done = self.train(*SMALL, "--transport", "mpi", env=forged)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("4", done.stderr)
        self.assertIn("rank", done.stderr)

    def test_a_module_that_is_not_there_is_named(self):
        nowhere = {**os.environ, "SYNCOPATE_MPI_MODULES": str(self.folder)}
        for option in ("--transport", "--aggregate"):
            with self.subTest(option):
                done = self.launch("MPICH", 2, *SMALL, option, "mpi", env=nowhere)
                self.assert_printed_once(done, "expected the module for MPICH, syncopate-mpi-mpich.so")
                self.assertIn("libmpich-dev", done.stderr)

    def test_without_a_module_ranks_of_one_host_meet_over_sockets(self):
        nowhere = {**os.environ, "SYNCOPATE_MPI_MODULES": str(self.folder)}
        self.assert_trained(self.launch("MPICH", 2, *ONE_EPOCH, env=nowhere), "ssgd", 2)

    def test_a_killed_rank_ends_the_job(self):
        for launcher in LAUNCHERS:
            for transport in ("mpi", "tcp"):
                with self.subTest(launcher=launcher, transport=transport):
                    self.kill_one_rank(launcher, transport)

    def kill_one_rank(self, launcher, transport):
        run_dir = self.folder / f"{launcher.replace(' ', '-')}-{transport}"
        pids = self.folder / f"pids-{run_dir.name}"
        pids.mkdir()
        program = self.folder / f"rank-{run_dir.name}"
        program.write_text(
            f'#!/bin/sh\necho > {pids}/$$-${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\nexec {SYNCOPATE} "$@"\n')
        program.chmod(0o755)
        words = [*through(launcher, 3), program, "train", "--json", "--run-dir", run_dir, *SMALL, "--transport",
                 transport, *self.steady(3), "--epochs", "100000"]
        job = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(job.kill)
        for line in job.stdout:
            if '"status"' in line:
                break
        all_of_it = descendants(job.pid)
        victim = next(int(path.name.split("-")[0]) for path in pids.iterdir() if path.name.endswith("-2"))
        os.kill(victim, signal.SIGKILL)
        job.communicate(timeout=LIMIT)
        self.assertNotEqual(job.returncode, 0)
        wait_until_gone(all_of_it)

    def test_a_rank_without_its_data_says_so_for_all(self):
        empty = self.folder / "empty"
        empty.mkdir()
        done = self.launch("Open MPI", 2, "--network", "mlp", "--data", "mnist", "--data-dir", empty)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(str(empty), done.stderr + done.stdout)


if __name__ == "__main__":
    unittest.main()
