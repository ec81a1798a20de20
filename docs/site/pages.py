"""Makes pages of the site of pages that are also read on their own: links that leave the docs, and lists of pages.

In the repository a page may link to any file, and a list of pages is a table of links. The site has the pages of docs/
only, and builds its navigation from toctrees.
"""
import posixpath
import re

# Pages that script/docs makes: below a page that speaks of them, and below a heading of the first page.
_MADE = {"internals/quality": ["tests"]}
_MADE_UNDER = {"Reference": ["reference/commands"]}
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\(\s*(?P<target>[^)\s#]+)(?:#[^)\s]*)?\)")
_HEADING = re.compile(r"^## +(.*)$")
_FENCED = re.compile(r"(^(```|~~~).*?^\2[^\n]*$)", re.MULTILINE | re.DOTALL)


def site_page(page, text):
    """The Markdown that Sphinx reads for `page`, a path below docs/ without its ending."""
    pieces = _FENCED.split(text)  # prose, code, its fence, prose, ...
    text = "".join(code + _named_if_outside(page, prose) for prose, code in zip(pieces[::3], ["", *pieces[1::3]]))
    if page in _MADE:
        return text + _toctree("", _MADE[page])
    return text + _toctrees(page, text) if posixpath.basename(page) == "README" else text


def _named_if_outside(page, text):
    """Replaces a link to a file outside docs/ by its text and the path of the file in the repository."""

    def replace(link):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link["target"]))
        if re.match(r"[a-z]+:", link["target"]) or path.startswith("docs/"):
            return link[0]
        words = link["text"].strip("`")
        return f"`{path}`" if words == path else f"{link['text']} (`{path}`)"

    return _LINK.sub(replace, text)


def _toctrees(page, text):
    """A hidden toctree for each heading under which there are links to other pages."""
    caption, entries = "", {}
    for line in text.split("\n"):
        heading = _HEADING.match(line)
        caption = heading[1] if heading else caption
        for link in _LINK.finditer(line):
            target = re.sub(r"\.(?:md|rst)$", "", link["target"])
            known = any(target in each for each in entries.values())
            if target != link["target"] and not target.startswith("../") and not known:
                entries.setdefault(caption, []).append(target)
    return "".join(_toctree(caption, pages + _MADE_UNDER.get(caption, [])) for caption, pages in entries.items())


def _toctree(caption, pages):
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "", "```{toctree}", *options, "", *pages, "```", ""])
