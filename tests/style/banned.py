#!/usr/bin/env python3
"""Calls that are allowed in one place only, and habits that are not allowed at all."""
import dataclasses
import fnmatch
import re

import source


@dataclasses.dataclass(frozen=True)
class Ban:
    """A ban on code that matches `pattern` outside the files `homes` (file patterns); `advice` says what to write instead."""

    pattern: str
    advice: str
    homes: tuple = ()


BANS = [
    Ban(
        r"this_thread::sleep|\b(?:usleep|nanosleep|sleep)\s*\(",
        "wait through World, or for the event itself",
        ("src/runtime/real_world.cpp",),
    ),
    Ban(
        r"\b(?:steady_clock|high_resolution_clock)\b",
        "time comes from a Clock",
        ("src/runtime/real_world.cpp", "src/transport/steady_time.hpp", "src/transport/tcp/*", "bench/*", "examples/*"),
    ),
    Ban(
        r"\bclock_gettime\b",
        "the CPU time of a process is read in one place",
        ("src/job/launch/environment.cpp",),
    ),
    Ban(
        r"\b(?:system_clock|gettimeofday|localtime(?:_r)?|gmtime(?:_r)?|strftime)\b|std::time\b",
        "the wall clock names run folders, in cli/ and src/job/, and nothing else",
        ("cli/*", "src/job/*"),
    ),
    Ban(
        r"\b(?:random_device|mt19937(?:_64)?|(?<!torch::)s?rand|\w+_distribution)\b\s*[({<>]",
        "draw from a seeded Random (base/random.hpp)",
        ("src/base/random.*",),
    ),
    Ban(
        r"\b(?:secure_)?getenv\b|\benviron\b",
        "the environment is read in cli/ and src/job/; pass a value",
        ("cli/*", "src/job/*", "tests/*"),
    ),
    Ban(
        r"\b(?:un)?setenv\b|\bputenv\b",
        "the environment is written in cli/ and src/job/ alone",
        ("cli/*", "src/job/*", "tests/process/*", "tests/unit/cli/*", "tests/unit/job/*"),
    ),
    Ban(
        r"(?:\bstd|(?<![\w>]))::(?:abort|terminate|_?exit|quick_exit)\s*\("
        r"|(?<![\w.>:])_?exit\s*\(|\b_Exit\s*\(",
        "throw an Error; only cli/ and src/job/ end a process",
        ("cli/*", "src/job/*", "tests/process/*", "tests/unit/cli/*", "tests/unit/job/*", "bench/peer_*"),
    ),
    Ban(
        r"std::(?:cout|cerr|clog)\b|\b(?:f?printf|puts|putchar)\s*\(|fmt::print\b",
        "only cli/ writes to the user; the rest logs (base/log.hpp)",
        ("cli/*", "src/job/*", "examples/*", "tests/unit/cli/*", "tests/unit/job/*", "tests/torch/programs/*", "bench/*"),
    ),
    Ban(
        r"\bnew\s+[\w:(]|\bdelete\s*(?:\[\s*\])?\s*[\w(*]",
        "own memory through a container or std::make_unique",
    ),
    Ban(
        r"std::(?:j?thread\b(?!::)|async\b)|\bpthread_create\b",
        "start tasks with World::spawn",
        ("src/runtime/real_world.*", "src/kernels/thread_pool.*", "src/transport/tcp/*", "src/transport/mpi/engine.*", "include/syncopate/training.hpp", "tests/*", "bench/*"),
    ),
    Ban(r"#\s*(?:if|ifdef|ifndef)\b[^\n]*\bSYNCOPATE_", "the build chooses files, not lines"),
]

_SWALLOW = re.compile(r"\bcatch\s*\(\s*\.\.\.\s*\)\s*\{")
_EMPTY_CATCH = re.compile(r"\bcatch\s*\([^)]*\)\s*\{\s*\}")
_NOLINT = re.compile(r"NOLINT(?:NEXTLINE|BEGIN)?(?!END)\b(?!\([\w.,\-* ]+\):? *\W*\w)")
_UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
_MACHINE = re.compile(r"(?<![\w.>}])/(?:home/\w+|root)/")
TEXTS = source.CPP | {".py", ".md", ".sh", ".txt", ".toml", ".proto", ".cmake", ".json", ".yml"}


def body(text, start):
    """Returns the text between the brace at `start` and its partner."""
    depth = 0
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[start + 1 : position]
    return text[start + 1 :]


def bans(path, text):
    for ban in BANS:
        if not any(fnmatch.fnmatch(path.as_posix(), home) for home in ban.homes):
            for match in re.finditer(ban.pattern, text):
                yield match.start(), f"`{match.group().strip()}`: {ban.advice}"


def swallowed(path, text, original):
    """Yields catch clauses that drop an error. `text` is the file without comments, `original` with them.

    Tests may catch every exception to see that one is thrown, but an empty clause needs a reason there, too.
    """
    for match in _SWALLOW.finditer(text if path.parts[0] != "tests" else ""):
        if not re.search(r"\bthrow\b|current_exception|\breturn\b|_exit\b", body(text, match.end() - 1)):
            yield match.start(), "catch (...) must pass the error on"
    lines = original.splitlines()
    for match in _EMPTY_CATCH.finditer(text):
        first, last = (source.line_of(text, at) for at in (match.start(), match.end()))
        if not any("//" in line for line in lines[first - 1 : last]):
            yield match.start(), "an error dropped needs the reason in its place"


def habits(path, text):
    if path.suffix == ".hpp":
        for match in re.finditer(r"\busing\s+namespace\b", text):
            yield match.start(), "no `using namespace` in a header"
        if "#pragma once" not in text and not path.name.endswith("-inl.hpp"):
            yield 0, "a header begins with #pragma once"


def check_cpp(path, original):
    text = source.code(original)
    for found in (bans(path, text), swallowed(path, text, original), habits(path, text)):
        for position, complaint in found:
            yield f"{path}:{source.line_of(text, position)}: {complaint}"


def check_text(path, text):
    for pattern, complaint in (
        (_UNFINISHED, "unfinished work: finish it, or open an issue"),
        (_MACHINE, "a path of somebody's machine"),
        (_NOLINT, "a NOLINT names its check and says why: NOLINT(check): reason"),
    ):
        for match in pattern.finditer(text):
            yield f"{path}:{source.line_of(text, match.start())}: {complaint}"


def check(root):
    for path in source.files(root, TEXTS):
        if path.parts[:2] == ("tests", "style"):
            continue  # the tests of the checks consist of bad examples
        text = source.read(root, path)
        if path.suffix in source.CPP:
            yield from check_cpp(path, text)
        yield from check_text(path, text)


if __name__ == "__main__":
    source.main(__doc__, check)
