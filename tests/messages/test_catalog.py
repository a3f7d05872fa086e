"""Every code has its texts, in both languages, with the same placeholders."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

from sources import parsed

from ortgpu_fix.data_files import load_table
from ortgpu_fix.errors import Error, cause
from ortgpu_fix.facts.driver import EXPLAINED_ERRORS
from ortgpu_fix.messages.catalog import Texts
from ortgpu_fix.plan.reasons import Finding

TABLE = load_table("texts")
SOURCES = sorted((Path(__file__).parents[2] / "resolver").rglob("*.py"))


def calls(*names: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each code that is given to a function of these names, with the names of its values."""
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            if not (isinstance(node, ast.Call) and node.args):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name not in names:
                continue
            values = {word.arg for word in node.keywords if word.arg}
            for constant in _codes(node.args[0]):
                yield constant, values


def _codes(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _codes(node.body)
        yield from _codes(node.orelse)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    if isinstance(value, dict) and "en" in value:
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


LEAVES = list(leaves(TABLE))


HALF_WIDTH = re.compile(r"[\u4e00-\u9fff`}] ?[,;:?()](?=[\u4e00-\u9fff`{])|[\u4e00-\u9fff][,;:?()]")
"""Punctuation of Latin text in a Chinese sentence; what stands in backticks is code."""


def test_chinese_has_its_own_punctuation() -> None:
    for path, texts in LEAVES:
        sentence = re.sub(r"`[^`]*`", "``", texts["zh"])

        assert not HALF_WIDTH.search(sentence), path


def test_both_languages_say_the_same() -> None:
    for path, texts in LEAVES:
        assert set(texts) == {"en", "zh"}, path
        assert placeholders(texts["en"]) == placeholders(texts["zh"]), path
        assert bool(texts["en"]) == bool(texts["zh"]), path


def test_a_single_sentence_has_no_full_stop() -> None:
    for path, texts in LEAVES:
        assert not texts["en"].endswith("."), path
        assert not texts["zh"].endswith("。"), path


def test_every_error_that_is_raised_has_a_text_with_its_values() -> None:
    for code, values in calls("Error"):
        row = TABLE["errors"][code]
        used = placeholders(row["message"]["en"]) | placeholders(row["hint"]["en"])

        assert used <= values | {"command", "flag", "help"}, code


def test_every_error_text_is_raised_somewhere() -> None:
    source = "\n".join(path.read_text() for path in SOURCES)

    assert [code for code in TABLE["errors"] if f'"{code}"' not in source] == []


def test_a_path_is_shown_in_one_line_and_what_a_program_said_as_it_said_it() -> None:
    texts = Texts(table=TABLE)

    said = texts.error(Error("file-unwritable", file="/a\nb", cause="no\nroom"))
    assert said.text == "`/a b` cannot be written: no\nroom"
    assert "`/a b`" in texts.error(Error("own-environment", path=Path("/a\nb"))).text
    assert "/a b" in texts.error(Error("disk-full", folder="/a\nb")).text
    assert "/a b" in texts.error(Error("python-broken", path="p", target=Path("/a\nb"))).text
    assert "/a b" in texts.error(Error("venv-without-config", path="p", prefix="/a\nb")).text
    assert texts.label("undone", path="/a\nb") == "/a b is back to its state before the last apply"
    told = Texts(table={"verdicts": {"x": {"text": {"en": "{path}: {said}"}}}})
    assert told.verdict("x", (("path", "/a\nb"), ("said", "a\nb"))) == "/a b: a\nb"


def test_every_exit_code_is_one_of_the_contract() -> None:
    assert {row["exit"] for row in TABLE["errors"].values()} <= {2, 3, 4, 5, 6, 7, 130}


def test_every_reason_and_change_has_a_text_with_its_values() -> None:
    for code, values in calls("reason"):
        tables = ("reasons", "unlock", "verdicts", "advice")
        row = next((TABLE[name][code] for name in tables if code in TABLE[name]), None)

        assert row is not None, code
        if "text" in row:
            given = values | {"command"} if code in TABLE["advice"] else values
            assert placeholders(row["text"]["en"]) <= given, code


def test_every_cause_has_a_text_with_its_values() -> None:
    told = set()
    for code, values in calls("cause"):
        assert placeholders(TABLE["causes"][code]["text"]["en"]) <= values, code
        told.add(code)
    source = "\n".join(path.read_text() for path in SOURCES)

    assert {code for code in TABLE["causes"] if f'"{code}"' in source} == {*TABLE["causes"]}
    assert len(told) > 20


def test_the_cause_of_an_error_is_in_its_language() -> None:
    inner = cause("python-ended", status=3, said=cause("no-word"))
    error = Error("python-failed", path="python", cause=inner)

    assert (
        Texts(table=TABLE).error(error).text == "`python` does not run: exit 3: no reason was given"
    )
    assert Texts(table=TABLE, language="zh").error(error).text == (
        "`python` 无法运行：退出码 3：未说明原因"
    )


def test_every_label_has_a_text() -> None:
    for code, values in calls("label"):
        assert placeholders(TABLE["labels"][code]["text"]["en"]) <= values | {"command"}, code


def test_codes_are_kebab_case() -> None:
    for group, rows in TABLE.items():
        for code in rows:
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code), f"{group}.{code}"


def test_every_error_of_the_driver_that_is_explained_has_its_text() -> None:
    told = {code for code in TABLE["findings"] if code[:7] == "driver-"}

    assert told == {*EXPLAINED_ERRORS.values(), "driver-unknown", "driver-unreadable"}


def test_what_only_the_user_can_mend_has_a_remedy() -> None:
    by_user = [row for row in TABLE["findings"].values() if "by_user" in row]

    assert len(by_user) >= 35
    assert all(row["remedy"]["en"] for row in by_user)


EVIL = "evil$(touch${IFS}planted)`;'"


def commands(text: str) -> list[str]:
    """Return what stands between backticks in a text, and is a command with a value in it."""
    return [
        part
        for part in text.split("`")[1::2]
        if " " in part and "{" in part and not part.startswith(("-", "{"))
    ]


def test_a_value_in_a_command_is_a_word_of_the_shell() -> None:
    """A name out of a colleague's facts file ran what it names, once pasted."""
    found = Finding(code="installed-conda", severity="error", values=(("by", EVIL), ("name", EVIL)))
    failed = Error("installed-editable", name=EVIL, path="")
    texts = Texts(table=TABLE)
    for text in (texts.remedy(found), texts.error(failed).hint):
        words = text.partition(" uninstall ")[2] or text.partition(" remove ")[2]
        assert words.startswith(shlex.quote(EVIL)), text


def test_every_command_of_a_text_is_known_as_one() -> None:
    """It begins with the name of a program whose commands people paste."""
    unknown = [
        (table, code, part)
        for table, rows in TABLE.items()
        if isinstance(rows, dict)
        for code, row in rows.items()
        for key in ("text", "message", "hint", "summary", "remedy")
        for text in (row.get(key, {}).values() if isinstance(row, dict) else ())
        for part in commands(text)
        if not re.match(r"(?:conda|ortgpu-fix|pip|pixi|python|uv)\b", part)
        if not part.startswith("poetry add")  # of several words, which are all ours
    ]

    assert unknown == []
