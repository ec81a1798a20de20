#!/usr/bin/python3
"""Goal:   `syncopate` runs commands that need no libtorch itself, starts `syncopate-torch` for the others
        with the environment that numeric libraries need, and completes in bash.
Method: the program in a folder of its own, as it is installed, with a stand-in for `syncopate-torch`
        that prints its arguments and environment; the completion script in a real bash.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SYNCOPATE = os.environ["SYNCOPATE"]

STAND_IN = """#!/bin/sh
echo "$OMP_NUM_THREADS $OPENBLAS_NUM_THREADS"
for word; do echo "$word"; done
"""


def run(program, *words, environment=None, cwd=None):
    base = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    return subprocess.run(
        [program, *words], capture_output=True, text=True, check=False, cwd=cwd, env={**base, **(environment or {})}
    )


class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.prefix = pathlib.Path(folder.name)
        (self.prefix / "bin").mkdir()
        self.program = shutil.copy(SYNCOPATE, self.prefix / "bin" / "syncopate")

    def put_torch(self, place):
        path = self.prefix / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STAND_IN)
        path.chmod(0o755)

    def test_answers_without_libtorch(self):
        for words in (["--help"], ["train", "--help"], ["version"], ["schemes"], ["completion", "bash"]):
            ran = run(self.program, *words)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""), words)
            self.assertTrue(ran.stdout)

    def test_programs_of_others_need_no_libtorch(self):
        self.put_torch("libexec/syncopate/syncopate-run")
        ran = run(self.program, "run", "--workers", "2", "--", "true", "hello")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(ran.stdout.splitlines()[1:], ["run", "--workers", "2", "--", "true", "hello"])
        beside = pathlib.Path(SYNCOPATE).with_name("syncopate-run")
        libraries = subprocess.run(["ldd", beside], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("torch", libraries)

    def test_loads_neither_libtorch_nor_libraries_of_workers(self):
        libraries = subprocess.run(["ldd", self.program], capture_output=True, text=True, check=True).stdout
        for name in ("torch", "blas", "protobuf"):
            self.assertNotIn(name, libraries)

    def test_refuses_mistakes_before_anything_is_started(self):
        benched = ["bench", "allreduce", "--ranks", "1"]
        for words in (["train", "--batch-size", "none"], benched, ["train", "--shceme", "ssgd"], ["trian"]):
            ran = run(self.program, *words)
            self.assertEqual((ran.returncode, ran.stdout), (2, ""), words)
            self.assertRegex(ran.stderr, r"\Asyncopate: [^\n]+\n\Z")

    def test_hands_on_its_words_and_sets_the_environment(self):
        for place in ("bin/syncopate-torch", "libexec/syncopate/syncopate-torch"):
            self.put_torch(place)
            ran = run(self.program, "train", "--threads", "3", "--seed=7")
            self.assertEqual(ran.stdout.splitlines(), ["3 3", "train", "--threads", "3", "--seed=7"])
            self.assertEqual(ran.stderr, "")
            (self.prefix / place).unlink()

    def test_keeps_the_users_environment_and_says_so_when_verbose(self):
        self.put_torch("bin/syncopate-torch")
        ran = run(self.program, "train", "--verbose", environment={"OMP_NUM_THREADS": "5"})
        self.assertEqual(ran.stdout.splitlines()[0], "5 1")
        self.assertIn("OMP_NUM_THREADS=5 kept from the environment", ran.stderr)
        self.assertIn("OPENBLAS_NUM_THREADS=1 set", ran.stderr)

    def test_without_the_program_of_libtorch_says_what_the_installation_is_for(self):
        commands = (["networks"], ["train"], ["doctor"], ["bench", "codecs"], ["compare", "--schemes", "ssgd", "--out", self.prefix / "c"])
        for words in commands:
            ran = run(self.program, *words)
            self.assertEqual((ran.returncode, ran.stdout), (2, ""), words)
            self.assertRegex(ran.stderr, r"\Asyncopate: this command needs the program syncopate-torch, which is neither [^\n]+ nor [^\n]+: an "
                                         r"installation by pip has no libtorch, but the commands run, report, [^\n]+; for the others build "
                                         r"Syncopate from its sources by script/build [^\n]+\n\Z")
        self.assertFalse((self.prefix / "c").exists())

    def test_names_no_libtorch_that_it_does_not_use(self):
        self.assertIn(", without libtorch", run(self.program, "--version").stdout)
        self.assertEqual(json.loads(run(self.program, "version", "--json").stdout)["libtorch"], "")

    def test_finds_installed_clusters_by_name(self):
        self.put_torch("bin/syncopate-torch")
        clusters = self.prefix / "share" / "syncopate" / "clusters"
        clusters.mkdir(parents=True)
        (clusters / "two.toml").write_text(
            'name = "two"\n[[devices]]\nname = "d"\ncount = 2\nseconds_per_batch = 0.1\n'
        )
        for name in ("two", "two.toml", "clusters/two.toml"):
            self.assertEqual(run(self.program, "train", "--cluster", name).returncode, 0, name)
        self.assertEqual(run(self.program, "train", "--cluster", "three").returncode, 2)

    def test_says_when_nobody_takes_its_output(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            ran = subprocess.run([self.program, "schemes"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertEqual(ran.stderr, "syncopate: cannot write standard output: No space left on device\n")
        closed = ["sh", "-c", 'exec "$0" schemes >&-', self.program]
        ran = subprocess.run(closed, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertEqual(ran.stderr, "syncopate: cannot write standard output: Bad file descriptor\n")
        reader, writer = os.pipe()
        os.close(reader)  # as `head` does when it has read its lines
        ran = subprocess.run([self.program, "schemes"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
                             restore_signals=False)  # otherwise SIGPIPE ends the program
        os.close(writer)
        self.assertEqual((ran.returncode, ran.stderr), (1, ""))

    def test_a_key_of_40_000_dots_is_a_line_and_no_signal(self):
        deep = self.prefix / "deep.toml"
        deep.write_text("a." * 40_000 + "a = 1\n")
        for option in ("--config", "--cluster"):
            ran = run(self.program, "train", option, str(deep))
            self.assertEqual((ran.returncode, ran.stdout), (2, ""), option)
            line = r"\Asyncopate: [^\n]+deep.toml:1:34: expected at most 16 dots in a key[^\n]+\n\Z"
            self.assertRegex(ran.stderr, line)

    def test_absurd_numbers_and_folders_are_a_line_and_no_signal(self):
        slow = self.prefix / "slow.toml"
        slow.write_text("[[devices]]\nsamples_per_second = 1e-3\n")
        steps = self.prefix / "steps.toml"
        steps.write_text("[[devices]]\nseconds_per_batch = 1\n")
        for words in (
            ["--scheme", "nbssgd", "--mini-batches", "4294967295"], ["--workers", "100000"],
            ["--batch-size", "4294967295"], ["--wait-limit", "1e300"], ["--cluster", slow],
            ["--cluster", steps, "--time-scale", "1e300"], ["--cluster", steps, "--time-scale", "1e6"],
            ["--scheme", "esync", "--round-time", "1e300"], ["--eval-every", "1e300steps"],
            ["--run-dir", "a" * 5000], ["--run-dir", "b/" * 2500], ["--run-dir", b"runs/\xff\x1b[2J"],
        ):
            with self.subTest(words=words):
                ran = run(self.program, "train", *words, cwd=self.prefix)
                self.assertEqual((ran.returncode, ran.stdout), (2, ""), ran.stderr)
                self.assertRegex(ran.stderr, r"\Asyncopate: [^\n\x1b]{1,400}\n\Z")
                self.assertFalse((self.prefix / "runs").exists())

    def test_version_as_json(self):
        facts = json.loads(run(self.program, "version", "--json").stdout)
        self.assertIn("version", facts)
        self.assertIn(facts["libtorch"] or "without", run(self.program, "version").stdout)


class Scripts(unittest.TestCase):
    def test_refuse_an_unknown_libtorch_before_they_install_anything(self):
        folder = pathlib.Path(__file__).resolve().parents[2] / "script"
        for script, words, found in (
            ("build", ["--torch", "conda"], "--torch 'conda': expected debian or pip"),
            ("test", ["--torch"], "--torch '': expected debian or pip"),
            ("build", ["--torch=pip", "dev"], "--torch pip with preset 'dev': expected release"),
        ):
            ran = run(folder / script, *words)
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (2, "", f"{script}: {found}\n"))


class Completion(unittest.TestCase):
    def complete(self, *words):
        """Bash's completions of the last of `words`. Readline passes '=' as a separate word."""
        listed = " ".join(f"'{word}'" for word in words)
        script = f"""
          eval "$({SYNCOPATE} completion bash)"
          COMP_WORDS=({listed}) COMP_CWORD={len(words) - 1}
          _syncopate syncopate '{words[-1]}' '{words[-2]}'
          printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(ran.stderr, "")
        return ran.stdout.split()

    def test_commands(self):
        self.assertEqual(self.complete("syncopate", "tra"), ["train", "trace"])
        self.assertIn("schemes", self.complete("syncopate", ""))
        self.assertEqual(self.complete("syncopate", "wor"), ["worker"])

    def test_options(self):
        self.assertEqual(self.complete("syncopate", "train", "--batch-s"), ["--batch-size"])
        self.assertEqual(self.complete("syncopate", "networks", "--cl"), ["--classes"])
        self.assertEqual(self.complete("syncopate", "worker", "--jo"), ["--join"])

    def test_values(self):
        self.assertEqual(self.complete("syncopate", "train", "--scheme", "")[:2], ["local", "ssgd"])
        self.assertEqual(self.complete("syncopate", "train", "--network", "resnet1"), ["resnet18-v1"])
        self.assertEqual(self.complete("syncopate", "train", "--scheme", "=", "ss"), ["ssgd", "ssp"])
        self.assertIn("ssgd", self.complete("syncopate", "train", "--scheme", "="))
        self.assertEqual(self.complete("syncopate", "completion", "b"), ["bash"])
        self.assertEqual(self.complete("syncopate", "bench", "al"), ["allreduce"])
        self.assertEqual(self.complete("syncopate", "coordinator", "--network", "len"), ["lenet5"])
        self.assertEqual(self.complete("syncopate", "compare", "--grid-in", ""), ["virtual", "real"])

    def test_values_of_an_option_that_differ_between_commands(self):
        for command, transports in (("train", ["auto", "shm", "tcp", "mpi"]), ("doctor", ["auto", "shm", "tcp", "mpi"]),
                                    ("bench", ["shm", "tcp", "mpi", "tcp-encrypted"])):
            self.assertEqual(self.complete("syncopate", command, "--transport", ""), transports, command)

    def test_lists(self):
        self.assertEqual(self.complete("syncopate", "bench", "--aggregate", "b"), ["butterfly", "binary-blocks"])
        self.assertEqual(self.complete("syncopate", "bench", "--aggregate", "ring,tree,m"), ["ring,tree,mpi"])
        self.assertEqual(self.complete("syncopate", "compare", "--schemes", "ssgd,es"), ["ssgd,esync"])

    def test_nothing_where_anything_goes(self):
        self.assertEqual(self.complete("syncopate", "train", "--seed", ""), [])

    def test_paths_beside_names(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "model.pt").touch()
            self.assertEqual(self.complete("syncopate", "train", "--network", f"{folder}/m"), [f"{folder}/model.pt"])
            self.assertEqual(self.complete("syncopate", "compare", "--data", f"{folder}/m"), [f"{folder}/model.pt"])
            self.assertEqual(self.complete("syncopate", "bench", "--network", f"{folder}/m"), [])

    def test_files_and_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "job.toml").touch()
            pathlib.Path(folder, "runs").mkdir()
            self.assertEqual(
                sorted(self.complete("syncopate", "train", "--config", f"{folder}/")),
                [f"{folder}/job.toml", f"{folder}/runs"],
            )
            self.assertEqual(
                self.complete("syncopate", "train", "--resume", f"{folder}/"), [f"{folder}/runs"]
            )


if __name__ == "__main__":
    unittest.main()
