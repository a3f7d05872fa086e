"""The page says what the command says, and nothing that is on it can do anything."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from pages import HOSTILE, Shown, made, page

from ortgpu_fix.guests.bench.page import render
from ortgpu_fix.guests.bench.report import bench_sections, model_sections
from ortgpu_fix.messages.catalog import LANGUAGES, Language, load_texts
from ortgpu_fix.messages.sections import Row, Section
from ortgpu_fix.report.page_parts import bars, clean, document, element, escape, prose
from ortgpu_fix.report.page_style import STYLE
from ortgpu_fix.utils.files import write

EN = load_texts("en")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("gpu", [True, False])
def test_all_that_the_command_says_is_on_the_page(language: Language, *, gpu: bool) -> None:
    found, texts = made(gpu=gpu), load_texts(language)
    shown = Shown(page(language, gpu=gpu)).text

    sections = [
        *model_sections(found.report, texts),
        *bench_sections(found.bench, found.advice, texts),
    ]
    assert len(sections) > 4
    for each in sections:
        assert each.heading in shown
        for row in each.rows:
            assert row.head in shown
            assert row.text.replace("`", "").replace("/home/alice", "~") in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_whatever_a_name_is_it_is_text(language: Language) -> None:
    shown = Shown(page(language, name=HOSTILE))

    names = {tag for tag, _ in shown.tags}
    assert not {"script", "b"} & names
    assert "</td><script>alert(1)</script><b>&amp;\"'gnp.exe" in shown.text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", shown.text)
    for _, attributes in shown.tags:
        assert not any(name.startswith("on") for name in attributes)


def test_a_page_loads_nothing() -> None:
    shown = Shown(page("en"))

    for tag, attributes in shown.tags:
        for name in ("src", "href", "action", "srcset", "data"):
            assert attributes.get(name) in {None, "data:,"}, tag
    policy = next(row["content"] or "" for tag, row in shown.tags if "http-equiv" in row)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "url(" not in page("en")
    assert "@import" not in page("en")


def html(*sections: Section, lengths: dict[str, dict[str, float]] | None = None) -> str:
    return render(
        sections,
        lengths or {},
        EN,
        title="secret",
        made="ortgpu-fix 9.9",
        redact=lambda text: text.replace("secret", "…"),
    )


def test_rows_to_the_letter() -> None:
    rows = (
        Row(text="secret `x` works", style="bold green"),
        Row(text="why", style="dim"),
        Row(head="Driver", text="535"),
        Row(head="None", text=""),
        Row(head="y", text="secret", style="red"),
        Row(text="providers=[secret]", unwrapped=True),
    )

    assert (
        "<section><h2>The …</h2>"
        '<p class="verdict good">… <code>x</code> works</p><p class="dim">why</p>'
        '<dl><dt>Driver</dt><dd>535</dd><dt>y</dt><dd class="bad">…</dd></dl>'
        "<pre><code>providers=[…]</code></pre></section>\n"
        '<p class="dim">ortgpu-fix 9.9</p>'
    ) in html(Section(heading="The secret", rows=rows))


def test_a_bar_is_as_long_as_it_is_beside_the_longest() -> None:
    """One that is next to nothing is still to be seen."""
    drawn = bars("times", [("a", 4.0, "4 ms"), ("b", 1.0, "1 ms"), ("c", 0.0, "0 ms")])

    assert re.findall(r'<rect width="([^"]+)"', drawn) == ["100.00%", "25.00%", "0.50%"]
    assert re.findall(r'<rect width="([^"]+)"', bars("times", [("a", 0.0, "")])) == ["0.50%"]
    assert bars("times", []) == ""


def test_an_element_to_the_letter() -> None:
    assert element("p", "a<b", class_="x", data_value='"1"', title=None) == (
        '<p class="x" data-value="&quot;1&quot;">a&lt;b</p>'
    )
    assert escape(escape("a&b")) == "a&amp;b"
    assert prose("a `b<c` and `d`") == "a <code>b&lt;c</code> and <code>d</code>"
    assert prose("one ` alone") == "one ` alone"
    assert element("p", prose("`x`")) == "<p><code>x</code></p>"
    assert clean("a\x00b\nc\u2066d") == "ab cd"


def test_a_page_runs_its_own_style_and_script_alone() -> None:
    text = document("en", "a<b", "one", "", "two & three", script="run()")

    for part in (STYLE, "run()"):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in text
    assert "<title>a&lt;b</title>" in text
    assert "<main>\none\ntwo &amp; three\n</main><script>run()</script>" in text
    assert "<script" not in document("en", "a")


def test_a_path_that_is_no_text_spoils_no_page(tmp_path: Path) -> None:
    """In a folder of such a name all was measured, and then there was no page."""
    text = document("en", "a\udcffb", "/home/\udcfe/env")

    write(tmp_path / "page.html", text)
    assert "<title>a?b</title>" in text
    assert "/home/?/env" in (tmp_path / "page.html").read_text("utf-8")
