#!/usr/bin/env python3
"""The targets of links in the documentation exist: files, folders and headings.

The check covers relative links and images in Markdown files, and paths in backticks, in Markdown and
in comments of sources, that begin with a folder of the repository.
"""
import pathlib
import re

import source

FOLDERS = "src|torch|python|cli|sim|tests|bench|docs|script|clusters|examples|cmake"
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"!?\[[^\]]*\]\(\s*([^)\s]+)[^)]*\)|(?:src|href)=\"([^\"]+)\"")
_REFERENCE = re.compile(r"^\[([^\]\n]+)\]:\s*(\S+)", re.MULTILINE)
_USED = re.compile(r"\]\[([^\]\n]+)\]")
_PATH = re.compile(rf"`((?:{FOLDERS})/[\w./\-]*)`")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


def without_fences(text):
    return _FENCE.sub(lambda match: "\n" * match.group().count("\n"), text)


def anchors(text):
    """Returns the anchors of a page's headings, as GitHub names them."""
    seen, found = {}, set()
    for heading in _HEADING.findall(without_fences(text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def broken(root, path, target):
    """Returns what is wrong with a link from `path` to `target`, or None."""
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = target.partition("#")
    place = (root / path.parent / name) if name else root / path
    if not place.exists():
        return f"{target} does not exist"
    if anchor and anchor not in anchors(place.read_text(encoding="utf-8")):
        return f"{target}: no such heading"
    return None


def check_markdown(root, path):
    text = without_fences(source.read(root, path))
    prose = _INLINE_CODE.sub("` `", text)
    for match in _LINK.finditer(prose):
        complaint = broken(root, path, match.group(1) or match.group(2))
        if complaint:
            yield f"{path}:{source.line_of(prose, match.start())}: {complaint}"
    targets = {match.group(1): match for match in _REFERENCE.finditer(prose)}
    for match in targets.values():
        complaint = broken(root, path, match.group(2))
        if complaint:
            yield f"{path}:{source.line_of(prose, match.start())}: {complaint}"
    for match in _USED.finditer(prose):
        if match.group(1) not in targets:
            yield f"{path}:{source.line_of(prose, match.start())}: no target for [{match.group(1)}]"
    yield from check_paths(root, path, [(1, text)])


def check_paths(root, path, pieces):
    """Yields complaints about paths in backticks in `pieces`, each (number of its first line, text)."""
    for first, text in pieces:
        for match in _PATH.finditer(text):
            if not (root / match.group(1)).exists():
                line = first + text.count("\n", 0, match.start())
                yield f"{path}:{line}: {match.group(1)} does not exist"


def check(root):
    root = pathlib.Path(root)
    for path in source.files(root, {".md"}):
        yield from check_markdown(root, path)
    for path in source.files(root, source.CPP):
        yield from check_paths(root, path, source.comments(source.read(root, path)))


if __name__ == "__main__":
    source.main(__doc__, check)
