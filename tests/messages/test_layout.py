"""How texts are laid out, and what a value looks like in one."""

from __future__ import annotations

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.messages.catalog import Texts
from ortgpu_fix.messages.sections import (
    Row,
    Section,
    lines_of,
    plain,
    size,
    wrapped,
)
from ortgpu_fix.plan.reasons import finding


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 80, ["one two three"]),
        ("", 10, [""]),
        # A word that is longer is not cut, and nothing empty stands before it.
        ("/opt/a/long/path", 5, ["/opt/a/long/path"]),
        ("at /opt/a/long/path now", 8, ["at", "/opt/a/long/path", "now"]),
        # Spaces that begin a text are part of it.
        ("  | code of a log", 12, ["  | code of", "a log"]),
        # Chinese ends at any character, after the mark that belongs to it,
        ("它为此构建，需要驱动", 10, ["它为此构", "建，需要驱", "动"]),
        ("缺少库。请安装", 6, ["缺少", "库。请", "安装"]),
        # and never before one that closes, or after one that opens.
        ("系统（Linux）", 8, ["系统", "（Linux）"]),
        ("目标系统（默认值）", 10, ["目标系统", "（默认值）"]),
        ("见《说明》", 4, ["见", "《说", "明》"]),
        # A word of Latin letters is one piece among Chinese.
        ("运行 ortgpu-fix 即可", 12, ["运行", "ortgpu-fix", "即可"]),
    ],
)
def test_a_text_is_wrapped(text: str, columns: int, lines: list[str]) -> None:
    assert wrapped(text, columns) == lines


def test_a_report_is_wrapped_beside_its_heads_and_commands_are_not() -> None:
    rows = (
        Row(head="✗", text="a text that is longer than the line", style="red"),
        Row(text="ortgpu-fix --python /opt/app/.venv/bin/python --apply", unwrapped=True),
    )

    assert list(lines_of(Section(heading="Head", rows=rows), 32)) == [
        ("Head", "bold"),
        ("  ✗  a text that is longer than", "red"),
        ("     the line", "red"),
        ("     ortgpu-fix --python /opt/app/.venv/bin/python --apply", ""),
    ]
    alone = Section(rows=(Row(text="one two three four five six"),))
    assert plain([alone], 24) == "one two three four five\nsix"
    assert plain([alone]) == "one two three four five six"


def test_a_text_whose_head_leaves_no_room_begins_below_it() -> None:
    rows = (Row(head="h" * 20, text="one two three four five six seven eight"),)

    assert plain([Section(rows=rows)], 40) == (
        "h" * 20 + "\n    one two three four five six seven\n    eight"
    )


@pytest.mark.parametrize(
    ("count", "said"),
    [
        *((999, "999 B"), (1000, "1 kB"), (999_499, "999 kB"), (1_000_000, "1 MB")),
        *((999_000_000, "999 MB"), (10**9, "1.0 GB"), (25 * 10**11, "2500.0 GB")),
    ],
)
def test_a_size_for_people(count: int, said: str) -> None:
    assert size(count) == said


TEXTS = Texts(
    {
        "errors": {
            code: {"message": {"en": text}, "hint": {"en": "do {x}"}, "exit": 5}
            for code, text in (("outer", "out: {x}"), ("inner", "in: {y}"))
        },
        "labels": {
            "versions": {"text": {"en": "{first} to {last}"}},
            "count": {"text": {"en": "{count:.1f}"}},
        },
        "verdicts": {"v": {"text": {"en": "is {a}"}, "hint": {"en": "try"}}},
        "findings": {
            "own": {"summary": {"en": "s {a}"}, "remedy": {"en": "r"}, "by_user": True},
            "installed-unfit": {"summary": {"en": "{version}: {why}"}, "remedy": {"en": "again"}},
        },
        "reasons": {"rule": {"text": {"en": "because {a}"}}},
    }
)


def test_an_error_within_an_error_is_told_in_its_words() -> None:
    inner = Error("inner", y="why", x="it")
    message = TEXTS.error(Error("outer", x=inner))

    assert (message.code, message.text, message.hint, message.exit_code) == (
        *("outer", "out: in: why", "do in: why", 5),
    )


def test_a_long_value_is_cut_and_a_number_stays_one() -> None:
    assert TEXTS.label("count", count=2) == "2.0"
    longest = "x" * 8000
    assert TEXTS.verdict("v", (("a", longest),)) == f"is {longest}"
    assert TEXTS.verdict("v", (("a", f"{longest}x"),)) == f"is {longest}…"


def test_texts_by_their_keys() -> None:
    assert TEXTS.versions(["1.3", "1.2", "1.1"]) == "1.1 to 1.3"
    assert TEXTS.versions(["1.3"]) == "1.3"
    assert (TEXTS.verdict("v", (), "hint"), TEXTS.verdict("v", (), "proves")) == ("try", "")
    own, rule = finding("own", "error", a="b"), finding("rule", "error", a="b", version="1.2")
    assert (TEXTS.summary(own), TEXTS.remedy(own), TEXTS.is_for_user(own)) == ("s b", "r", True)
    assert TEXTS.summary(rule) == "1.2: because b"
    assert (TEXTS.remedy(rule), TEXTS.is_for_user(rule)) == ("again", False)


def test_a_heading_is_wrapped_and_a_marked_line_goes_on_below_its_text() -> None:
    def shown(heading: str, text: str) -> list[str]:
        section = Section(heading=heading, rows=(Row(text=text),))
        return [line for line, _ in lines_of(section, 32)]

    heading = "a heading of more words than a line holds"
    assert shown(heading, "+ a step of more words than a line") == [
        "a heading of more words than a",
        "line holds",
        "  + a step of more words than a",
        "    line",
    ]
    assert shown("h", "--> a.log:2")[1:] == ["  --> a.log:2"]
    assert shown("h", " |  what a program printed in a log")[1:] == [
        "   |  what a program printed in",
        "      a log",
    ]
