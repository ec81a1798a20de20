"""Settings of Sphinx for the documentation as a site, with the API reference; see script/docs."""
import importlib
import os
import pathlib
import re
import sys
import unittest.mock
from xml.etree import ElementTree

from sphinx.ext.autodoc.mock import mock

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
DOCS = os.environ["DOCS"]  # the folder of the result, with what Doxygen has read of the headers
sys.path[:0] = [str(HERE), str(ROOT / "python")]

import pages  # noqa: E402
import prose  # noqa: E402
from stub import Stub  # noqa: E402

project = "Syncopate"
release = re.search(r"project\(Syncopate VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
project_copyright = "the Syncopate developers"

extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
breathe_projects = {"syncopate": f"{DOCS}/xml"}
breathe_default_project = "syncopate"
breathe_default_members = ("members", "undoc-members")
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}
add_function_parentheses = False
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}

smartquotes = False
myst_heading_anchors = 4
root_doc = "README"
exclude_patterns = ["site"]

html_theme = "furo"
html_title = f"Syncopate {release}"
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False

# The module is imported without torch, and without the library of the C interface.
autodoc_mock_imports = ["torch", "accelerate", "lightning", "pytorch_lightning"]
MODULES = ["syncopate_torch", "syncopate_torch.accelerate", "syncopate_torch.amp", "syncopate_torch.horovod",
           "syncopate_torch.lightning"]
with mock(autodoc_mock_imports), unittest.mock.patch("ctypes.CDLL"):
    STUBS = {name: Stub(importlib.import_module(name)) for name in MODULES}


def _stub_of(name):
    """The stub that declares `syncopate_torch.Job.rank`, and the name within it."""
    module = max((each for each in MODULES if name == each or name.startswith(f"{each}.")), key=len)
    return STUBS[module], name[len(module) + 1:]


def _name_as_readers_do():
    """Breathe names functions and types of a group without their namespace, and calls inline what a header defines."""
    for path in pathlib.Path(DOCS, "xml").glob("*.xml"):
        text = path.read_text(encoding="utf-8").replace(' inline="yes"', ' inline="no"')
        if path.name.startswith("group__cpp__"):
            text = re.sub(r"<name>\w+</name>\s*<qualifiedname>([\w:]+)</qualifiedname>", r"<name>\1</name>", text)
        path.write_text(text, encoding="utf-8")


def _introduce(_app, _page, text):
    """Puts the description of a group of Doxygen before it, which Breathe does not show without the group's name."""
    groups = re.compile(r"^\.\. doxygengroup:: (\w+)$", re.MULTILINE)
    text[0] = groups.sub(lambda found: f"{_description(found[1])}\n\n{found[0]}", text[0])


def _make_site_page(app, page, text):
    if app.env.doc2path(page).endswith(".md"):
        text[0] = pages.site_page(page, text[0])


def _description(group):
    page = ElementTree.parse(f"{DOCS}/xml/group__{group.replace('_', '__')}.xml")
    described = page.find("compounddef/detaileddescription//verbatim")
    return "" if described is None else described.text.removeprefix("embed:rst")


def _describe(_app, _what, _name, _described, _options, lines):
    lines[:] = prose.restructured("\n".join(lines), prose.PYTHON)


def _hide_constructor(_app, what, name, _described, _options, signature, returned):
    """Objects that a program gets from others have no constructor in the stub."""
    stub, own_name = _stub_of(name)
    hidden = what in ("class", "exception") and stub.hides(f"{own_name}.__init__")
    return ("", None) if hidden else (signature, returned)


def _skip(app, what, name, _described, skip, _options):
    """Members of a class that are none of the module's interface."""
    owner = app.env.temp_data.get("autodoc:class")
    if skip or what not in ("class", "exception") or not owner:
        return None
    stub, own_name = _stub_of(f"{app.env.temp_data['autodoc:module']}.{owner}")
    return True if stub.hides(f"{own_name}.{name}") else None


def setup(app):
    _name_as_readers_do()
    for each in STUBS.values():
        each.annotate()
    app.connect("source-read", _introduce)
    app.connect("source-read", _make_site_page)
    app.connect("autodoc-process-docstring", _describe)
    app.connect("autodoc-process-signature", _hide_constructor)
    app.connect("autodoc-skip-member", _skip)
