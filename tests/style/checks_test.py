#!/usr/bin/env python3
"""Goal: each style check finds the faults that it is made for, and does not complain about correct code.

Method: the test writes a small source tree for each example and compares the checks' complaints with
the places of its faults. It also has good examples, so that a check that complains about everything
fails.
"""
import pathlib
import tempfile
import unittest

import banned
import commands
import extensions
import format as formatting
import layers
import lengths
import links
import scheme_names
import vocabulary


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text, mode=0o644):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)

    def found(self, check, *arguments):
        """Returns the places of a check's complaints, as "path:line"."""
        return [":".join(row.split(":")[:2]) for row in check(self.root, *arguments)]

    def assert_banned(self, path, code, lines=1):
        self.write(path, code)
        self.assertEqual(self.found(banned.check), [f"{path}:{line}" for line in range(1, lines + 1)], code)
        (self.root / path).unlink()

    def assert_fine(self, path, code):
        self.write(path, code)
        self.assertEqual(self.found(banned.check), [], code)
        (self.root / path).unlink()


class Vocabulary(Checks):
    def test_replaced_words(self):
        self.write("src/a.hpp", "// Where workers meet.\nstruct Meeting {};\nint network_card; // a network card\n")
        self.write("docs/a.md", "fine\nIt adds up what is so many.\n")
        self.assertEqual(self.found(vocabulary.check), ["docs/a.md:2", "docs/a.md:2", "src/a.hpp:2", "src/a.hpp:1"])


class Files(Checks):
    def test_what_commands_leave_beside_the_sources_is_not_checked(self):
        unfinished = "// TO" + "DO\n"
        for path in ("comparisons/demo/a.cpp", "runs/a.cpp", "build/release/a.cpp"):
            self.assert_fine(path, unfinished)
        self.assert_banned("bench/results/comparisons/a.cpp", unfinished)


class SchemeNames(Checks):
    def test_a_comparison_with_the_name_of_a_scheme_outside_its_file(self):
        self.write("src/scheme/odd.cpp", 'static const SchemeSpec spec{\n    .name = "odd"};\nbool own = name == "odd";\n')
        self.write("cli/x.cpp", 'a = b == "even";\nif (name == "odd") {}\nif ("odd" != name) {}\nname = "odd";\n')
        self.assertEqual(self.found(scheme_names.check), ["cli/x.cpp:2", "cli/x.cpp:3"])

    def test_python_that_decides_by_names(self):
        self.write("src/scheme/a.cpp", 'static const SchemeSpec spec{.name = "one"};\n')
        self.write("src/scheme/b.cpp", 'static const SchemeSpec spec{.name = "two"};\n')
        self.write("python/a.py", 'init("one")\nEQUAL = ("one", "two")\nif scheme != "two":\n    pass\n')
        self.assertEqual(self.found(scheme_names.check), ["python/a.py:2", "python/a.py:3"])

    def test_a_tree_without_schemes(self):
        self.assertEqual(self.found(scheme_names.check), ["src/scheme:1"])


class Extensions(Checks):
    TABLE = "| to add | new files | files that get lines |\n| --- | --- | --- |\n"
    TOY = 'extension_test(toy_tests odd/odds.inc "ODD(toy)"\n               toy_odd.cpp toy_odd_test.cpp)\n'

    def found_with(self, rows, toy=TOY):
        self.write("src/odd/odds.inc", "ODD(first)\n")
        self.write("src/odd/first.cpp", "")
        self.write("docs/internals/hacking.md", self.TABLE + rows)
        self.write("tests/extension/CMakeLists.txt", toy)
        return self.found(extensions.check)

    def test_a_row_that_the_toy_keeps_to(self):
        self.assertEqual(self.found_with("| an odd | `src/odd/*.cpp` | `src/odd/odds.inc` |\n"), [])

    def test_a_toy_that_takes_other_files_than_its_row(self):
        for row in ("| an odd | `src/odd/*.cpp` | none |\n", "| an even | none | `src/odd/odds.inc` |\n",
                    "| an odd | none | `src/odd/odds.inc` |\n"):
            self.assertEqual(self.found_with(row), ["tests/extension/CMakeLists.txt:1"], row)

    def test_a_file_that_does_not_exist(self):
        row = "| an odd | `src/even/*.cpp` | `src/odd/odds.inc` |\n"
        self.assertEqual(self.found_with(row), ["docs/internals/hacking.md:3"])

    def test_a_page_without_the_table(self):
        self.write("docs/internals/hacking.md", "# Hacking\n")
        self.write("tests/extension/CMakeLists.txt", "")
        self.assertEqual(self.found(extensions.check), ["docs/internals/hacking.md:1"])


class Layers(Checks):
    def test_a_low_folder_that_includes_a_higher_one(self):
        self.write("src/train/loop.hpp", "")
        self.write("src/base/ids.hpp", '#pragma once\n#include "train/loop.hpp"\n')
        self.write("src/train/loop.cpp", '#include "train/loop.hpp"\n#include "base/ids.hpp"\n')
        self.assertEqual(self.found(layers.check), ["src/base/ids.hpp:2"])

    def test_a_room_of_the_python_package_that_imports_a_higher_one(self):
        self.write("python/syncopate_torch/core/a.py", "import syncopate_torch.core.b\nfrom syncopate_torch.training import job\n")
        self.write("python/syncopate_torch/training/a.py", "def f():\n    import syncopate_torch\n    from syncopate_torch.core import b\n")
        self.write("python/syncopate_torch/horovod.py", "from syncopate_torch.integrations import x\n")
        self.assertEqual(sorted(self.found(layers.check)), ["python/syncopate_torch/core/a.py:2", "python/syncopate_torch/training/a.py:2"])

    def test_a_source_that_does_not_include_its_own_header_first(self):
        self.write("src/base/ids.hpp", "#pragma once\n")
        self.write("src/base/ids.cpp", '#include <string>\n\n#include "base/ids.hpp"\n')
        self.write("src/base/time.hpp", "#pragma once\n")
        self.write("src/base/time.cpp", '#include "base/time.hpp"\n\n#include <string>\n')
        self.assertEqual(self.found(layers.check), ["src/base/ids.cpp:1"])

    def test_production_code_that_sees_the_simulator(self):
        self.write("sim/sim_network.hpp", "")
        for folder in ("src/membership", "torch", "cli", "cli/view", "src/job/roles", "tests/sim"):
            self.write(f"{folder}/x.cpp", '#include "sim/sim_network.hpp"\n')
        self.assertEqual(
            self.found(layers.check), ["cli/view/x.cpp:1", "cli/x.cpp:1", "src/membership/x.cpp:1", "torch/x.cpp:1"]
        )

    def test_a_library_outside_its_home(self):
        for folder in ("torch", "src/scheme", "tests/torch", "tests/unit/scheme"):
            self.write(f"{folder}/x.cpp", "#include <torch/torch.h>\n#include <vector>\n")
        self.assertEqual(self.found(layers.check), ["src/scheme/x.cpp:1", "tests/unit/scheme/x.cpp:1"])

    def test_a_backend_of_the_transport_chosen_below_the_commands(self):
        self.write("src/transport/tcp/tcp.hpp", "")
        for path in ("src/transport/tcp/tcp.cpp", "src/train/x.cpp", "cli/x.cpp"):
            self.write(path, '#include "transport/tcp/tcp.hpp"\n')
        self.assertEqual(self.found(layers.check), ["src/train/x.cpp:1"])

    def test_leaf_folders_of_the_command_line(self):
        for leaf in ("view", "bench", "doctor", "compare", "compute", "commands"):
            self.write(f"cli/{leaf}/x.hpp", "")
        self.write("cli/view/a.cpp", '#include "cli/view/x.hpp"\n#include "cli/bench/x.hpp"\n')
        self.write("cli/bench/a.cpp", '#include "cli/view/x.hpp"\n#include "cli/compare/x.hpp"\n')
        self.write("cli/doctor/a.cpp", '#include "cli/bench/x.hpp"\n#include "cli/commands/x.hpp"\n')
        self.write("cli/compute/a.cpp", '#include "cli/bench/x.hpp"\n#include "cli/doctor/x.hpp"\n')
        self.write("cli/commands/a.cpp", '#include "cli/compare/x.hpp"\n#include "cli/compute/x.hpp"\n')
        self.assertEqual(
            self.found(layers.check),
            [
                "cli/bench/a.cpp:2",
                "cli/commands/a.cpp:2",
                "cli/doctor/a.cpp:1",
                "cli/doctor/a.cpp:2",
                "cli/view/a.cpp:2",
            ],
        )

    def test_leaf_folders_of_a_job(self):
        self.write("src/spec/x.hpp", "")
        for leaf in ("members", "launch", "host", "roles"):
            self.write(f"src/job/{leaf}/x.hpp", "")
        self.write("cli/handlers.hpp", "")
        self.write("src/job/members/a.cpp", '#include "spec/x.hpp"\n#include "job/launch/x.hpp"\n')
        self.write("src/job/host/a.cpp", '#include "job/launch/x.hpp"\n#include "job/roles/x.hpp"\n')
        self.write("src/job/roles/a.cpp", '#include "job/host/x.hpp"\n#include "cli/handlers.hpp"\n')
        self.write("sim/job/a.cpp", '#include "job/members/x.hpp"\n#include "job/host/x.hpp"\n')
        self.write("cli/view/a.cpp", '#include "job/launch/x.hpp"\n#include "job/roles/x.hpp"\n')
        self.assertEqual(
            self.found(layers.check),
            ["cli/view/a.cpp:2", "sim/job/a.cpp:2", "src/job/host/a.cpp:2", "src/job/members/a.cpp:2", "src/job/roles/a.cpp:2"],
        )

    def test_a_header_that_is_not_there(self):
        self.write("src/base/x.cpp", '#include "ids.hpp"\n#include "wire/control.pb.h"\n')
        self.assertEqual(self.found(layers.check), ["src/base/x.cpp:1", "src/base/x.cpp:2"])


class Banned(Checks):
    def test_each_banned_call_outside_its_home(self):
        for code in (
            "std::this_thread::sleep_for(1s);",
            "auto t = std::chrono::steady_clock::now();",
            "auto t = std::chrono::system_clock::now();",
            "std::random_device{}();",
            "int x = rand();",
            "std::normal_distribution<float> d;",
            'getenv("X");',
            'setenv("X", "1", 1);',
            "std::abort();",
            "::_exit(1);",
            "exit(1);",
            "std::cout << 1;",
            'printf("x");',
            "int* x = new int;",
            "delete x;",
            "delete[] x;",
            "std::thread t(f);",
            "auto f = std::async(g);",
            "#ifdef SYNCOPATE_TORCH\n",
        ):
            self.assert_banned("src/train/x.cpp", code)

    def test_words_that_only_look_like_one(self):
        for code in (
            "X(const X&) = delete;",
            "world.sleep_until(when);",
            "// std::thread, new int, exit(1)",
            'std::string text = "exit(1) new int";',
            "auto n = std::thread::hardware_concurrency();",
            "job.abort(reason);",
            "void Job::abort(Reason reason);",
            "int operand(int);",
            "const auto big = 1'000'000; int renew = 3;",
        ):
            self.assert_fine("src/train/x.cpp", code)

    def test_a_call_in_its_home(self):
        self.assert_fine("src/runtime/real_world.cpp", "std::this_thread::sleep_until(t); std::thread t;")
        self.assert_fine("cli/main.cpp", 'std::cout << getenv("HOME"); std::exit(2);')

    def test_errors_swallowed(self):
        self.assert_banned("src/train/x.cpp", "void f() { try { g(); } catch (...) { log(); } }")
        self.assert_banned("src/train/x.cpp", "void f() { try { g(); } catch (const Error&) {} }")
        self.assert_fine("src/train/x.cpp", "void f() { try { g(); } catch (...) { undo(); throw; } }")
        self.assert_fine("src/train/x.cpp", "try {\n} catch (const Error&) {\n  // it is closed already\n}")

    def test_headers(self):
        self.assert_banned("src/base/x.hpp", "int f();")
        self.assert_banned("src/base/x.hpp", "using namespace std;  // line 1\n#pragma once\n")
        self.assert_fine("src/kernels/x-inl.hpp", "int f();")  # Highway includes it once for each target
        self.assert_fine("src/base/x.cpp", "using namespace std::chrono_literals;")

    def test_marks(self):
        self.assert_banned("docs/x.md", "TO" + "DO: say more")
        self.assert_banned("src/base/x.cpp", "f();  // NO" + "LINT")
        self.assert_banned("src/base/x.cpp", "f();  // NO" + "LINT(bugprone-x)")
        self.assert_banned("script/x.sh", "cd /home/" + "me/syncopate")
        self.assert_fine("src/base/x.cpp", "f();  // NOLINT(bugprone-x): the callback owns it")


class Lengths(Checks):
    def test_lines_of_code_that_are_too_long(self):
        self.write("src/base/x.cpp", "// " + "\u00b7" * 97 + "\n// " + "x" * 98 + "\n")
        self.assertEqual(self.found(lengths.check), ["src/base/x.cpp:2"])

    def test_two_headers_of_one_name(self):
        self.write("cli/report.hpp", "#pragma once\n")
        self.write("src/train/report.hpp", "#pragma once\n")
        self.write("tests/unit/report.hpp", "#pragma once\n")
        self.assertEqual(self.found(lengths.check), ["src/train/report.hpp:1"])

    def test_a_long_function(self):
        long_body = "  f();\n" * lengths.LONGEST_FUNCTION
        self.write("src/x.cpp", "namespace n {\nstruct S {\n  template <class T>\n  void g() {\n" + long_body + "  }\n};\n}\n")
        self.assertEqual(self.found(lengths.check), ["src/x.cpp:3"])

    def test_a_long_class_of_short_functions(self):
        methods = "".join(f"  int f{i}() {{ return {i}; }}\n" for i in range(100))
        self.write("src/x.cpp", "namespace n {\nclass S {\n" + methods + "};\n}  // namespace n\n")
        self.assertEqual(self.found(lengths.check), [])

    def test_a_long_file(self):
        self.write("src/x.cpp", "int x;\n" * (lengths.LONGEST_FILE + 1))
        self.write("src/y.cpp", "// Length: a table of the standard\n" + "int x;\n" * lengths.LONGEST_FILE)
        self.assertEqual(self.found(lengths.check), ["src/x.cpp:1"])

    def test_a_long_python_function(self):
        self.write("bench/x.py", "def f():\n" + "    g()\n" * lengths.LONGEST_FUNCTION)
        self.assertEqual(self.found(lengths.check), ["bench/x.py:1"])


class Links(Checks):
    def test_links_to_nowhere(self):
        self.write("docs/a.md", "# One `two` three\n\n[b](b.md)\n[x](x.md)\n[h](#one-two-three)\n[n](#nothing)\n")
        self.write("docs/b.md", "```\n[code](is-no-link.md)\n```\n[web](https://example.org/) `f[x](y)`\n")
        self.assertEqual(self.found(links.check), ["docs/a.md:4", "docs/a.md:6"])

    def test_targets_that_are_named_below(self):
        self.write("docs/a.md", "[fine][b], ![no target][c]\n\n[b]: b.md\n[d]: gone.md\n")
        self.write("docs/b.md", "")
        self.assertEqual(sorted(self.found(links.check)), ["docs/a.md:1", "docs/a.md:4"])

    def test_an_anchor_of_another_page(self):
        self.write("docs/a.md", "[fine](b.md#end)\n[bad](b.md#start)\n")
        self.write("docs/b.md", "## End\n")
        self.assertEqual(self.found(links.check), ["docs/a.md:2"])

    def test_paths_in_backticks(self):
        self.write("docs/a.md", "`docs/a.md`, `runs/x` and\n`docs/missing.md`\n")
        self.write("src/x.cpp", "int x;\n/// See\n/// `docs/missing.md`.\n")
        self.assertEqual(self.found(links.check), ["docs/a.md:2", "src/x.cpp:3"])


class Commands(Checks):
    PROGRAM = """#!/bin/sh
case "$1" in
  --help) echo "commands: train" ;;
  train) echo "  --scheme NAME" ;;
  *) exit 2 ;;
esac
"""

    def test_scripts(self):
        self.write("script/good", "#!/bin/sh\necho help\n", 0o755)
        self.write("script/mute", "#!/bin/sh\n", 0o755)
        self.write("README.md", "```sh\nscript/good\nscript/gone --x\n```\n")
        self.assertEqual(self.found(commands.check), ["README.md:3", "script/mute:1"])

    def test_subcommands_and_options(self):
        (self.root / "script").mkdir()
        self.write("bin/syncopate", self.PROGRAM, 0o755)
        program = str(self.root / "bin/syncopate")
        self.write(
            "README.md",
            "```console\n$ syncopate train --scheme x\nsome output\n$ build/syncopate fly\n"
            "$ syncopate train --scheme=x \\\n    --wings 2  # two\n```\n",
        )
        self.assertEqual(self.found(commands.check, program), ["README.md:4", "README.md:5"])


class Format(Checks):
    def test_a_file_of_another_format(self):
        if formatting.clang_format() is None:
            self.skipTest("no clang-format-14")
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("src/good.cpp", "int x;\n")
        self.write("src/bad.cpp", "int y;\n\n\n\nint   x;\n")
        self.assertEqual([place.split("/")[-1].split(":")[0] for place in self.found(formatting.check)], ["bad.cpp"])


if __name__ == "__main__":
    unittest.main()
