"""Texts for people have the words that an engineer would use: the old voice does not come back."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from ortgpu_fix.data_files import DATA

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WRITTEN: dict[str, frozenset[str]] = {
    "data/texts.toml": frozenset(
        {
            *("reasons", "findings", "unlock", "advice", "labels", "verdicts", "progress"),
        }
    ),
}
"""The tables, by file of the package, that are held to it; others come once they are rewritten."""

ENGLISH = [
    # archaic verbs, and verbs that mean anything
    *(
        r"mend\w*",
        r"tell(s|ing)?",
        r"told",
        r"brings?(?! back)",
        r"falls? out",
        r"carr(y|ies)",
        r"goes with",
    ),
    *(r"takes? out", r"set aside", r"puts? (it |them |everything )?back", r"holds?", r"gives?"),
    # sentences without a verb, and words that only this program used
    *(
        r"typed there",
        r"as things are",
        r"as it is",
        r"what of it",
        r"(the|this|one) set",
        r"wish\w*",
    ),
    *(r"nothing here", r"whose", r"of which", r"anew", r"made here"),
    # one word for one thing: directory, option, version, package, compatibility data
    *(
        r"folders?",
        r"flags?",
        r"releases?",
        r"(CPU|GPU) builds?",
        r"builds? for CPUs",
        r"matrix(?! product)",
    ),
    # a text is printed of other machines, too
    *(r"here", r"(?<!is )there(?! (is|are|was|were)\b)", r"this machine", r"this computer"),
]
CHINESE = [
    *(
        "本机",
        "此处",
        "这台机器",
        "那台机器",
        "那里",
        "矩阵(?!乘法)",
        "就目前状况",
        "这一组",
        "空包",
    ),
    *("普通依赖", "上次执行", "并非如此", "证据", "所选集合"),
]
EXCEPTIONS = {
    ("findings.environment-moved.summary", "there"): "the directory that the sentence names",
    ("reasons.tensorrt-gpu-too-old.text", "release"): "NVIDIA's release notes",
}
"""Where a phrase is right, and why."""


def texts() -> Iterator[tuple[str, str, str]]:
    """Yield each text that is held to it: its path, and what people read of it, without code."""
    for name, tables in WRITTEN.items():
        table = tomllib.loads((DATA.parent / name).read_text("utf-8"))
        for part in sorted(tables):
            yield from leaves(table[part], part)


def leaves(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, dict) and "en" in value:
        yield path, prose(value["en"]), prose(value["zh"])
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")


def prose(text: str) -> str:
    """Return `text` without what stands in backticks, which is code, placeholders and addresses."""
    return re.sub(r"`[^`]*`|\{[^}]*\}|https://\S+", "", text)


TEXTS = list(texts())


def test_texts_are_looked_at() -> None:
    assert len(TEXTS) > 400


@pytest.mark.parametrize("phrase", ENGLISH)
def test_the_old_voice_is_gone(phrase: str) -> None:
    pattern = re.compile(rf"\b{phrase}\b", re.IGNORECASE)
    found = {
        (path, hit[0].lower()) for path, english, _ in TEXTS for hit in pattern.finditer(english)
    }

    assert found - EXCEPTIONS.keys() == set()


@pytest.mark.parametrize("phrase", CHINESE)
def test_the_old_voice_is_gone_in_chinese(phrase: str) -> None:
    assert [path for path, _, chinese in TEXTS if re.search(phrase, chinese)] == []


def test_no_exception_is_for_nothing() -> None:
    english = {path: text for path, text, _ in TEXTS}

    for (path, phrase), why in EXCEPTIONS.items():
        assert re.search(rf"\b{phrase}\b", english[path], re.IGNORECASE), path
        assert why, path
