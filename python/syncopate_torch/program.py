"""The command `syncopate` of the wheel."""
import os
import pathlib
import sys


def main():
    """Replaces this process by the program in the wheel."""
    program = pathlib.Path(__file__).with_name("bin") / "syncopate"
    os.execv(program, ["syncopate", *sys.argv[1:]])
