"""Comments and docstrings of this code base are plain text: this makes reStructuredText of them.

A text has paragraphs, lists, indented code, and labels: "Errors: ...", "Thread: ...", or the name of an argument, at
the beginning of a line. Names in backticks become links where there is something to link to, and so do those of the C
interface and of errors without them.
"""
import dataclasses
import re
import textwrap

# Words that label a part of a description.
_WORDS = r"(?:Errors|Threads?|Order|Collectives|Copies|Library|Structs|Values)(?:, errors)?"
_LABELLED_SENTENCE = re.compile(r"(?<=[.)\]]) +(?=Errors: )")
_RETURNS = re.compile(r"(?P<label>Returns) (?P<text>\S.*)")  # a sentence, which ends the description of an argument
_BACKTICKS = re.compile(r"`([^`]+)`")
_SPECIAL = re.compile(r"[\\*|]|(?<=\w)_(?!\w)")

_C_NAME = r"\b(?:syncopate|SYNCOPATE)_\w+\b(?!\*)"
_C_ROLE = "c:data"  # any role of the C domain finds a name of any kind
_ERROR = r"\b(?:ConfigError|DataError|PeerLost|TimedOut|NotFinite|ProtocolError|Cancelled|InternalError)\b"


@dataclasses.dataclass(frozen=True)
class Dialect:
    """How the text of one language becomes reStructuredText. Names and labels are regular expressions."""

    role: str  # links a name in backticks
    name: str  # what is linked, of what stands in backticks
    bare_name: str  # a name that stands without backticks
    argument: str  # what labels the description of an argument
    code: str  # the language of indented code

    def role_of_bare(self, name):
        return _C_ROLE if re.fullmatch(_C_NAME, name) else self.role


PYTHON = Dialect("py:obj", r"[A-Za-z][\w.]*(?:\(\))?", _ERROR, r"[a-z_]+(?:, [a-z_]+)*", "python")
C = Dialect(_C_ROLE, _C_NAME, _C_NAME, r"`[a-z_]+`", "c")
CPP = Dialect("cpp:any", r"[A-Za-z][\w:]*(?:\(\))?", f"{_C_NAME}|{_ERROR}", r"`[a-z_]+`", "cpp")


def markup(text, dialect):
    """Inline markup of a paragraph: literals and links, and everything else as it stands."""
    pieces = []
    for index, piece in enumerate(_BACKTICKS.split(text)):
        if index % 2:
            pieces.append(_role(dialect.role, piece) if re.fullmatch(dialect.name, piece) else f"\\ ``{piece}``\\ ")
        else:
            pieces.append(_link_bare_names(piece, dialect))
    return re.sub(r"(^|\s)\\ |\\ (\s|$)", r"\1\2", "".join(pieces))


def _role(role, name):
    return f"\\ :{role}:`{name}`\\ "


def _link_bare_names(text, dialect):
    pieces = []
    for index, piece in enumerate(re.split(f"({dialect.bare_name})", text)):
        is_name = index % 2
        pieces.append(_role(dialect.role_of_bare(piece), piece) if is_name else _SPECIAL.sub(r"\\\g<0>", piece))
    return "".join(pieces)


def _parts(lines, dialect):
    """Yields (label or "", text) of the parts of a paragraph."""
    labelled = re.compile(rf"(?P<label>{_WORDS}|{dialect.argument}):\s+(?P<text>\S.*)")
    label, words = "", []
    for line in lines:
        for sentence in _LABELLED_SENTENCE.split(line.strip()):
            found = labelled.fullmatch(sentence) or (label and _RETURNS.fullmatch(sentence))
            if found and (not words or words[-1].endswith((".", ")", "]", ":"))):
                if words:
                    yield label, " ".join(words)
                label, words = found["label"], [found["text"]]
            else:
                words.append(sentence)
    yield label, " ".join(words)


def _fields(label, text, dialect):
    names = [label] if label[0].isupper() else ["param " + name.strip(" `") for name in label.split(",")]
    return [f":{name}: {markup(text, dialect)}" for name in names]


def _is_code(lines):
    return all(line.startswith("    ") for line in lines)


def _paragraphs(text):
    """The paragraphs of a text as lists of lines; what is indented is one, with its empty lines."""
    lines = textwrap.dedent(text.expandtabs()).strip("\n")
    result = []
    for block in filter(None, (block.strip("\n").splitlines() for block in re.split(r"\n[ ]*\n", lines))):
        if result and _is_code(block) and _is_code(filter(None, result[-1])):
            result[-1] += ["", *block]
        else:
            result.append(block)
    return result


def restructured(text, dialect):
    """The lines of a plain text in reStructuredText."""
    result, in_fields = [], False
    for lines in _paragraphs(text):
        if _is_code(filter(None, lines)):
            result += ["", f".. code-block:: {dialect.code}", "", *lines, ""]
            continue
        if lines[0].startswith("- "):
            items = re.split(r"^- ", "\n".join(lines), flags=re.MULTILINE)[1:]
            result += ["", *(f"- {markup(' '.join(item.split()), dialect)}" for item in items), ""]
            continue
        for label, words in _parts(lines, dialect):
            if not label:
                result += ["", markup(words, dialect), ""]
            else:
                result += ([] if in_fields else [""]) + _fields(label, words, dialect)
            in_fields = bool(label)
    return result
