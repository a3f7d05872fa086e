"""The pages of the site: plain HTML in two languages, each with an address of its own.

They are made of the program's own tables and texts, and of the Markdown of the repository.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
import shutil
import sys
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lookup import LookUp, SourceTables, look_up
from lookup_page import linked, lookup_parts, release_parts
from lookup_style import LOOKUP_SCRIPT, LOOKUP_STYLE
from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin

from ortgpu_fix import __version__
from ortgpu_fix.cli.help import HelpWords
from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log
from ortgpu_fix.matrix.load import load_matrix, matrix_table
from ortgpu_fix.messages.catalog import LANGUAGES, Language, load_texts
from ortgpu_fix.report.page_parts import Markup, document, element, prose, section

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ADDRESS: str = PROJECT["tool"]["ortgpu-fix"]["address"]
"""Where the project is published; empty until it is."""
FOLDER = Path(__file__).parent
LOGS = ROOT / "tests" / "cases" / "logs"
SAMPLES = 3
"""So many texts are shown of an error, at most."""
DOCS = ROOT / "data" / "docs"


def pages_of(kind: str) -> dict[str, str]:
    """Return the documents of a kind, by the address of their page: `how-to/docker`."""
    files = sorted((DOCS / kind).glob("*.md"))
    return {
        file.relative_to(DOCS).with_suffix("").as_posix(): file.relative_to(ROOT).as_posix()
        for file in files
    }


EXAMPLE = {
    "system": "linux-x86_64",
    "driver": "535.104.12",
    "gpus": "NVIDIA A100-SXM4-80GB",
    "python": "3.11",
}
"""What the button fills in."""
KINDS = {
    "docs-start": {"guide": "README.md", **pages_of(".")},
    "docs-how-to": {**pages_of("how-to"), "how-to/ansible": "scripts/ansible/README.md"},
    "docs-reference": {**pages_of("reference"), "agents": "AGENTS.md", "changes": "CHANGELOG.md"},
    "docs-explanation": pages_of("explanation"),
    "docs-develop": {
        "contributing": "CONTRIBUTING.md",
        "program": "resolver/README.md",
        "matrix": "data/README.md",
    },
}
"""The documentation: by kind, each page's address and its Markdown."""
GUIDES = {name: file for rows in KINDS.values() for name, file in rows.items()}
CHINESE = {"guide": "README.zh-CN.md"}
STYLE = (
    LOOKUP_STYLE
    + """
header { border-bottom: 1px solid var(--line); padding: .5rem 1rem; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; max-width: 108rem; margin: 0 auto; }
nav a { padding: .25rem 0; }
nav a:last-child { margin-left: auto; }
nav .product { font-weight: 700; }
#ask { display: block; }
#ask > * { margin: 0 0 .75rem; }
label { display: block; }
textarea { width: 100%; font-family: ui-monospace, Consolas, monospace; font-size: .9rem; }
fieldset { display: flex; flex-wrap: wrap; gap: .75rem 1rem; border: 1px solid var(--line); }
[hidden] { display: none !important; }
.needed span { font-weight: 700; }
.needed select, .needed input { outline: 2px solid var(--bar); }
fieldset label { flex: 1 1 12rem; min-width: 0; align-content: end; }
input { font: inherit; color: inherit; background: var(--code); border: 1px solid var(--dim);
  border-radius: 4px; padding: .35rem .5rem; min-height: 2.25rem; width: 100%; }
label select { width: 100%; }
pre { max-width: 62rem; font-size: .9rem; }
img { max-width: 100%; }
progress { width: min(100%, 30rem); }
@media print { header { display: none; } }
"""
)
RUNS_PYTHON = (
    " 'self' 'wasm-unsafe-eval'; worker-src blob:; connect-src 'self'; manifest-src 'none'"
)
"""What the page that answers may do besides: run the program, from its own files alone."""


def find() -> LookUp:
    """Return what is looked up."""
    tables = SourceTables(
        matrix_table("onnxruntime")["build"],
        load_table("drivers")["floor"],
        load_table("gpus")["family"],
        load_table("gpus")["arm"]["compute_capabilities"],
        load_table("onnxruntime")["date"],
        load_table("torch")["date"],
    )
    return look_up(load_matrix(), tables)


def load_own_texts() -> dict[str, dict[str, str]]:
    """Return what the site says beside the program's own texts."""
    return tomllib.loads((FOLDER / "texts.toml").read_text("utf-8"))


class Site:
    """The pages in one language: English at the top of the folder, Chinese in `zh`."""

    def __init__(self, out: Path, language: Language, found: LookUp) -> None:
        """Keep what all pages need."""
        self.out = out
        self.language = language
        self.found = found
        self.texts = load_texts(language)
        self.own = load_own_texts()
        self.top = "" if language == "en" else "zh/"

    def say(self, code: str, **values: object) -> str:
        """Return a text of the site."""
        text: str = self.own[code][self.language]
        return text.format(**values) if values else text

    def write(self, page: str, title: str, *body: str, **how: str) -> None:
        """Write the page of the address `error/`, within the folder of its language."""
        here = f"{self.top}{page}"
        alone = page.startswith("doc/") and page[4:-1] not in {"", *CHINESE}  # in English
        other = f"zh/{'doc/' if alone else page}" if self.language == "en" else page
        parts = {"": "ask", "ort/": "lookup", "error/": "errors", "exit/": "exits", "doc/": "docs"}
        links = [element("a", "ortgpu-fix", href=between(here, self.top), class_="product")]
        links += [
            element(
                "a",
                self.say(code),
                href=between(here, self.top + part),
                aria_current="page" if part == page else None,
            )
            for part, code in parts.items()
        ]
        if ADDRESS:
            links.append(element("a", self.say("source"), href=ADDRESS))
        switch = {"lang": "zh-CN" if self.language == "en" else "en", "hreflang": None}
        links.append(element("a", self.say("language"), href=between(here, other), **switch))
        top = element("header", element("nav", *links, aria_label=self.say("pages")))
        file = self.out / here / "index.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        made = document(
            self.language,
            title if "ortgpu-fix" in title else f"{title} · ortgpu-fix",
            element("h1", title) if "<h1" not in "".join(body) else "",
            *body,
            top=top,
            style=STYLE,
            **{"script": "", **how},
        )
        file.write_text(made, "utf-8")

    def write_all(self) -> None:
        """Write every page."""
        self.write_ask()
        self.write_releases()
        self.write_errors()
        self.write_exits()
        self.write_guides()

    def write_ask(self) -> None:
        """Write the first page: what this is, how to get it, and what answers."""
        keys = ("loading", "working", "done", "failed", "copy", "file", "needed")
        said: dict[str, object] = {key: self.say(f"ask-{key}") for key in keys}
        said |= {
            "language": self.language,
            "root": between(self.top, "").removesuffix("index.html"),
            "errors": [row["code"] for row in load_table("failures")["failure"]],
        }
        cards = [
            element(
                "optgroup",
                *(element("option", name) for name in names),
                label=f"{capability} {generation.name}",
            )
            for generation in self.found.generations
            for capability, names in generation.names.items()
        ]
        systems = [
            element("option", name, value=value)
            for name, value in (
                ("Linux, x86_64", "linux-x86_64"),
                ("Linux, aarch64", "linux-aarch64"),
                ("Windows", "windows"),
            )
        ]
        pythons = [element("option", f"3.{minor}") for minor in range(14, 7, -1)]
        fields = {
            "system": self._menu("system", systems),
            "driver": _typed("driver", "[0-9]{3}([.][0-9]+){1,2}", EXAMPLE["driver"]),
            "gpus": self._menu("gpus", cards),
            "python": self._menu("python", pythons),
            "torch": _typed("torch", r"[0-9]+([.][0-9]+)+([+]\w+)?", "2.7.1+cu128"),
        }
        labels = [
            element("label", element("span", prose(self.say(f"ask-{name}"))), field, data_fact=name)
            for name, field in fields.items()
        ]
        text = element(
            "textarea", "", name_="text", rows="8", spellcheck="false", autocomplete="off"
        )
        form = element(
            "form",
            element("fieldset", element("legend", self.say("ask-machine")), *labels),
            element("label", element("span", prose(self.say("ask-text"))), text),
            element("button", self.say("ask-go"), type="submit"),
            Markup(" "),
            element("button", self.say("ask-example"), type="button", id="example"),
            id="ask",
            data_texts=json.dumps(said),
            data_example=json.dumps(EXAMPLE),
        )
        answers = [
            element(
                "section",
                element("h2", self.say(f"ask-{name}")),
                element("div", "", id=name),
                hidden="",
                id=f"{name}-part",
            )
            for name in ("causes", "plan", "commands", "why", "files")
        ]
        get = self.say("ask-get", where=f"git+{ADDRESS}") if ADDRESS else self.say("ask-get-clone")
        self.write(
            "",
            self.say("ask-title"),
            element("p", prose(self.say("ask-lead")), class_="verdict"),
            element("p", prose(get)),
            element("noscript", element("p", self.say("ask-noscript"))),
            form,
            element("p", "", id="status", role="status"),
            element("progress", "", id="progress", hidden="", max="100", aria_labelledby="status"),
            element("p", prose(self.say("ask-private"))),
            *answers,
            script=(FOLDER / "ask.js").read_text("utf-8"),
            loads=RUNS_PYTHON,
            description=self.say("ask-lead").replace("`", ""),
        )

    def _menu(self, name: str, rows: Sequence[Markup]) -> Markup:
        first = element("option", self.say("ask-choose"), value="")
        return element("select", first, *rows, name_=name)

    def write_releases(self) -> None:
        """Write the look-up page, and one for each release."""
        parts = lookup_parts(self.found, self.texts, self.say, "{}/index.html".format)
        self.write("ort/", self.say("lookup-title"), *parts, script=LOOKUP_SCRIPT)
        for version, rows in release_parts(self.found, self.texts, self.say).items():
            self.write(f"ort/{version}/", f"onnxruntime-gpu {version}", *rows)

    def write_errors(self) -> None:
        """Write the list of the failures that `explain` knows, and a page for each."""
        title = self.say("errors-title")
        rows = []
        for row in load_table("failures")["failure"]:
            code, what = row["code"], _plain(row["what"][self.language])
            rows += [
                element("dt", element("a", prose(what), href=f"{code}/index.html")),
                element("dd", element("code", code)),
            ]
            self._write_error(row, what)
        self.write("error/", title, element("dl", *rows))

    def _write_error(self, row: Mapping[str, Any], what: str) -> None:
        """Write the page of an error: who searches for its words finds them in the title."""
        shown, said = _samples(row["code"], self.language)
        cause, remedy = said or (
            _plain(row["cause"][self.language]),
            _plain(row["remedy"][self.language]),
        )
        title = " · ".join([*(own_words(text) for text in shown[:1]), what.replace("`", "")])
        top = [element("h1", prose(what)), element("p", element("code", row["code"]))]
        parts = self._error(row, shown, cause, remedy)
        self.write(f"error/{row['code']}/", title, *top, *parts, description=cause)

    def _error(
        self, row: Mapping[str, Any], shown: Sequence[str], cause: str, remedy: str
    ) -> list[Markup]:
        patterns = [
            element("li", element("code", each))
            for each in (*row.get("match", ()), *row.get("signals", ()))
        ]
        after = [
            element("li", element("a", code, href=f"../{code}/index.html"))
            for code in row.get("after", ())
        ]
        sources = [element("li", linked(each)) for each in row["sources"]]
        fixable = [element("p", prose(self.say("errors-fixable")))] if row["fixable"] else []
        return [
            section(self.say("errors-looks"), *(element("pre", _kept(text)) for text in shown)),
            section(self.say("errors-cause"), element("p", prose(cause))),
            section(
                self.say("errors-remedy"),
                element("p", prose(remedy)),
                *(element("pre", element("code", each)) for each in row["commands"]),
                *fixable,
            ),
            section(self.say("errors-after"), _list(after)),
            section(self.say("errors-patterns"), _list(patterns)),
            section(self.say("errors-sources"), _list(sources)),
        ]

    def write_exits(self) -> None:
        """Write a page for each exit code, with what is said then."""
        table, errors = load_table("help"), load_table("texts")["errors"]
        words = HelpWords(table, self.language)
        rows = []
        for code, text in table["exits"].items():
            commands = [
                element("li", element("code", usage))
                for name, row in table["commands"].items()
                if int(code) in row["exits"]
                for usage in words.parts(name, "usage")
            ]
            said = [
                element("li", prose(_plain(row["message"][self.language])))
                for row in errors.values()
                if row["exit"] == int(code)
            ]
            title = self.say("exits-one", number=code)
            rows += [
                element("dt", element("a", title, href=f"{code}/index.html")),
                element("dd", prose(text[self.language])),
            ]
            self.write(
                f"exit/{code}/",
                title,
                element("p", prose(text[self.language]), class_="verdict"),
                section(self.say("exits-commands"), _list(commands)),
                section(self.say("exits-errors"), _list(said)),
            )
        self.write("exit/", self.say("exits"), element("dl", *rows))

    def write_guides(self) -> None:
        """Write the documentation; what is not in Chinese is linked in English."""
        parts = [
            section(self.say(kind), _list([self._guide(*row) for row in rows.items()]))
            for kind, rows in KINDS.items()
        ]
        self.write("doc/", self.say("docs-title"), *parts)

    def _guide(self, name: str, file: str) -> Markup:
        """Write a document, where it is in this language; return the link to it."""
        file = CHINESE.get(name, file) if self.language == "zh" else file
        here = self.language == "en" or name in CHINESE
        text = (ROOT / file).read_text("utf-8")
        title = re.search(r"^# (.+)$", text, re.MULTILINE)
        heading = title[1].replace("`", "") if title else name
        page = f"doc/{name}/"
        if here:
            self.write(page, heading, self._markdown(text, file, f"{self.top}{page}"))
        to = between(f"{self.top}doc/", f"{self.top if here else ''}{page}")
        return element("li", element("a", heading, href=to, lang=None if here else "en"))

    def _markdown(self, text: str, file: str, here: str) -> Markup:
        """Return Markdown as HTML whose links lead to pages of the site, or to copied files."""
        reader = MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=3)
        tokens = reader.parse(text)
        for token in [each for row in tokens for each in (row, *(row.children or ()))]:
            if token.type == "link_open":
                token.attrs["href"] = self._address(str(token.attrs["href"]), file, here)
            elif token.type == "image":
                content = (ROOT / posixpath.dirname(file) / str(token.attrs["src"])).read_bytes()
                data = base64.b64encode(content).decode()
                token.attrs["src"] = f"data:image/svg+xml;base64,{data}"
        made = reader.renderer.render(tokens, reader.options, {})
        made = made.replace("<th></th>", "<td></td>").replace("</table>", "</table></div>")
        first, *others = made.split("<table>")
        label = self.say("docs-table")
        for number, part in enumerate(others, 1):
            box = f'<div class="scroll" role="region" aria-label="{label} {number}" tabindex="0">'
            first += f"{box}<table>{part}"
        return Markup(first)

    def _address(self, link: str, file: str, here: str) -> str:
        if re.match(r"https?:|#|mailto:", link):
            return link
        path, _, anchor = link.partition("#")
        goal = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
        pages = {source: f"doc/{name}/" for name, source in GUIDES.items()}
        pages |= {source: f"zh/doc/{name}/" for name, source in CHINESE.items()}
        if (ROOT / goal).is_dir():
            goal = f"{goal}/README.md"
        if goal in pages:
            return between(here, pages[goal]) + (f"#{anchor}" if anchor else "")
        copied = self.out / "file" / goal
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / goal, copied)
        return posixpath.relpath(f"file/{goal}", here)


def between(here: str, there: str) -> str:
    """Return the link from the page of an address to that of another: `../ort/index.html`."""
    return posixpath.relpath(f"{there}index.html", here or ".")


def _open(field: Markup) -> Markup:
    """Return an element that has no end."""
    return Markup(field.removesuffix("</input>"))


def own_words(text: str) -> str:
    """Return what an error says in its first line, without time and place, for a title."""
    line = re.sub(r"^.*?\[[EW]:onnxruntime[^\]]*\](?: \S+:\d+ .*?\))? *", "", text.splitlines()[0])
    return textwrap.shorten(line, 90, placeholder=" …")


def _typed(name: str, pattern: str, example: str) -> Markup:
    """Return a field to type into."""
    about = {"inputmode": "decimal", "placeholder": example, "autocomplete": "off"}
    return _open(element("input", name_=name, pattern=pattern, **about))


def _kept(text: str) -> Markup:
    """Return lines of text as they are."""
    return Markup("\n".join(element("span", line) for line in text.splitlines()))


def _list(rows: Sequence[Markup]) -> Markup:
    return element("ul", *rows) if rows else Markup("")


def _plain(text: str) -> str:
    """Return a text without what it says of one machine: `{library}` is left open, or out."""
    return re.sub(r"\{\w+\}", "…", re.sub(r"[:：] *\{\w+\}$| *[(（]\{\w+\}[)）]$", "", text))


def _samples(code: str, language: Language) -> tuple[list[str], tuple[str, str] | None]:
    """Return what people paste of a failure, and its cause and remedy in the first of them."""
    shown: list[str] = []
    said: tuple[str, str] | None = None
    table = parse_failures(load_table("failures"))
    for file in sorted(LOGS.glob(f"{code}*.txt"), key=lambda each: (len(each.stem), each)):
        if file.stem.partition("--")[0] != code or len(shown) == SAMPLES:
            continue
        for each in explain_log(file.read_bytes().decode("utf-8", "replace"), table, language):
            if each.code == code:
                shown.append("\n".join(row.line.strip() for row in each.evidence))
                said = said or (each.cause, each.remedy)
    return list(dict.fromkeys(shown)), said


def write_pages(out: Path) -> None:
    """Write every page in both languages, but for the program that the first one runs."""
    found = find()
    for language in LANGUAGES:
        Site(out, language, found).write_all()
    sizes: defaultdict[str, int] = defaultdict(int)
    for file in out.rglob("*.html"):
        sizes["pages"] += 1
        sizes["bytes"] += file.stat().st_size
    print(f"ortgpu-fix {__version__}: {sizes['pages']} pages, {sizes['bytes']:,} bytes in {out}")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
