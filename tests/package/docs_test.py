#!/usr/bin/python3
"""Goal:   the documentation builds without a warning, and its API reference describes all that a script or a program may
        use.
Method: script/docs builds it in a temporary folder, without Syncopate's library, and treats a warning as an error. The
        test reads the public names from the module's `__all__`, its stub and the headers, and compares them with the
        index that Sphinx writes for other projects and with the descriptions on the pages.
"""
import ast
import collections
import html
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

SOURCE = pathlib.Path(os.environ.get("SYNCOPATE_SOURCE", pathlib.Path(__file__).parents[2]))
INCLUDE = SOURCE / "include"
MODULE = SOURCE / "python/syncopate_torch"
API = "reference/api"
# Members of structs and values of enumerations need no description.
SELF_EXPLAINING = re.compile(r"(?:c|cpp):(?:member|enumerator|functionParam|templateParam)|py:module|std:.*")

sys.path.insert(0, str(SOURCE / "docs/site"))
import pages  # noqa: E402  (beside the settings of Sphinx)
import prose  # noqa: E402
import tests_page  # noqa: E402


def entries(pages):
    """Yields (kind, name, page, anchor) of each entry of Sphinx's index."""
    head, _, rest = (pages / "objects.inv").read_bytes().partition(b"zlib.\n")
    assert b"inventory version 2" in head, head
    for line in zlib.decompress(rest).decode().splitlines():
        name, kind, place = re.fullmatch(r"(.+?) (\S+:\S+) -?\d+ (\S*) .*", line).groups()
        page, _, anchor = place.partition("#")
        yield kind, name, page, anchor.replace("$", name)


class Descriptions(html.parser.HTMLParser):
    """Text of each entry of a page, by its anchor, without the text of nested entries."""

    _ENTRY = re.compile(r"(?:py|c|cpp) ")
    _NO_TEXT = re.compile(r"\s*(?:#include <\S+>|Subclassed by .*|Values:)?\s*")

    def __init__(self, page):
        super().__init__()
        self.texts = collections.defaultdict(str)
        self._opened = []  # for each open list: the anchors of its last entry, or None if it is no list of entries
        self._inside, self._paragraph, self._title = False, "", False
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "dl":
            self._end_paragraph()
            self._opened.append([] if self._ENTRY.match(attributes.get("class", "")) else None)
        elif tag == "dt" and self._opened and self._opened[-1] is not None:
            self._opened[-1], self._inside = [attributes.get("id")], False
        elif tag == "dd":
            self._inside = True
        elif tag == "p":
            self._title = "breathe-sectiondef-title" in attributes.get("class", "")

    def handle_endtag(self, tag):
        if tag in ("p", "dd", "dl", "div"):
            self._end_paragraph()
        if tag == "dl":
            self._opened.pop()

    def handle_data(self, data):
        if self._inside and not self._title:
            self._paragraph += data

    def _end_paragraph(self):
        anchors = next((each for each in reversed(self._opened) if each is not None), [])
        if not self._NO_TEXT.fullmatch(self._paragraph):
            for anchor in anchors:
                self.texts[anchor] += self._paragraph
        self._paragraph = ""


def c_names():
    text = (INCLUDE / "syncopate.h").read_text(encoding="utf-8")
    functions = re.findall(r"^SYNCOPATE_API [^;]*?\b(syncopate_\w+)\(", text, re.MULTILINE)
    types = re.findall(r"^typedef (?:(?:struct|enum) (\w+)|[^;]*\(\*(\w+)\))", text, re.MULTILINE)
    return {*functions, *("".join(names) for names in types), "SYNCOPATE_ANY"}


def cpp_names():
    """The classes, types and functions of the headers, except those in namespace `detail`."""
    names = set()
    for header in INCLUDE.glob("syncopate/*.hpp"):
        text = re.sub(r"^namespace detail \{.*?^\}  // namespace detail$", "", header.read_text(encoding="utf-8"),
                      flags=re.MULTILINE | re.DOTALL)  # fmt: skip
        for pattern in (r"^(?:class|struct) (\w+)\b[^;]*\{", r"^using (\w+) =", r"^inline [\w:&*<> ]*? (\w+)\("):
            names |= set(re.findall(pattern, text, re.MULTILINE))
    return {f"syncopate::{name}" for name in names}


def members(node):
    for each in node.body:
        if isinstance(each, ast.AnnAssign):
            yield each.target.id, each
        elif isinstance(each, (ast.FunctionDef, ast.ClassDef)) and not each.name.startswith("_"):
            yield each.name, each


def source_names(path, prefix):
    """The functions and classes of a module."""
    return {f"{prefix}.{name}" for name, _ in members(ast.parse(path.read_text(encoding="utf-8")))}


def stub_names(path, prefix, listed):
    """Yields the listed functions and classes that a stub declares, and the methods and attributes of the classes."""
    for name, node in members(ast.parse(path.read_text(encoding="utf-8"))):
        if name in listed:
            yield f"{prefix}.{name}"
            if isinstance(node, ast.ClassDef):
                yield from (f"{prefix}.{name}.{member}" for member, _ in members(node))


def listed_names():
    """`__all__` of the module."""
    for node in ast.parse((MODULE / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    raise AssertionError("the module has no __all__")


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        looked = subprocess.run([SOURCE / "script/bootstrap", "--docs", "--print"], stdout=subprocess.PIPE,
                                text=True, check=False)  # fmt: skip
        if looked.returncode != 0:
            missing = " ".join(looked.stdout.split())
            raise unittest.SkipTest(f"missing: {missing}; script/bootstrap --docs installs what it needs")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="syncopate-docs-"))
        cls.addClassCleanup(shutil.rmtree, folder)
        variables = {"SYNCOPATE_NO_BOOTSTRAP": "1", "SYNCOPATE_LIBRARY": "/nowhere/libsyncopate.so.0"}
        done = subprocess.run([SOURCE / "script/docs", folder], env={**os.environ, **variables}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(f"script/docs failed:\n{done.stdout}")
        cls.pages = pathlib.Path(done.stdout.splitlines()[-1]).parent
        cls.entries = list(entries(cls.pages))
        pages = {page for kind, _, page, _ in cls.entries if not SELF_EXPLAINING.fullmatch(kind)}
        cls.descriptions = {page: Descriptions(cls.pages / page).texts for page in pages}

    def expect(self, names, domain):
        self.assertGreater(len(names), 5)
        known = {name for kind, name, _, _ in self.entries if kind.startswith(f"{domain}:")}
        self.assertEqual(sorted(names - known), [], "write docstrings, and add what is new to a page of docs/reference/api")

    def test_the_python_module_is_there(self):
        listed = listed_names()
        names = set(stub_names(MODULE / "__init__.pyi", "syncopate_torch", listed))
        self.assertEqual(sorted(listed - {name.split(".")[1] for name in names}), [])
        for module in ("accelerate", "amp", "horovod"):
            names |= source_names(MODULE / f"{module}.py", f"syncopate_torch.{module}")
        names.add("syncopate_torch.lightning.SyncopateStrategy")  # most methods are Lightning's
        self.expect(names, "py")

    def test_the_c_interface_is_there(self):
        self.expect(c_names(), "c")

    def test_the_cpp_headers_are_there(self):
        self.expect(cpp_names(), "cpp")

    def test_every_entry_has_a_description(self):
        bare = [f"{kind} {name}" for kind, name, page, anchor in self.entries
                if not SELF_EXPLAINING.fullmatch(kind) and not self.descriptions[page][anchor]]
        self.assertEqual(bare, [], "write their docstrings, or comments in the headers")

    def test_signatures_have_types_and_defaults(self):
        def page(name):
            return html.unescape(re.sub(r"<[^>]+>", "", (self.pages / API / name).read_text(encoding="utf-8")))

        self.assertIn("allreduce(tensor: torch.Tensor, op: str = 'sum') → torch.Tensor", page("python/group.html"))
        self.assertIn("class syncopate_torch.amp.GradScaler(job: Job, *arguments: Any, **options: Any)", page("python/amp.html"))
        self.assertIn("syncopate_status syncopate_barrier(syncopate_group *group, syncopate_work **work)",
                      page("c/collectives.html"))
        self.assertIn("TorchJob syncopate::init(const InitOptions &options = {})", page("cpp/torch.html"))

    def test_nothing_is_left_of_the_markup(self):
        for path in (self.pages / API).rglob("*.html"):
            text = re.sub(r"<script.*?</script>|<[^>]+>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            self.assertEqual(re.findall(r".*(?:`|:\w+:\w+:|embed|\bv0\b|\\ ).*", text), [], path.name)

    def test_every_page_is_in_the_navigation(self):
        front = (self.pages / "README.html").read_text(encoding="utf-8")
        for path in (SOURCE / "docs").glob("*/*.md"):
            if path.parent.name != "site":
                self.assertIn(f'href="{path.parent.name}/{path.stem}.html"', front)


class Pages(unittest.TestCase):
    def test_a_link_that_leaves_the_docs_names_the_file(self):
        self.assertEqual(pages.site_page("guides/a", "See [b](../b.md#x), [how](../../CONTRIBUTING.md) and [`src/x`](../../src/x)"),
                         "See [b](../b.md#x), how (`CONTRIBUTING.md`) and `src/x`")
        self.assertEqual(pages.site_page("a", "[web](https://example.org/) and\n```\n[x](../y)\n```\n[y](../z)"),
                         "[web](https://example.org/) and\n```\n[x](../y)\n```\ny (`z`)")

    def test_a_list_of_pages_is_a_toctree_for_each_heading(self):
        made = pages.site_page("README", "# A\n\n## One\n[b](x/b.md), [c](c.md#d)\n\n## Two\n[b](x/b.md) [e](e.rst)\n")
        self.assertEqual(re.findall(r"\{toctree\}\n(.*?)\n```", made, re.DOTALL),
                         [":hidden:\n:caption: One\n\nx/b\nc", ":hidden:\n:caption: Two\n\ne"])


class TestsPage(unittest.TestCase):
    def test_goals_and_cases(self):
        self.assertEqual(tests_page.cpp_test("// Goal:   a is\n//         b.\n// Method: c.\n\nTEST(X, HasTheSameBits) {\nTEST_P(X, Y)"),
                         ("a is b.", ["HasTheSameBits", "Y"]))
        self.assertEqual(tests_page.python_test('"""Checks it.\n\nMore.\n"""\nclass A:\n    def test_one_thing(self): pass\n'),
                         ("Checks it.", ["test_one_thing"]))
        self.assertEqual([tests_page.words_of(each) for each in ("HasTheSameBits", "ReadsJSONLines", "test_one_thing")],
                         ["has the same bits", "reads JSON lines", "one thing"])

    def test_every_file_of_tests_states_its_goal(self):
        listed = tests_page.page(SOURCE)
        self.assertGreater(listed.count("\n**"), 250)
        self.assertNotRegex(listed, r"\*\*: \n")


class Prose(unittest.TestCase):
    def text(self, plain, dialect=prose.PYTHON):
        return [line for line in prose.restructured(plain, dialect) if line]

    def test_lines_of_a_paragraph_are_joined(self):
        self.assertEqual(self.text("One\ntwo.\n\nThree."), ["One two.", "Three."])

    def test_labels_become_fields(self):
        self.assertEqual(self.text("It waits. Errors: ConfigError, for\nranks."),
                         ["It waits.", ":Errors: :py:obj:`ConfigError`\\ , for ranks."])
        self.assertEqual(self.text("Does it.\n\nfirst, other: numbers\n  of samples.\nReturns a sum.\nThreads: any."),
                         ["Does it.", ":param first: numbers of samples.", ":param other: numbers of samples.",
                          ":Returns: a sum.", ":Threads: any."])
        self.assertEqual(self.text("Receives.\n`from`: a worker.", prose.C), ["Receives.", ":param from: a worker."])
        self.assertEqual(self.text("A sentence goes\non: like this."), ["A sentence goes on: like this."])

    def test_items_stay_a_list(self):
        self.assertEqual(self.text("- One\n  is `x`.\n- Two."), ["- One is :py:obj:`x`\\ .", "- Two."])

    def test_indented_lines_are_code(self):
        self.assertEqual(self.text("So:\n\n    one()\n\n    two()\n\nEnd."),
                         ["So:", ".. code-block:: python", "    one()", "    two()", "End."])

    def test_names_become_links_and_the_rest_stays(self):
        self.assertEqual(self.text("See `Job.rank` and `run -n 4`, *values and _async_."),
                         ["See :py:obj:`Job.rank` and ``run -n 4``\\ , \\*values and _async\\_."])
        self.assertEqual(self.text("As syncopate_join, of syncopate_work_*.", prose.CPP),
                         ["As :c:data:`syncopate_join`\\ , of syncopate_work\\_\\*."])


if __name__ == "__main__":
    unittest.main()
