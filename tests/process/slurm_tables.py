"""Base class of the tests of the table that examples/nbssgd.sbatch makes."""
import pathlib
import re

from jobs import SYNCOPATE
from slurm import SlurmJobTest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class SlurmTableTest(SlurmJobTest):
    def experiment(self, *options, mpi="pmix"):
        """Runs examples/nbssgd.sbatch; returns the final state of the job, its log, and the schemes in the table. Debian's Open
        MPI 4.1.4 may crash in MPI_Init: the job then runs once more."""
        found = self.experiment_once(*options, mpi=mpi)
        return self.experiment_once(*options, mpi=mpi) if "Segmentation fault" in found[1] else found

    def experiment_once(self, *options, mpi):
        log = self.folder / "log"
        done = self.slurm.run(
            "sbatch", "--parsable", f"--output={log}", f"--chdir={self.folder}", *options,
            f"--export=ALL,SYNCOPATE={SYNCOPATE},MPI={mpi},NETWORK=mlp,DATA=synthetic,TARGET=0.7,EPOCHS=2",
            ROOT / "examples/nbssgd.sbatch",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        state = self.slurm.await_end(done.stdout.strip(), 240)
        text = log.read_text()
        rows = set(re.findall(r"^(nbssgd|asgd|downpour|ssgd|hogwild) +[0-9.]+ +", text, re.MULTILINE))
        return state, text, sorted(rows)

    def assert_whole_table(self, *options, **how):
        state, text, schemes = self.experiment(*options, **how)
        self.assertEqual(state, "COMPLETED", text)
        self.assertEqual(schemes, ["asgd", "downpour", "hogwild", "nbssgd", "ssgd"], text)
        return text
