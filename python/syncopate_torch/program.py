"""The command `syncopate` of the wheel."""
import os
import pathlib
import sys


def main():
    """Becomes the program that the wheel brings along."""
    program = pathlib.Path(__file__).with_name("bin") / "syncopate"
    os.execv(program, ["syncopate", *sys.argv[1:]])
