#!/usr/bin/env python3
"""A scheme is known by its declaration: no code outside its own file compares with its name.

What depends on a scheme asks its SchemeSpec (src/scheme/scheme_spec.hpp).
"""
import re

import source

_NAME = re.compile(r'\.name = "([a-z-]+)"')
_SPEC = re.compile(r"static const SchemeSpec spec\{")


def homes_of_schemes(root):
    """The file that declares each scheme, by its name."""
    homes = {}
    for path in source.files(root, {".cpp"}):
        if path.is_relative_to("src/scheme"):
            text = source.read(root, path)
            for spec in _SPEC.finditer(text):
                homes[_NAME.search(text, spec.end()).group(1)] = path
    return homes


def comparisons(name):
    """Code that compares something with the name of a scheme."""
    literal = f'"{re.escape(name)}"'
    return re.compile(rf"[!=]= *{literal}|{literal} *[!=]=|case {literal}")


def check(root):
    homes = homes_of_schemes(root)
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
