"""Project pages of package indexes, as they are met in the wild."""

from __future__ import annotations

import contextlib
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.errors import Cause, Error, cause
from ortgpu_fix.index.page import IndexFile, parse_index_page, without_credentials

BASE = "https://user:secret@example.org/simple/onnxruntime-gpu/"
DIGEST = "ab" * 32
JSON = "application/vnd.pypi.simple.v1+json"


def page(*files: object, **more: object) -> str:
    return json.dumps({"meta": {"api-version": "1.1"}, "files": list(files), **more})


def test_html_with_relative_links_hashes_and_yanks() -> None:
    text = f"""<!DOCTYPE html><html><body>
    <a href="../../files/a-1-py3-none-any.whl#sha256={DIGEST.upper()}" data-yanked=""
       data-requires-python="&gt;=3.8">a-1</a>
    <a href="https://cdn.example.org/b%2Bcu-2-py3-none-any.whl#md5=00">b</a>
    <a href="https://example.org/about.html">about</a><a>nothing</a><a href="http://[">broken</a>
    <a href="c-3.tar.gz#sha256=short">c</a></body></html>"""

    assert parse_index_page("text/html; charset=utf-8", text, BASE) == (
        IndexFile(
            name="a-1-py3-none-any.whl",
            url="https://user:secret@example.org/files/a-1-py3-none-any.whl",
            sha256=DIGEST,
            yanked=True,
            requires_python=">=3.8",
        ),
        IndexFile(
            name="b+cu-2-py3-none-any.whl",
            url="https://cdn.example.org/b%2Bcu-2-py3-none-any.whl",
        ),
        IndexFile(
            name="c-3.tar.gz",
            url="https://user:secret@example.org/simple/onnxruntime-gpu/c-3.tar.gz",
        ),
    )


def test_a_base_element_moves_the_links() -> None:
    text = '<base href="https://other.org/x/"><base><a href="a-1-py3-none-any.whl">a</a>'

    assert parse_index_page("", text, BASE)[0].url == "https://other.org/x/a-1-py3-none-any.whl"


def test_an_empty_page_that_says_it_is_of_an_index() -> None:
    text = '<meta name="pypi:repository-version" content="1.1"><meta charset="utf-8">'

    assert parse_index_page("text/html", text, BASE) == ()


def test_json() -> None:
    text = page(
        {
            "filename": "a-1-py3-none-any.whl",
            "url": "/files/a-1-py3-none-any.whl#x",
            "hashes": {"sha256": DIGEST},
            "size": 12,
            "yanked": "it was wrong",
            "requires-python": ">=3.8",
        },
        {"filename": "b", "url": "b", "hashes": {}, "size": True, "yanked": False},
        {"filename": "c", "url": "c", "hashes": 3, "requires-python": 3},
    )

    assert parse_index_page(JSON, text, "https://example.org/simple/a/") == (
        IndexFile(
            name="a-1-py3-none-any.whl",
            url="https://example.org/files/a-1-py3-none-any.whl",
            sha256=DIGEST,
            size=12,
            yanked=True,
            requires_python=">=3.8",
        ),
        IndexFile(name="b", url="https://example.org/simple/a/b"),
        IndexFile(name="c", url="https://example.org/simple/a/c"),
    )


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        ("Application/PDF; x=y; z", "%PDF", cause("page-type", kind="application/pdf")),
        (JSON, "<html>", cause("page-not-json")),
        (JSON, "[" * 100_000, cause("page-not-json")),
        (JSON, '{"files": {}}', cause("page-without-list")),
        (JSON, page("a"), cause("page-file-odd")),
        (JSON, page({"filename": "a"}), cause("page-file-nameless")),
        (JSON, page({"filename": "a", "url": "http://["}), cause("page-file-unaddressed")),
        ("text/html", "<a>", cause("page-without-files")),
        pytest.param(
            *("text/html", "<![<![", cause("page-not-html")),
            marks=pytest.mark.skipif(sys.version_info >= (3, 13), reason="the parser was mended"),
        ),
    ],
)
def test_what_is_wrong_with_a_page_is_said(kind: str, text: str, problem: Cause) -> None:
    with pytest.raises(Error) as caught:
        parse_index_page(kind, text, BASE)

    shown = "https://example.org/simple/onnxruntime-gpu/"
    assert caught.value.values == {"url": shown, "problem": problem}


@pytest.mark.parametrize(
    ("kind", "as_json"),
    [
        ("Application/JSON; charset=utf-8; x=y", True),
        ("application/vnd.pypi.simple.v1+html", False),
        ("", False),
    ],
)
def test_the_content_types_of_a_page(kind: str, *, as_json: bool) -> None:
    text = page({"filename": "a.whl", "url": "a.whl"}) if as_json else '<a href="a.whl">'

    assert [file.name for file in parse_index_page(kind, text, BASE)] == ["a.whl"]


@pytest.mark.parametrize("rest", ["<a href='b.whl'", "<!-- <a href='b.whl'>"])
def test_of_a_page_that_ends_too_early_what_is_whole_counts(rest: str) -> None:
    found = parse_index_page("", f"<a href='a.whl'>{rest}", BASE)

    assert [file.name for file in found] == ["a.whl"]


@pytest.mark.parametrize(
    ("name", "there"), [("a.whl", True), ("a.tar.gz", True), ("a.exe", False), ("a.whl.asc", False)]
)
def test_of_the_links_of_a_page_those_to_packages(name: str, *, there: bool) -> None:
    text = f'<a href="x.whl"></a><a href=" {name}#egg=a#b "></a>'
    files = parse_index_page("text/html", text, "https://a.org/")

    assert [file.url for file in files[1:]] == ([f"https://a.org/{name}"] if there else [])


@pytest.mark.parametrize(
    ("said", "yanked"), [(False, False), (True, True), ("", True), ("a reason", True)]
)
def test_a_yanked_file_has_a_reason_or_none(said: object, *, yanked: bool) -> None:
    [file] = parse_index_page(JSON, page({"filename": "a", "url": "a", "yanked": said}), BASE)

    assert file.yanked == yanked


@given(st.sampled_from(["text/html", JSON]), st.text())
def test_no_text_raises_anything_else(kind: str, text: str) -> None:
    with contextlib.suppress(Error):
        parse_index_page(kind, text, BASE)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@example.org:8443/a?token=b#c", "https://example.org:8443/a"),
        ("https://user@[::1]/a", "https://[::1]/a"),
        ("file:///srv/index", "file:///srv/index"),
        ("http://[", "an address that cannot be read"),
    ],
)
def test_no_credentials_are_shown(url: str, shown: str) -> None:
    assert without_credentials(url) == shown
