#!/usr/bin/env python3
"""Code, help and documentation use one word for each concept, that of the field: words that were replaced do not return.

The glossary holds the words that this project defines; PyTorch's and MPI's manuals define the others.
"""
import re

import source

# The files that are checked: identifiers, comments, messages and pages.
TEXTS = source.CPP | {".py", ".md", ".proto", ".inc", ".toml", ".cmake", ".txt"}
FOLDERS = {"src", "cli", "sim", "torch", "include", "tests", "bench", "script", "docs", "examples",
           "comparisons", "clusters", "README.md", "CONTRIBUTING.md"}
# Kept benchmark results use the words of the time at which they were measured.
TABLES = ("bench", "results")

# (a regular expression, what to write instead). Each pattern is applied to a whole file.
WORDS = [
    (r"\b[Mm]eetings?\b|Meeting|meeting_|_meeting", "synchronization round; to synchronize"),
    (r"\bworkers? meets?\b|\bmeet each other\b", "synchronize"),
    (r"(?<!network )\b[Cc]ards?\b(?! of networks)|CardTable|exchange_cards", "step info, round info"),
    (r"\b(?:adds?|adding|added) (?:them |it )?up\b", "allreduce, reduce, aggregation"),
    (r"\b(?:BucketSums|BucketBook|CompressedSums)\b", "BucketReducer, BucketTracker, CompressedAllreduce"),
    (r"\b[Pp]rices?\b|\b[Pp]riced\b|\b[Pp]ricing\b", "cost, cost model"),
    (r"\b[Dd]esks?\b|Desk\b", "worker slot (server); control block (shared memory)"),
    (r"\b[Gg]aits?\b", "sync mode"),
    (r"\b[Ww]ish(?:es|ed)?\b", "requested action, StepRequests"),
    (r"\b[Ff]ates?\b", "push status"),
    (r"\b[Hh]ubs?\b|hub_|_hub\b", "coordinator endpoint"),
    (r"\b[Ll]oans?\b|\b[Ll]ends?\b|\blent\b|\blending\b", "borrowed buffer, send handle"),
    (r"\bLetter\b|\bletters?_\b|\bletter\b", "queued message"),
    (r"\b[Bb]ells?\b", "wake-up event"),
    (r"\b[Ss]trangers?\b", "unmatched sender"),
    (r"\b[Ee]ars?\b|\b[Hh]earts?\b", "receive loop; heartbeat task"),
    (r"\b\w*[Tt]ellers?\b", "gradient hook, observer"),
    (r"\btells?\b|\btold\b|\bhears?\b", "report, notify, on_..."),
    (r"\b[Cc]rews?\b|\bhands at hand\b", "thread pool, threads"),
    (r"\b[Ss]hadows?\b(?! memory)|Shadow", "last-sent copy"),
    (r"\b(?:Surroundings|Residents|Candidate)\b", "scheme context, in-process members, role runner"),
    (r"\b(?:PaceLine|ModelKeeper|KeptModel|Recurrence|BatchCutter|GradientGate)\b",
     "PacerClient, SnapshotWriter, ModelSnapshot, PeriodicTrigger, MicroBatcher, PacedGradientSink"),
    (r"\bleft out\b", "dropped"),
    (r"\bgo(?:es)? apart\b", "runs asynchronously"),
    (r"\blikewise\b", "also, or say it again"),
    (r"\banew\b", "again"),
    (r"\bso many\b", "n"),
    (r"\b[Ww]hoever\b", "name the thing: the worker, the caller, the buffer"),
    (r"(?:///?|^#) Who\b", "name the thing: the worker, the caller, the buffer"),
    (r"\bthe (?:hand|house)\b", "style; code base"),
]

_PATTERNS = [(re.compile(pattern, re.MULTILINE), advice) for pattern, advice in WORDS]


def is_read(path):
    parts = path.parts
    return parts[0] in FOLDERS and parts[:2] not in (TABLES, ("tests", "style"))


def check_text(path, text):
    for pattern, advice in _PATTERNS:
        for found in pattern.finditer(text):
            yield f'{path}:{source.line_of(text, found.start())}: "{found.group().strip()}": write {advice}'


def check(root):
    for path in source.files(root, TEXTS):
        if is_read(path):
            yield from check_text(path, source.read(root, path))


if __name__ == "__main__":
    source.main(__doc__, check)
