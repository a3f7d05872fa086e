"""Two hundred nasty strings through every output: no control character, and no secret, gets out."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nasty import FORBIDDEN, NASTY, SECRETS, SEQUENCES, is_clean
from rich.console import Console

from ortgpu_fix.cli import console, progress_bars
from ortgpu_fix.data_files import example_machine
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.document import from_json, to_json
from ortgpu_fix.facts.redact import redact
from ortgpu_fix.messages.catalog import LANGUAGES, load_texts
from ortgpu_fix.messages.sections import Row, Section
from ortgpu_fix.plan.reasons import Finding, Reason
from ortgpu_fix.utils.foreign_text import clean, without_controls, without_secrets


@pytest.mark.parametrize("text", [*SECRETS, *SEQUENCES], ids=ascii)
def test_the_one_place(text: str) -> None:
    assert is_clean(str(clean(text)))
    assert is_clean(redact(text))


def test_messages() -> None:
    for language in LANGUAGES:
        texts = load_texts(language)
        for at, (code, row) in enumerate(texts.table["errors"].items()):
            shown = json.dumps(row, ensure_ascii=False)
            names = set(re.findall(r"{(\w+)", shown)) - set(re.findall(r"{(command):", shown))
            for nasty in NASTY[at % 8 :: 8]:
                message = texts.error(Error(code, **dict.fromkeys(names, nasty)))
                assert is_clean(message.text + message.hint), (code, nasty)
        inner = Error("usage", problem=NASTY[0])
        assert is_clean(texts.error(Error("apply-failed", cause=inner)).text)


@pytest.mark.parametrize("table", ["reasons", "labels", "progress", "findings", "verdicts"])
def test_other_texts(table: str) -> None:
    texts = load_texts("en")
    for at, (code, row) in enumerate(texts.table[table].items()):
        names = tuple(set(re.findall(r"{(\w+)", json.dumps(row, ensure_ascii=False))))
        if any(f"{{{name}:" in json.dumps(row) for name in names):
            continue  # a number
        for nasty in NASTY[at % 8 :: 8]:
            values = tuple((name, nasty) for name in names)
            said = {
                "reasons": lambda: texts.reason(Reason(code=code, values=values)),  # noqa: B023
                "labels": lambda: texts.label(code, **dict(values)),  # noqa: B023
                "progress": lambda: texts.progress(code, **dict(values)),  # noqa: B023
                "findings": lambda: texts.summary(
                    Finding(code=code, severity="info", values=values)  # noqa: B023
                ),
                "verdicts": lambda: texts.verdict(code, values),  # noqa: B023
            }[table]()
            assert is_clean(said), (code, nasty)


@contextlib.contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Let rich take stdout for a terminal."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    yield out


def visible(text: str) -> str:
    """Return `text` without what rich itself writes for attributes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_sections_and_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sections = [
        Section(heading=text, rows=(Row(head=text, text=text, unwrapped=whole),))
        for text in SEQUENCES
        for whole in (False, True)
    ]
    texts = load_texts("en")
    console.print_sections(sections)
    for text in NASTY:
        without = without_secrets(text)
        console.print_result(without)
        console.print_notice(without)
        message = texts.error(Error("usage", problem=text))
        console.print_error(message, texts, as_json=False)
        console.print_error(message, texts, as_json=True)
        console.print_json({"text": without})
    said = capsys.readouterr()
    assert is_clean(said.out)
    assert is_clean(said.err)
    with terminal(monkeypatch) as out:
        console.print_sections(sections)
    assert is_clean(visible(out.getvalue()))


def test_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    texts = load_texts("en")
    with console.progress(texts, quiet=False) as progress:
        for text in NASTY:
            progress("in-use", processes=text)
    assert is_clean(capsys.readouterr().err)

    out = io.StringIO()
    drawn = Console(file=out, width=200, force_terminal=False)
    monkeypatch.setattr(progress_bars, "Console", lambda **_: drawn)
    bars = progress_bars.Bars(texts)
    with bars.drawn:
        for text in NASTY:
            bars("in-use", processes=text)
            bars("download", done=1, total=2, have=1, size=2, file=without_secrets(text))
    assert is_clean(out.getvalue())


def test_facts() -> None:
    facts = from_json(example_machine())
    packages = tuple(
        facts.packages[0]._replace(name=f"p{at}", requires=(text,)) for at, text in enumerate(NASTY)
    )
    environment = {f"LD_{at}": text for at, text in enumerate(NASTY)}
    document = clean(to_json(facts._replace(packages=packages, environment=environment)))

    assert is_clean(json.dumps(document, ensure_ascii=False).replace("\\n", ""))


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_any_text(text: str) -> None:
    shown = without_controls(text)

    assert not FORBIDDEN.search(shown)
    assert without_controls(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org:8080/a@b",
        "git+https://github.com/o/r@v1.0#egg=x",
        "https://example.org/a.whl#sha256=0a",
        "https://example.org/x.git#subdirectory=a/b",
        '["https://example.org","me@example.org"]',
        "'https://example.org': me@example.org",
        "/home/me/a#b?c",
        "a\tb\nc",
        "显卡驱动 ✓",
    ],
)
def test_what_is_no_harm_stays(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "/mnt/c/Users/alice/x",
        "/var/home/alice/x",
        "//server/home/alice/x",
        "\\\\\\\\server\\\\home\\\\alice\\\\x",
        "C:/Users/alice/x",
        "/home/alice",
    ],
)
def test_homes(text: str) -> None:
    assert "alice" not in redact(text)
    assert redact(text).startswith("~")
