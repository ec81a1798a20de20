"""The peers of `syncopate bench allreduce`: Open MPI, MPICH, Gloo, torch.distributed."""
import json
import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# Waiting ranks yield their core: there may be more ranks than cores.
OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
TCP_ONLY = ["--mca", "btl", "tcp,self"]


class Peers:
    """Each peer measures sums of vectors of `sizes` bytes for about `seconds` in all, and returns its
    results by size. A peer in C++ is compiled at its first use, into a folder of the build."""

    def __init__(self, build, python, environment):
        self.folder = pathlib.Path(build) / "peers"
        self.python = python
        self.environment = environment

    def open_mpi(self, ranks, sizes, seconds, more=()):
        program = self.compiled("peer_mpi.cpp", "mpicxx.openmpi")
        return by_size(self.run([*OPEN_MPI, *more, "-n", ranks, program, seconds / len(sizes), listed(sizes)], seconds))

    def open_mpi_tcp(self, ranks, sizes, seconds):
        return self.open_mpi(ranks, sizes, seconds, TCP_ONLY)

    def mpich(self, ranks, sizes, seconds):
        program = self.compiled("peer_mpi.cpp", "mpicxx.mpich")
        return by_size(
            self.run(["mpirun.mpich", "-n", ranks, program, seconds / len(sizes), listed(sizes)], seconds)
        )

    def gloo(self, ranks, sizes, seconds):
        """Returns Gloo's results, with the fastest of four algorithms for each size."""
        program = self.compiled("peer_gloo.cpp", "g++", "-lgloo")
        with tempfile.TemporaryDirectory(prefix="syncopate-gloo-") as folder:
            results = self.run([program, ranks, seconds / len(sizes) / 4, listed(sizes), folder], seconds)
        return by_size(sorted(results, key=lambda result: -result["median_seconds"]))

    def torch(self, ranks, sizes, seconds, backend="gloo"):
        script = HERE / "peer_allreduce.py"
        return by_size(
            self.run(
                [self.python, script, "--ranks", ranks, "--seconds", seconds / len(sizes), "--bytes", listed(sizes),
                 "--backend", backend],
                seconds,
            )
        )  # fmt: skip

    def compiled(self, source, compiler, *libraries):
        program = self.folder / f"{pathlib.Path(source).stem}.{compiler}"
        sources = [HERE / source, HERE / "peer_rounds.hpp"]
        if not program.exists() or program.stat().st_mtime < max(each.stat().st_mtime for each in sources):
            self.folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                [compiler, "-std=c++20", "-O2", f"-I{HERE.parent}", sources[0], "-o", program, *libraries],
                check=True,
            )
        return program

    def run(self, command, seconds):
        """Returns the results that a peer prints. Tries twice, since Gloo sometimes hangs while it connects."""
        words = [str(word) for word in command]
        limit = 60 + 10 * seconds
        try:
            done = run_group(words, self.environment, limit)
        except subprocess.TimeoutExpired:
            print(f"  {words[0]} hangs; once more")
            done = run_group(words, self.environment, limit)
        return json.loads(done.splitlines()[-1])["results"]


def run_group(words, environment, limit):
    """Runs a program and returns its output. All of its processes end with this call."""
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        try:
            printed, _ = program.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, 9)
            raise
    if program.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} ended with status {program.returncode}")
    return printed


def listed(sizes):
    return ",".join(str(size) for size in sizes)


def by_size(results):
    """Returns the results by size; of several results of one size the last one counts."""
    return {result["bytes"]: result for result in results}
