#!/usr/bin/python3
"""Goal:   `syncopate run` ends the job and all processes that its programs have started when a program ends before it
        joins, when the user interrupts, and when a program is refused.
Method: the programs are c_interface.py and system commands, some of them started by a shell.
"""
import gzip
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import unittest

import jobs
from live_view_test import Terminal

PROGRAM = [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "c_interface.py")]
# Worker 1 runs the shell command that follows; then each worker runs the program behind it.
AS_WORKER_1 = ["sh", "-c", 'test $SYNCOPATE_RANK = 1 && { eval "$0"; }; exec "$@"']


class ProgramsTest(jobs.JobTest):
    def command(self, *words):
        return [str(word) for word in (jobs.SYNCOPATE, "run", *words)]

    def run_programs(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=jobs.LIMIT, check=False,
                              cwd=self.folder)


class EarlyEnds(ProgramsTest):
    """A program ends before it joins. The others must not wait for it until their own limit, which is far beyond LIMIT."""

    def first_of_three(self, action):
        done = self.run_programs("-n", 3, "--", *AS_WORKER_1, action, *PROGRAM, "join_or_say")
        said = sorted(line for line in done.stderr.splitlines() if line.startswith("[worker "))
        return done, said

    def assert_told(self, action, how, status):
        done, said = self.first_of_three(action)
        error = f"worker 1 {how} before it joined"
        self.assertEqual(said, [f"[worker {rank}] status 1: {error}" for rank in (0, 2)], done.stderr)
        self.assertEqual((done.returncode, done.stderr.splitlines()[-1]), (status, f"syncopate: {error}"))

    def test_without_an_error(self):
        self.assert_told("exit 0", "ended with exit status 0", 1)

    def test_with_an_error(self):
        self.assert_told("exit 7", "ended with exit status 7", 1)

    def test_by_a_signal(self):
        self.assert_told("kill -SEGV $$", "was killed by signal 11 (Segmentation fault)", 1)

    def test_a_script_that_raises(self):
        self.assert_told(f'exec {sys.executable} -c "raise SystemExit(3)"', "ended with exit status 3", 1)

    def test_programs_that_never_join(self):
        done = self.run_programs("-n", 2, "--", *AS_WORKER_1, "exit 0", "sh", "-c", "read line < /dev/null; echo went on")
        self.assertEqual((done.returncode, done.stderr), (0, "[worker 0] went on\n"))


class Interrupts(ProgramsTest):
    """No program may need more than the 10 s after which the supervisor kills it; its report would name the killed one."""

    def start(self, *words, lines):
        """Starts two programs and reads from them `lines` numbers in total; returns the job and the numbers. One program may
        end before the other has begun."""
        process = subprocess.Popen(self.command("-n", 2, "--", *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, cwd=self.folder)
        self.addCleanup(self.end, process)
        said = filter(None, (re.fullmatch(r"\[worker \d\] (\d+)\n", line) for line in process.stderr))
        numbers = [int(line[1]) for line in itertools.islice(said, lines)]
        self.addCleanup(self.kill, numbers)
        return process, numbers

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=jobs.LIMIT)

    def kill(self, pids):
        for pid in filter(jobs.is_alive, pids):
            os.kill(pid, signal.SIGKILL)

    def interrupt(self, process, *signals, status=130):
        for number in signals:
            process.send_signal(number)
        _, errors = process.communicate(timeout=jobs.LIMIT)
        self.assertEqual(process.returncode, status, errors)
        return errors

    def gone(self, pids):
        jobs.wait_until_gone(pids)

    def test_a_program_behind_a_shell(self):
        for signals in ([signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]):
            with self.subTest(signals):
                process, pids = self.start("sh", "-c", "sleep 777 & echo $!; wait; true", lines=2)
                self.interrupt(process, *signals)
                self.gone(pids)

    def test_a_program_that_does_not_use_syncopate_ends_at_once(self):
        process, pids = self.start("sh", "-c", "echo $$; exec sleep 777", lines=2)
        errors = self.interrupt(process, signal.SIGINT)
        self.assertNotIn("signal 9", errors)
        self.assertNotIn("does not end", errors)

    def test_a_program_that_saves_what_it_has_when_its_shell_has_gone(self):
        saves = "trap 'echo saved > saved-$SYNCOPATE_RANK; exit' TERM; echo $$; while :; do sleep 0.05; done"
        process, _ = self.start("sh", "-c", 'sh -c "$0"; true', saves, lines=2)
        errors = self.interrupt(process, signal.SIGTERM, status=0)  # the status of the programs, which handle SIGTERM
        self.assertIn("SIGTERM has gone to 2 programs with handlers for it", errors)
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if "saved" in name), ["saved-0", "saved-1"])

    def test_a_stopped_program(self):
        process, pids = self.start("sh", "-c", "echo $$; exec sleep 777", lines=2)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        errors = self.interrupt(process, signal.SIGINT)
        self.assertNotIn("signal 9", errors)

    def test_what_a_program_leaves_behind_when_another_fails(self):
        fails = 'sleep 777 & echo $!; test $SYNCOPATE_RANK = 0 || exit 3'
        process, pids = self.start("sh", "-c", fails, lines=2)
        _, errors = process.communicate(timeout=jobs.LIMIT)
        self.assertEqual(process.returncode, 1, errors)
        self.gone(pids)

    def test_what_programs_leave_behind_on_purpose(self):
        process, pids = self.start("sh", "-c", "sleep 777 > /dev/null 2>&1 & echo $!", lines=2)
        process.communicate(timeout=jobs.LIMIT)
        self.assertEqual(process.returncode, 0)
        self.assertEqual([pid for pid in pids if jobs.is_alive(pid)], pids)

    def test_a_program_with_a_session_of_its_own_is_left_alone(self):
        process, pids = self.start("sh", "-c", "setsid sh -c 'echo $$; exec sleep 777 > /dev/null 2>&1' & wait", lines=2)
        self.interrupt(process, signal.SIGINT)
        self.assertEqual([pid for pid in pids if jobs.is_alive(pid)], pids)


class Hangs(ProgramsTest):
    def test_a_loop_that_takes_no_further_step_is_named_and_given_up(self):
        done = self.run_programs("-n", 2, "--wait-limit", 1, "--", *PROGRAM, "train_and_stay", 200)
        self.assertEqual(done.returncode, 1, done.stderr)
        pid = re.search(r"\[worker 1\] (\d+)\n", done.stderr)[1]
        named = rf"worker 1 \(pid {pid} on [^)]*\)"
        self.assertRegex(done.stdout + done.stderr, rf"{named} has taken no step for \d+ s since step 200, while others wait or go on; ")
        self.assertRegex(done.stderr.splitlines()[-1], rf"{named} hangs: its program has taken no step for \d+ s since step 200$")


class OneJobAfterAnother(ProgramsTest):
    def test_both_train(self):
        done = self.run_programs("-n", 2, "--run-dir", "run", "--", *PROGRAM, "train_twice", "ssgd", 30)
        self.assertEqual(done.returncode, 0, done.stderr)
        sums = re.findall(r"worker (\d): (w \S+ b \S+) moved", done.stderr)
        self.assertEqual(sorted(rank for rank, _ in sums), ["0", "0", "1", "1"], done.stderr)
        self.assertEqual(len({values for _, values in sums}), 1)
        for folder in ("run", "run-2"):
            summary = self.summary(folder)
            self.assertEqual((summary["samples"], summary["run_dir"]), (2 * 30 * 4, folder))
        self.assertEqual(done.stdout.count("cluster efficiency"), 2, done.stdout)

    def test_by_two_programs_behind_one_shell(self):
        train = " ".join([*PROGRAM, "train", "ssgd", "20"])
        done = self.run_programs("-n", 2, "--", "sh", "-c", f"{train} && {train}")
        self.assertEqual((done.returncode, len(os.listdir(self.folder / "runs"))), (0, 2), done.stderr)

    def test_one_program_does_not_join_the_second(self):
        done = self.run_programs("-n", 2, "--", *AS_WORKER_1, f"exec {' '.join(PROGRAM)} train ssgd 20",
                                 "sh", "-c", '"$@" train ssgd 20; "$@" join_or_say', "sh", *PROGRAM)
        error = "worker 1 ended with exit status 0 before it joined"
        self.assertIn(f"[worker 0] status 1: {error}", done.stderr.splitlines())
        self.assertEqual((done.returncode, done.stderr.splitlines()[-1]), (1, f"syncopate: {error}"))

    def test_two_at_the_same_time_are_refused(self):
        done = self.run_programs("-n", 2, "--", *PROGRAM, "join_twice")
        said = re.findall(r"\[worker (\d)\] status 2: worker (\d) has joined already: a program is in one job at a time",
                          done.stderr)
        self.assertIn(sorted(said), ([("0", "0")], [("1", "1")], [("0", "0"), ("1", "1")]), done.stderr)


class PlainVariables(ProgramsTest):
    """Two processes that have only RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in their environment."""

    def outputs(self, *words, **more):
        variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(os.getpid()), **more}
        processes = [subprocess.Popen([*PROGRAM, *words], env={**os.environ, **variables, "RANK": str(rank)}, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder)
                     for rank in (1, 0)]
        return [process.communicate(timeout=jobs.LIMIT)[0] for process in processes]

    def test_are_a_launcher(self):
        outputs = self.outputs("train", "ssgd", "20")
        self.assertEqual([output.split(":")[0] for output in outputs], ["worker 1", "worker 0"], outputs)
        self.assertEqual(len({output.splitlines()[0].split(":")[1] for output in outputs}), 1, outputs)
        self.assertEqual(len(os.listdir(self.folder / "runs")), 1)

    def test_on_several_hosts_are_refused_at_once(self):
        words = "has started 1 of 2 ranks on this host, but these ranks find each other only on one host"
        for output in self.outputs("join_or_say", LOCAL_WORLD_SIZE="1"):
            self.assertEqual(output, f"status 2: a launcher that sets MASTER_ADDR {words}: set "
                                     "SYNCOPATE_COORDINATOR=HOST:PORT and SYNCOPATE_KEY_FILE=FILE on all ranks\n")


class LiveView(ProgramsTest):
    def test_leaves_out_what_the_programs_do_not_say(self):
        command = self.command("-n", 2, "--run-dir", "run", "--", *PROGRAM, "train", "ssgd", 10**9)
        with Terminal("", command=command, cwd=self.folder) as terminal:
            terminal.wait_for("ssgd: program on its own data, run")
            picture = terminal.wait_for(r"(?s)worker  device.*?(epoch \d+\.\d+ [^\r\n]*).*?(elapsed [^\r\n]*)")
            terminal.type("\x03")
            status, text = terminal.end()
        self.assertEqual(status, 130)
        self.assertRegex(picture[1].rstrip(), r"^epoch \d+\.\d+   [\d,]+ samples/s$")
        self.assertRegex(picture[2].rstrip(), r"^elapsed \d+:\d\d   compute . communicate . wait .$")
        table = text[text.rindex("worker  device") :]
        self.assertIn("cluster efficiency", table)
        for word in ("loss", "accuracy", "remaining", "nan"):
            self.assertNotIn(word, table)

    def test_so_do_the_records(self):
        done = self.run_programs("-n", 2, "--json", "--run-dir", "run", "--", *PROGRAM, "train", "ssgd", 30)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual({event["loss"] for event in events if event.get("event") == "status"}, {None}, done.stderr)
        self.assertEqual((self.summary()["loss"], self.summary()["accuracy"]), (None, None))
        self.assertEqual(sorted(os.listdir(self.folder / "run" / "workers")), ["0.jsonl", "1.jsonl"])
        self.assertFalse((self.folder / "run" / "checkpoints").exists())
        [curves] = (self.folder / "run").glob("events.out.tfevents.*")
        self.assertIn(b"training/throughput", curves.read_bytes())
        self.assertNotIn(b"training/loss", curves.read_bytes())
        with gzip.open(self.folder / "run" / "trace.json.gz", "rt") as trace:
            self.assertNotIn('"loss"', trace.read())

    def test_so_does_an_error(self):
        done = self.run_programs("-n", 2, "--", *PROGRAM, "train_to_nan")
        self.assertRegex(done.stderr, r"worker \d, step 2: the gradient of a batch is not finite; lower the learning rate")


class Refusals(ProgramsTest):
    """Each refusal is one line, and nothing is started."""

    def test_what_cannot_be_meant(self):
        (self.folder / "old").mkdir()
        (self.folder / "old" / "config.toml").touch()
        for words, said in ((["-n", "0", "--", "touch", "begun"], "expected a whole number from 1 to 1024, found 0"),
                            (["-n", "2", "./train", "--epochs", "3"], "unexpected argument './train': put -- before the program"),
                            (["--epochs", "3", "--", "touch", "begun"], "a program with a loop of its own decides about"),
                            (["--no-such", "3", "--", "touch", "begun"], "unknown option --no-such"),
                            (["--cluster", "none.toml", "--", "touch", "begun"], "none.toml"),
                            (["--run-dir", "old", "--", "touch", "begun"], "old already holds a run"),
                            (["--run-dir", "/proc/x", "--", "touch", "begun"], "cannot make the run folder /proc/x")):
            with self.subTest(words):
                self.assert_refused(self.run_programs(*words), said)
                self.assertEqual(os.listdir(self.folder), ["old"])

    def test_the_folder_of_a_run_is_free_after_it_was_checked(self):
        done = self.run_programs("--run-dir", "run", "--", "true")
        self.assertEqual((done.returncode, os.listdir(self.folder)), (0, []), done.stderr)

    def test_standard_streams_that_are_closed(self):
        program = ["sh", "-c", "echo begun > result.$SYNCOPATE_RANK && echo printed"]
        for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
            with self.subTest(closed):
                folder = self.folder / str(len(os.listdir(self.folder)))
                folder.mkdir()
                for words, status in ((["-n", 2, "--", *program], 0), (["-n", 0, "--", *program], 2)):
                    shell = f"exec {shlex.join(self.command(*words))} {closed}"
                    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, cwd=folder,
                                          timeout=jobs.LIMIT, check=False)
                    self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual({path.name: path.read_text() for path in folder.iterdir()},
                                 {"result.0": "begun\n", "result.1": "begun\n"})

    def test_a_death_is_told_once(self):
        done = self.run_programs("-n", 2, "--", "sh", "-c", "kill -ABRT $$")
        self.assertEqual(done.returncode, 1)
        said = sorted(re.sub(r"\(.*?\)", "", line, count=1) for line in done.stderr.splitlines())
        self.assertEqual(said, [f"syncopate: worker {rank}  was killed by signal 6 (Aborted)" for rank in (0, 1)])


class DifferentCollectives(ProgramsTest):
    def said(self, *names):
        done = self.run_programs("-n", len(names), "--", *PROGRAM, "call_in_turn", *names)
        self.assertEqual(done.returncode, 0, done.stderr)
        return sorted(re.sub(r"^\[worker (\d)\] ", r"\1 ", line) for line in done.stderr.splitlines())

    def assert_refused_on_all(self, names, words):
        refusal = f"status 2: collective {words}; every worker of a group calls the same collectives in the same order"
        self.assertEqual(self.said(*names), [f"{rank} {refusal}" for rank in range(len(names))])

    def test_of_other_types(self):
        self.assert_refused_on_all(
            ("barrier,float32", "barrier,float64"),
            "2 of the group: worker 0 calls allreduce of 4 float32 (sum), worker 1 allreduce of 4 float64 (sum)")

    def test_of_other_lengths(self):
        self.assert_refused_on_all(
            ("float32", "long"),
            "1 of the group: worker 0 calls allreduce of 4 float32 (sum), worker 1 allreduce of 100000 float32 (sum)")

    def test_of_other_kinds(self):
        self.assert_refused_on_all(
            ("float32,barrier", "broadcast,barrier"),
            "1 of the group: worker 0 calls allreduce of 4 float32 (sum), worker 1 broadcast of 32 bytes with root 0")

    def test_of_one_that_has_gone_on(self):
        self.assert_refused_on_all(  # the root of a broadcast does not wait, so it goes on to the barrier
            ("broadcast,barrier", "float64,barrier"),
            "1 of the group: worker 0 calls broadcast of 32 bytes with root 0, worker 1 allreduce of 4 float64 (sum)")

    def test_that_are_the_same(self):
        names = "float32,float64,broadcast,long,barrier"
        self.assertEqual(self.said(names, names, names), [f"{rank} no error" for rank in range(3)])

    def test_one_that_does_not_come(self):
        os.mkfifo(self.folder / "waited")
        with subprocess.Popen(self.command("-n", 2, "--", *PROGRAM, "wait_for_one"), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.folder) as job:
            said = job.stderr.readline()
            with open(self.folder / "waited", "w", encoding="ascii"):  # lets worker 1 leave
                _, errors = job.communicate(timeout=jobs.LIMIT)
        self.assertRegex(said, r"worker 0\] status \d+: barrier: waited \d+\.\d s for rank 1 \(pid \d+ on \S+\)$")
        self.assertEqual(job.returncode, 0, errors)


if __name__ == "__main__":
    unittest.main()
