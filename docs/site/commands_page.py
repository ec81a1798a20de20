#!/usr/bin/env python3
"""Prints the page of the command line in Markdown: the help of each command, which is made of its options.

Usage: commands_page.py PROGRAM    (the program `syncopate`)
"""
import re
import subprocess
import sys


def help_of(program, *command):
    return subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True).stdout.rstrip()


def commands_in(text):
    """The names under "Commands:" of the program's help."""
    listed = text.split("\nCommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\S+)", listed, re.MULTILINE)


def page(program):
    lines = ["# Command line", "", "What `syncopate COMMAND --help` prints.", ""]
    for command in commands_in(help_of(program)):
        lines += [f"## `syncopate {command}`", "", "```text", help_of(program, command), "```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(sys.argv[1]))
