"""Functions of all style checks: they list the project's files, strip comments from C++, and print the result."""
import argparse
import pathlib
import re
import sys

CPP = {".hpp", ".cpp"}
_FOREIGN = {".git", "build", "runs", "node_modules", "__pycache__"}
_OUTPUT = {"comparisons"}  # folders that commands write beside the sources
_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)


def files(root, suffixes):
    """Returns the project's own files with these suffixes, as sorted paths relative to `root`."""
    found = []
    for path in pathlib.Path(root).rglob("*"):
        relative = path.relative_to(root)
        foreign = _FOREIGN & set(relative.parts) or relative.parts[0] in _OUTPUT
        if path.suffix in suffixes and path.is_file() and not foreign:
            found.append(relative)
    return sorted(found)


def read(root, path):
    return (pathlib.Path(root) / path).read_text(encoding="utf-8")


def code(text):
    """Returns C++ without comments and the contents of literals; every line keeps its number."""

    def blank(match):
        token = match.group()
        lines = "\n" * token.count("\n")
        if token.startswith(("//", "/*")):
            return lines or " "
        return '""' + lines if token[0] in 'R"' else "' '"

    return _TOKEN.sub(blank, text)


def comments(text):
    """Yields (line number, text) of every comment."""
    for match in _TOKEN.finditer(text):
        if match.group().startswith(("//", "/*")):
            yield line_of(text, match.start()), match.group()


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def main(description, check):
    """Runs `check(root)`, which yields complaints "path:line: what to do"; exits 1 if there are any."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("root", type=pathlib.Path, help="the repository")
    complaints = list(check(parser.parse_args().root))
    print("\n".join(complaints) or "ok")
    sys.exit(bool(complaints))
