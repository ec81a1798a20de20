#!/usr/bin/env python3
"""Makes what Doxygen reads of a public header: plain comments become descriptions, parts of the header become topics.

Usage: header_filter.py HEADER    (Doxygen's INPUT_FILTER)

A topic is a group of Doxygen, which one page shows. In the C header it begins with `/* ---- Title ---- */`, and a
comment that stands by itself belongs to its description. Each C++ header is a topic; the comment before its namespace
describes it.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import prose  # noqa: E402

# With the rest of its lines.
_COMMENT = re.compile(
    r"""(?P<before>[^\n]*?)
        (?: /\*(?P<block>.*?)\*/
          | (?P<lines> ///<[^\n]*(?:\n[ ]*///<[^\n]*)* | ///[^\n]*(?:\n[ ]*///[^\n]*)* ) )
        (?P<after>[^\n]*\n?)""", re.DOTALL | re.VERBOSE)  # fmt: skip
_SECTION = re.compile(r"\s*----\s*(.*?)\s*----\s*")
# What is of no use to a reader of the reference.
_HIDDEN = re.compile(
    r"^#\s*define SYNCOPATE_(?:H|API)\b.*$|^.*\) = delete;$|^.*~\w+\(\) = default;$|^ +using \w+::\w+;$|^ +friend .*$",
    re.MULTILINE)  # fmt: skip

# A member that is defined behind its class, which declares and describes it.
_DEFINITION = re.compile(r"^(?:///[^\n]*\n)*(?:inline|template)\b[^;{}]*?\b[A-Z]\w*::~?\w+\(.*?^\}\n",
                         re.MULTILINE | re.DOTALL)  # fmt: skip
_END_OF_C = "#ifdef __cplusplus\n}"


def described(text, dialect, opening="/**", command=""):
    """A comment of Doxygen with this plain text."""
    lines = prose.restructured(text, dialect)
    return f"{opening} {command}\n@verbatim embed:rst\n" + "\n".join(lines) + "\n@endverbatim */"


def plain(found):
    """The text of a comment without what marks it as one."""
    if found["lines"] is not None:
        return "\n".join(re.sub(r"^[ \t]*///<?[ ]?", "", line) for line in found["lines"].split("\n"))
    first, *others = found["block"].split("\n")
    return "\n".join([first.removeprefix(" "), *(re.sub(r"^[ \t]*\*?[ ]?", "", line) for line in others)])


class CHeader:
    """The C header with a group for each of its parts; before the first one, group c."""

    def __init__(self, text):
        self._text = text
        self._topics = {}  # title and description, by group
        self._group = ""

    def filtered(self):
        text = _COMMENT.sub(self._replaced, self._text).replace(_END_OF_C, f"/** @}} */\n{_END_OF_C}")
        for group, (title, about) in self._topics.items():
            text = text.replace(f"\0{group}\0", _topic(group, title, about, prose.C))
        return text

    def _replaced(self, found):
        content = plain(found)
        section = _SECTION.fullmatch(content)
        if section or not self._topics:
            return self._opened(section[1] if section else "C", "" if section else content)
        if found["before"].strip():
            return f"{found['before']}{described(content, prose.C, '/**<')}{found['after']}"
        if self._text.startswith("\n", found.end()):  # it stands by itself
            self._topics[self._group][1] += "\n\n" + content
            return "\n"
        return f"{described(content, prose.C)}{found['after']}"

    def _opened(self, title, about):
        closed = "/** @} */\n" if self._topics else ""
        self._group = "c" if not self._topics else "c_" + re.sub(r"\W+", "_", title.lower())
        self._topics[self._group] = [title, about]
        return f"{closed}\0{self._group}\0"  # until all of its description is known


def _topic(group, title, about, dialect):
    """The beginning of a group."""
    return described(about, dialect, command=f"@defgroup {group} {title}\n") + "\n/** @{ */\n"


def of_cpp(text, group):
    """A C++ header as one group, which the comment before its namespace describes."""
    text = _DEFINITION.sub("", text)
    about = ""

    def replaced(found):
        nonlocal about
        if found["lines"] is None:
            return found.group()
        content = plain(found)
        if found["before"].strip():
            return f"{found['before']}{described(content, prose.CPP, '/**<')}{found['after']}"
        if text.startswith("namespace syncopate {", found.end()):
            about = content
            return "\n"
        return f"{described(content, prose.CPP)}{found['after']}"

    filtered = _COMMENT.sub(replaced, text)
    # The inline namespace would be a part of every name.
    filtered = filtered.replace("inline namespace v0 {\n", _topic(group, group, about, prose.CPP), 1)
    return filtered.replace("}  // namespace v0\n", "/** @} */\n", 1)


def main():
    header = pathlib.Path(sys.argv[1])
    text = _HIDDEN.sub("", header.read_text(encoding="utf-8"))
    print(CHeader(text).filtered() if header.suffix == ".h" else of_cpp(text, f"cpp_{header.stem}"))


if __name__ == "__main__":
    main()
