"""Starts jobs through the launchers of both MPIs, for the tests of this folder."""
import os

from jobs import JobTest

LAUNCHERS = {
    "Open MPI": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
    "MPICH": ["mpirun.mpich"],
}

# script/check all sets it.
EVERYTHING = "SYNCOPATE_TEST_EVERYTHING" in os.environ


def by_turns(names):
    """{name: launchers}, with each launcher for every second of the names: what is named is the same under both, which
    `mpi_contract_*` hold to be alike. With EVERYTHING both for all."""
    return {name: list(LAUNCHERS) if EVERYTHING else [list(LAUNCHERS)[number % len(LAUNCHERS)]]
            for number, name in enumerate(names)}


def through(launcher, ranks, *more):
    return [*LAUNCHERS[launcher], *more, "-n", str(ranks)]


class LaunchedTest(JobTest):
    """A test whose jobs are started rank by rank."""

    def launch(self, launcher, ranks, *options, run_dir="run", more=(), **others):
        return self.train(*options, run_dir=run_dir, through=through(launcher, ranks, *more), **others)

    def assert_trained(self, done, scheme, workers, run_dir="run"):
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary(run_dir)
        self.assertEqual((summary["scheme"], len(summary["workers"])), (scheme, workers))
