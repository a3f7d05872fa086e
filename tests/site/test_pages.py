"""The site's pages: everything has an address, every link leads somewhere, nothing is loaded."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import site_pages

from ortgpu_fix.data_files import load_table
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import LANGUAGES, Language

SITE = site_pages.ROOT / "scripts" / "site"
TOP: dict[Language, str] = {"en": "", "zh": "zh/"}


class Page(HTMLParser):
    """The links, anchors and elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.loads: list[tuple[str, str]] = []
        self.names: list[str] = []
        self.policy = ""
        self.language: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.names.append(tag)
        if "id" in said:
            self.ids.append(said["id"])
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        if tag in {"script", "link", "img", "iframe"}:
            self.loads.append((tag, said.get("src", said.get("href", ""))))
        if tag == "html":
            self.language = said["lang"]
        if said.get("http-equiv") == "Content-Security-Policy":
            self.policy = said["content"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    site_pages.write_pages(out)
    return out


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[str, Page]:
    return {
        file.relative_to(site).as_posix(): Page(file.read_text("utf-8"))
        for file in site.rglob("*.html")
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_everything_has_an_address(pages: dict[str, Page], language: Language) -> None:
    matrix = load_matrix(torch=False)
    releases = {build.version for build in matrix.builds} | matrix.gone.keys()
    failures = {row["code"] for row in load_table("failures")["failure"]}
    guides = site_pages.GUIDES if language == "en" else site_pages.CHINESE
    wanted = {
        *("", "ort/", "error/", "exit/", "doc/"),
        *(f"ort/{version}/" for version in releases),
        *(f"error/{code}/" for code in failures),
        *(f"exit/{code}/" for code in (*range(8), 130)),
        *(f"doc/{name}/" for name in guides),
    }

    here = {
        page.removesuffix("index.html")
        for page in pages
        if page.startswith("zh/") == (language == "zh")
    }
    assert here == {TOP[language] + each for each in wanted}


def test_every_link_leads_somewhere(site: Path, pages: dict[str, Page]) -> None:
    lost = []
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                assert parts.scheme == "https", (name, link)
                continue
            goal = (site / name).parent / unquote(parts.path) if parts.path else site / name
            at = goal.resolve().relative_to(site.resolve()).as_posix()
            if not goal.is_file() or (
                parts.fragment and at in pages and unquote(parts.fragment) not in pages[at].ids
            ):
                lost.append((name, link))
    assert lost == []


def test_nothing_is_loaded_and_nothing_is_said_twice(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert len(page.ids) == len({*page.ids}), name
        assert page.names.count("h1") == page.names.count("main") == 1, name
        assert page.names.count("nav") == 1, name
        assert page.policy.startswith("default-src 'none'"), name
        assert {source[:5] for _, source in page.loads} <= {"", "data:"}, name
        assert page.language == ("zh-CN" if name.startswith("zh/") else "en"), name
        runs = name in {"index.html", "zh/index.html"}
        assert ("connect-src 'self'" in page.policy) == runs, name
        assert "unsafe-inline" not in page.policy
        assert "'unsafe-eval'" not in page.policy


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_error_has_its_text_its_cause_and_its_remedy(site: Path, language: Language) -> None:
    said = (site / TOP[language] / "error/cudnn-9-missing/index.html").read_text("utf-8")
    row = next(row for row in load_table("failures")["failure"] if row["code"] == "cudnn-9-missing")

    assert "libcudnn.so.9: cannot open shared object file" in said
    assert row["cause"][language].split("{")[0][:20] in said
    assert row["sources"][0] in said


def test_a_text_about_no_machine_has_no_holes(site: Path) -> None:
    named = re.compile(r"\{[a-z_]+\}")
    for file in [*site.glob("error/**/*.html"), *site.glob("exit/**/*.html")]:
        text = re.sub(
            r"<code>.*?</code>|<style>.*?</style>", "", file.read_text("utf-8"), flags=re.DOTALL
        )
        assert not named.search(text), (file, named.search(text))


def test_an_exit_code_says_who_ends_with_it(site: Path) -> None:
    said = (site / "exit/3/index.html").read_text("utf-8")

    assert load_table("help")["exits"]["3"]["en"] in said
    assert "ortgpu-fix lock --check FILE" in said
    assert "ortgpu-fix undo" not in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_release_says_from_where_it_is_known(site: Path, language: Language) -> None:
    said = (site / TOP[language] / "ort/1.26.0/index.html").read_text("utf-8")

    assert 'id="1.26.0-linux_x86_64"' in said
    assert "build_and_package_info.py" in said
    assert site_pages.load_own_texts()["lookup-driver"][language] in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_site_says_the_same_in_both_languages(language: Language) -> None:
    table = site_pages.load_own_texts()

    for row in table.values():
        assert set(row) == {*LANGUAGES}
        assert set(re.findall(r"\{\w+\}", row[language])) == set(re.findall(r"\{\w+\}", row["en"]))


@pytest.mark.skipif(shutil.which("node") is None, reason="runs the page's script")
@pytest.mark.parametrize(
    ("hash_", "goal"),
    [
        ("#/error/cudnn-9-missing", "error/cudnn-9-missing/index.html"),
        ("#/ort/1.26.0", "ort/1.26.0/index.html"),
        *[(f"#{away}", None) for away in ("///evil.example/x", "/../../x", "/javascript:x")],
    ],
)
def test_a_hash_leads_to_a_page_of_this_site_alone(hash_: str, goal: str | None) -> None:
    [line] = [
        line for line in (SITE / "ask.js").read_text("utf-8").splitlines() if "replace(`" in line
    ]
    program = f"""
        let gone = null;
        const location = {{hash: {json.dumps(hash_)}, replace: there => gone = there}};
        {line}
        console.log(JSON.stringify(gone));
    """
    said = subprocess.check_output(["node", "-e", program], text=True)

    assert json.loads(said) == goal
