#!/usr/bin/env python3
"""No code outside the file of a scheme compares with the scheme's name.

Code that depends on the scheme uses the properties in its SchemeSpec (src/scheme/scheme_spec.hpp), and
in Python in its Scheme (python/syncopate_torch/training/scheme.py).
"""
import itertools
import re

import source

_NAME = re.compile(r'\.name = "([a-z-]+)"')
_SPEC = re.compile(r"static const SchemeSpec spec\{")


def homes_of_schemes(root):
    """Returns the file that declares each scheme, by name."""
    homes = {}
    for path in source.files(root, {".cpp"}):
        if path.is_relative_to("src/scheme"):
            text = source.read(root, path)
            for spec in _SPEC.finditer(text):
                homes[_NAME.search(text, spec.end()).group(1)] = path
    return homes


def comparisons(name):
    """Returns a pattern of code that compares something with the name of a scheme."""
    literal = f'"{re.escape(name)}"'
    return re.compile(rf"[!=]= *{literal}|{literal} *[!=]=|case {literal}")


def lists_of_names(names):
    """Returns a pattern of two or more names in a row, as in a table of schemes."""
    literal = "|".join(f'"{re.escape(name)}"' for name in sorted(names))
    return re.compile(rf"(?:{literal}), *(?:{literal})")


def check_python(root, names):
    patterns = [lists_of_names(names), *(comparisons(name) for name in names)]
    for path in source.files(root, {".py"}):
        if path.parts[0] == "python":
            text = source.read(root, path)
            for found in itertools.chain(*(pattern.finditer(text) for pattern in patterns)):
                yield f"{path}:{source.line_of(text, found.start())}: decides by {found[0]}; ask its Scheme instead"


def check(root):
    homes = homes_of_schemes(root)
    if homes:
        yield from check_python(root, homes)
    for path in source.files(root, source.CPP):
        if path.parts[0] in ("src", "cli", "sim", "torch", "bench"):
            text = source.read(root, path)
            for name, home in homes.items():
                for found in comparisons(name).finditer(text) if path != home else ():
                    yield (f"{path}:{source.line_of(text, found.start())}: "
                           f'compares with "{name}"; ask its SchemeSpec instead')
    if not homes:
        yield "src/scheme:1: no scheme is declared here any more; tell this check where they are"


if __name__ == "__main__":
    source.main(__doc__, check)
