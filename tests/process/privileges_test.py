"""Goal:   privileges.py finds out what a machine does not let a test do, gives the reason in one line and without a long
        wait, and leaves nothing behind.
Method: real attempts; attempts with stand-ins for system commands that refuse as in a container; a Slurm, one daemon of
        which ends.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import privileges
import slurm

FOLDER = pathlib.Path(__file__).resolve().parent
REFUSES = 'echo "unshare: unshare failed: Operation not permitted" >&2; exit 1'
# Stand-in for `unshare` that makes no namespace, so that a mount would be visible outside.
LEAKS = 'while [ "$1" != sh ]; do shift; done; for last; do :; done; touch "$last/mounted"'

# Stand-in for slurmctld: it only listens at its port, for which a client waits.
LISTENS = """\
import os, re, signal, socket
port = re.search(r"SlurmctldPort=(\\d+)", open(os.environ["SLURM_CONF"]).read())[1]
server = socket.create_server(("127.0.0.1", int(port)))
signal.pause()
"""


class Privileges(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="syncopate-privileges-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def put_first(self, **programs):
        """Puts shell scripts before the system's programs in PATH, until the end of the test."""
        for name, script in programs.items():
            (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (self.folder / name).chmod(0o755)
        self.addCleanup(os.environ.__setitem__, "PATH", os.environ["PATH"])
        os.environ["PATH"] = f"{self.folder}:{os.environ['PATH']}"

    def lack_of(self, find, *arguments):
        found = find.__wrapped__(*arguments)  # without the cache of an earlier test
        self.assertEqual(found.words, ())
        with self.assertRaisesRegex(unittest.SkipTest, re.escape(found.lacks)):
            found.require()
        self.assertEqual(len(found.lacks.splitlines()), 1)
        return found.lacks

    def test_a_refusal_is_the_reason(self):
        self.put_first(unshare=REFUSES)
        for find, what in ((privileges.mounts, "mounts of its own"), (privileges.processes, "processes of its own"),
                           (privileges.network, "network of its own"), (privileges.linked_networks, "linked networks")):
            self.assertEqual(self.lack_of(find), f"no {what}: unshare: unshare failed: Operation not permitted")

    def test_a_program_that_is_missing_is_the_reason(self):
        self.addCleanup(os.environ.__setitem__, "PATH", os.environ["PATH"])
        os.environ["PATH"] = str(self.folder)
        self.assertEqual(self.lack_of(privileges.another_user), "no other user: setpriv: No such file or directory")
        self.assertEqual(self.lack_of(privileges.slurm), "no Slurm: munged is not installed")

    def test_mounts_that_are_seen_outside_are_not_taken(self):
        self.put_first(unshare=LEAKS, umount=f'echo "$1" >> {self.folder}/unmounted; rm "$1/mounted"')
        place = self.folder / "place"
        place.mkdir()
        self.assertEqual(self.lack_of(privileges.mounts, place), "no mounts of its own: what is mounted there is seen outside")
        self.assertEqual(len((self.folder / "unmounted").read_text().splitlines()), 3)  # one for each candidate
        self.assertEqual(list(place.iterdir()), [])

    def test_attempts_leave_nothing(self):
        mounted = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        found = privileges.mounts.__wrapped__(self.folder)
        privileges.processes.__wrapped__()
        self.assertEqual(pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8"), mounted)
        self.assertEqual(list(self.folder.iterdir()), [])
        if not found.lacks:
            script = f"mount -t tmpfs tmpfs {self.folder} && touch {self.folder}/inside && ls {self.folder}"
            done = subprocess.run([*found.words, "sh", "-c", script], capture_output=True, text=True, check=True)
            self.assertEqual((done.stdout, list(self.folder.iterdir())), ("inside\n", []))

    def test_descriptors_beyond_the_limit(self):
        counts = "import privileges; print(privileges.descriptors(65).lacks); print(privileges.descriptors(64).lacks)"
        limited = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", sys.executable, "-B", "-c", counts]
        done = subprocess.run(limited, cwd=FOLDER, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "a process may open 64 files, and 65 are needed (ulimit -n)\n\n")

    def start_slurm(self, **programs):
        """Starts a Slurm whose daemons are scripts; returns the reason why it does not start."""
        run = f'for word; do case $word in --socket=*) touch "${{word#*=}}";; esac; done; exec sleep {slurm.LIMIT}'
        listen = f"exec {sys.executable} -c '{LISTENS}'"
        usual = {"munged": run, "slurmctld": listen, "slurmd": run, "sinfo": "exit 1"}
        self.put_first(**{**usual, **programs})
        with self.assertRaises(slurm.Unavailable) as refused, slurm.Slurm():
            pass
        return str(refused.exception)

    def test_a_daemon_of_slurm_that_ends_is_the_reason(self):
        complaint = "slurmd: error: cgroup filesystem not mounted in /sys/fs/cgroup/"
        reason = self.start_slurm(slurmd=f'echo "slurmd: ready"; echo "{complaint}"; echo "slurmd: error: failed"; exit 1')
        self.assertEqual(reason, f"no Slurm: slurmd ended: {complaint}")
        reason = self.start_slurm(slurmctld="echo error: no state; echo fatal: setgroups; exit 1")
        self.assertEqual(reason, "no Slurm: slurmctld ended: fatal: setgroups")

    def test_nodes_that_slurm_refuses_are_the_reason(self):
        reason = self.start_slurm(sinfo='echo "inval 4 Low RealMemory"')
        self.assertEqual(reason, "no Slurm: nodes are inval: Low RealMemory")


if __name__ == "__main__":
    unittest.main()
