#!/usr/bin/env python3
"""Runs suites of benchmarks and writes bench/results/SUITE.md for each.

Syncopate and the peers run interleaved, so that a slow phase of the machine affects both; see bench/README.md.
"""
import argparse
import pathlib
import shlex
import sys

import measuring
import programs
import suites


def parse(arguments):
    listed = "\n".join(f"  {name:10} {suite.__doc__}" for name, suite in suites.SUITES.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"suites (all by default):\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument("--torch", choices=("debian", "pip"), default="debian",
                        help="the libtorch of ours and of the peers; with pip the tables go to SUITE-pip.md [debian]")  # fmt: skip
    parser.add_argument("--build", type=pathlib.Path, help="the build to measure [that of --torch]")
    parser.add_argument("--python", help="the interpreter that has torch [that of --torch]")
    parser.add_argument("--rounds", type=int, default=5, help="times that each side runs [5]")
    parser.add_argument("--seconds", type=float, default=10, help="of each run [10]")
    parser.add_argument("--results", type=pathlib.Path, default=measuring.ROOT / "bench/results",
                        help="where the tables go [bench/results]")  # fmt: skip
    options = parser.parse_args(arguments)
    pip = options.torch == "pip"
    options.build = options.build or (programs.PIP_BUILD if pip else measuring.ROOT / "build/release")
    options.python = options.python or (programs.PIP_PYTHON if pip else programs.debian_python())
    unknown = set(options.suites) - set(suites.SUITES)
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    return options


def main(arguments):
    options = parse(arguments)
    options.results.mkdir(parents=True, exist_ok=True)
    measured = programs.Programs(options.build, options.python)
    for name in options.suites or suites.SUITES:
        suite = suites.SUITES[name]
        print(f"{name}: {suite.__doc__}", flush=True)
        torch = "" if options.torch == "debian" else f"--torch {options.torch} "
        command = f"script/bench {torch}--rounds {options.rounds} --seconds {options.seconds:g} {shlex.quote(name)}"
        page = [measuring.heading(suite.__doc__.rstrip("."), command), *suite(measured, options)]
        target = options.results / (f"{name}.md" if options.torch == "debian" else f"{name}-{options.torch}.md")
        target.write_text("\n".join(page) + "\n", encoding="utf-8")
        print(f"written to {target}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
