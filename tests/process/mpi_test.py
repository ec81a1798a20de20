"""Goal: under an MPI launcher, a rank that dies or fails ends all ranks, after its error message; a rank under the launcher
of another MPI reports that; waiting ranks do not keep a core busy; programs are not linked with MPI.
Method: real processes under mpirun of Open MPI and of MPICH, one of which is killed or fails. The test reads the launcher's
output, the remaining processes, and the CPU time of waiting ranks in /proc."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from jobs import LIMIT

RANK = os.environ.get("SYNCOPATE_MPI_RANK", "")
SYNCOPATE = os.environ.get("SYNCOPATE", "syncopate")
RANKS = 4
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
    "mpich": ["mpirun.mpich"],
}


# Gives each rank a temporary directory of its own below $0. Otherwise two ranks of Open MPI that do not see each other make
# the same directory in /tmp at the same time, and Open MPI aborts the second one.
APART = ["sh", "-c", 'TMPDIR=$(mktemp --directory --tmpdir="$0") exec "$@"']


def cannot_be():
    """Returns the reason to skip this test, or None. In CI every skipped test is a failure (`script/test`)."""
    if not RANK:
        return "the build found no MPI"
    missing = [words[0] for words in LAUNCHERS.values() if not shutil.which(words[0])]
    return f"{', '.join(missing)} is missing" if missing else None


class Job:
    """Ranks under a launcher; the constructor waits until all of them are connected."""

    def __init__(self, library, body):
        words = [*LAUNCHERS[library], "-n", str(RANKS), RANK, library, str(RANKS), body]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.watch = threading.Timer(LIMIT, self.process.kill)
        self.watch.start()
        self.lines, self.ranks = [], {}
        while len(self.ranks) < RANKS:
            line = self.process.stdout.readline()
            if not line:
                break
            self.lines.append(line)
            for found in re.finditer(r"rank (\d) of 4 is (\d+)", line):
                self.ranks[int(found[1])] = int(found[2])

    def end(self):
        """Waits for the end; returns the output and the exit status."""
        with self.process:
            self.lines.append(self.process.stdout.read())
        self.watch.cancel()
        return "".join(self.lines), self.process.returncode


def is_there(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").split()[2] != "Z"
    except OSError:
        return False


def left_of(job):
    """Returns the ranks that still run after LIMIT. The test must wait, since mpirun.mpich does not wait for all ranks."""
    end = time.monotonic() + LIMIT
    while (left := [each for each in job.ranks.values() if is_there(each)]) and time.monotonic() < end:
        os.sched_yield()
    return left


def computed(process):
    """Returns the CPU seconds of a process so far."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@unittest.skipIf(cannot_be(), cannot_be())
class Mpi(unittest.TestCase):
    def test_a_rank_that_is_killed_ends_all(self):
        for library in LAUNCHERS:
            with self.subTest(library=library):
                job = Job(library, "wait")
                self.assertEqual(len(job.ranks), RANKS, job.lines)
                os.kill(job.ranks[2], signal.SIGKILL)
                printed, status = job.end()
                self.assertNotEqual(status, 0)
                self.assertRegex(printed, r"signal 9|KILLED BY SIGNAL: 9|EXIT CODE: 9")
                self.assertEqual(left_of(job), [])

    def test_a_rank_that_fails_ends_all_after_its_message(self):
        for library in LAUNCHERS:
            with self.subTest(library=library):
                job = Job(library, "fail")
                printed, status = job.end()
                self.assertNotEqual(status, 0)
                self.assertIn("syncopate: the data is gone\n", printed)
                launcher = re.search(r"MPI_ABORT was invoked|BAD TERMINATION|Abort\(", printed)
                self.assertLess(printed.index("the data is gone"), launcher.start() if launcher else len(printed))
                self.assertEqual(left_of(job), [])

    def test_a_rank_under_another_launcher_reports_it(self):
        for library, other in (("openmpi", "mpich"), ("mpich", "openmpi")):
            with self.subTest(library=library), tempfile.TemporaryDirectory() as folder:
                words = [*LAUNCHERS[other], "-n", "2", *APART, folder, RANK, library, "2", "wait"]
                done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertRegex(
                    done.stdout,
                    r"syncopate: expected 2 ranks, as the launcher has started, found that (Open MPI|MPICH) [0-9.]+ sees 1: ",
                )

    def test_ranks_that_wait_burn_no_core(self):
        for library in LAUNCHERS:
            with self.subTest(library=library):
                job = Job(library, "wait")
                before, begun = [computed(each) for each in job.ranks.values()], time.monotonic()
                while time.monotonic() - begun < 2:
                    os.sched_yield()
                elapsed = time.monotonic() - begun
                shares = [(computed(each) - was) / elapsed for each, was in zip(job.ranks.values(), before)]
                os.kill(job.ranks[0], signal.SIGKILL)
                job.end()
                print(f"{library}: ranks that wait take {', '.join(f'{100 * share:.1f} %' for share in shares)} of a core")
                self.assertLess(max(shares), 0.2)

    def test_programs_are_linked_with_no_mpi(self):
        linked = subprocess.run(["ldd", SYNCOPATE], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertNotRegex(linked, "libmpi|libmpich")


if __name__ == "__main__":
    unittest.main()
