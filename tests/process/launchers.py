"""Starts jobs through the launchers of both MPIs, for the tests of this folder."""
import os

from jobs import JobTest

LAUNCHERS = {
    "Open MPI": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
    "MPICH": ["mpirun.mpich"],
}

# Set by `script/check all`.
EVERYTHING = "SYNCOPATE_TEST_EVERYTHING" in os.environ


def by_turns(names):
    """{name: launchers}, where names alternate between the two launchers. That suffices, since `mpi_contract_*` check that
    both behave alike. With EVERYTHING each name gets both launchers."""
    return {name: list(LAUNCHERS) if EVERYTHING else [list(LAUNCHERS)[number % len(LAUNCHERS)]]
            for number, name in enumerate(names)}


def through(launcher, ranks, *more):
    return [*LAUNCHERS[launcher], *more, "-n", str(ranks)]


class LaunchedTest(JobTest):
    """A test whose jobs are started by an MPI launcher, one process for each rank."""

    def launch(self, launcher, ranks, *options, run_dir="run", more=(), **others):
        return self.train(*options, run_dir=run_dir, through=through(launcher, ranks, *more), **others)

    def assert_trained(self, done, scheme, workers, run_dir="run"):
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary(run_dir)
        self.assertEqual((summary["scheme"], len(summary["workers"])), (scheme, workers))
