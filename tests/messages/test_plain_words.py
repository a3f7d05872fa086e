"""Texts for people have the words that an engineer would use: the old voice does not come back."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.cli.guests import FLAGS
from ortgpu_fix.data_files import DATA

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
TABLES = {
    "texts": DATA / "texts.toml",
    "failures": DATA / "failures.toml",
    "help": DATA / "help.toml",
    **{
        f"{path.parent.name}/{path.stem}": path
        for path in sorted(DATA.parent.glob("guests/*/*.toml"))
    },
    "site": ROOT / "scripts" / "site" / "texts.toml",
}
"""What has texts in both languages."""
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in (
        *(ROOT / name for name in ("README.md", "README.zh-CN.md", "AGENTS.md", "CHANGELOG.md")),
        *(ROOT / name for name in ("action.yml", ".pre-commit-hooks.yaml")),
        ROOT / "scripts" / "ansible" / "README.md",
        ROOT / "scripts" / "ansible" / "roles" / "fleet" / "meta" / "argument_specs.yml",
        *sorted((ROOT / "data" / "docs").rglob("*.md")),
    )
}
"""What people read as it is written."""

DOCUMENTS = ("check", "diff", "error", "explain", "facts", "fleet", "plan", "run", "verify")
"""The documents of `--json`, whose schemas people read."""

IN_PAGES = [
    # archaic verbs, and verbs that mean anything
    *(r"mend\w*", r"tell(s|ing)?", r"told", r"brings?(?! back)", r"falls? out"),
    *(r"carr(y|ies)(?! out)", r"goes with", r"takes? out", r"set aside"),
    r"puts? (it |them |everything )?back",
    # sentences without a verb, and words that only this program used
    *(r"typed there", r"as things are", r"as it is", r"what of it", r"(the|this|one) set"),
    *(r"wish\w*", r"nothing here(?! needs)", r"anew", r"made here"),
    # one word for one thing: directory, option, package
    *(r"folders?", r"flags?", r"(CPU|GPU) builds?", r"builds? for CPUs"),
]
ENGLISH = [
    *IN_PAGES,
    *(r"holds?", r"gives?", r"whose", r"of which"),
    *(r"releases?", r"matrix(?! product)"),  # version, compatibility data
    # a text is printed of other machines, too
    *(r"here", r"(?<!is )there(?! (is|are|was|were)\b)", r"this machine", r"this computer"),
]
CHINESE = [
    *("本机", "此处", "这台机器", "那台机器", "那里", "矩阵(?!乘法)", "就目前状况", "这一组"),
    *("空包", "普通依赖", "上次执行", "并非如此", "证据", "所选集合"),
]
ITSELF = "the machine that the command runs on, never another one"
EXCEPTIONS = {
    ("texts.findings.environment-moved.summary", "there"): "the directory that the sentence names",
    ("texts.reasons.tensorrt-gpu-too-old.text", "release"): "NVIDIA's release notes",
    ("failures.origin.sherpa.remedy.build", "release"): "a release on GitHub",
    ("failures.failure.executable-stack.remedy", "flag"): "a flag of a file's format",
    ("failures.failure.other-executable-stack.remedy", "flag"): "a flag of a file's format",
    **{
        (path, phrase): ITSELF
        for path in (
            "explain/texts.labels.explain-not-looked.text",
            "explain/texts.labels.explain-this-machine.text",
            "explain/help.flags.text-only",
            "explain/help.commands.explain.details.1",
            "machines/texts.labels.drift-machine.text",
            "machines/texts.labels.drift-holds.text",
            "machines/texts.labels.drift-drifted.text",
            "machines/texts.labels.drift-impossible.text",
            "machines/help.more.machines-lock.details.0",
            "update/help.flags.all-platforms",
            "help.commands.facts.brief",
            "help.commands.facts.what",
        )
        for phrase in ("this machine", "本机")
    },
    ("help.commands.facts.details.0", "this machine"): ITSELF,
    **{
        (path, "本机"): "`instead of this one`"
        for path in (
            "help.commands.facts.flags.facts",
            "help.commands.download.flags.facts",
            "help.flags.facts",
            "explain/help.commands.explain.flags.facts",
        )
    },
}
"""Where a phrase is right, and why."""


def texts() -> Iterator[tuple[str, str, str]]:
    """Yield each text that is held to it: its path, and what people read of it, without code."""
    for name, path in TABLES.items():
        yield from leaves(tomllib.loads(path.read_text("utf-8")), name)


def leaves(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, dict) and isinstance(value.get("en"), str):
        yield path, prose(value["en"]), prose(value["zh"])
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            name = inner.get("code", number) if isinstance(inner, dict) else number
            yield from leaves(inner, f"{path}.{name}")


def prose(text: str) -> str:
    """Return `text` without code: what stands in backticks, placeholders, addresses, options."""
    code = r"(?s:```.*?```)|`[^`]*`|\{[^}]*\}|\]\([^)]*\)|https?://\S+|--[\w-]+"
    return re.sub(code, "", text)


TEXTS = list(texts())


def test_texts_are_looked_at() -> None:
    names = {path.partition(".")[0] for path, _, _ in TEXTS}

    assert names == TABLES.keys()
    assert len(TEXTS) > 1500


@pytest.mark.parametrize("phrase", ENGLISH)
def test_the_old_voice_is_gone(phrase: str) -> None:
    pattern = re.compile(rf"\b{phrase}\b", re.IGNORECASE)
    found = {
        (path, hit[0].lower()) for path, english, _ in TEXTS for hit in pattern.finditer(english)
    }

    assert found - EXCEPTIONS.keys() == set()


@pytest.mark.parametrize("phrase", CHINESE)
def test_the_old_voice_is_gone_in_chinese(phrase: str) -> None:
    found = {(path, hit[0]) for path, _, chinese in TEXTS for hit in re.finditer(phrase, chinese)}

    assert found - EXCEPTIONS.keys() == set()


@pytest.mark.parametrize("phrase", IN_PAGES)
def test_the_old_voice_is_gone_from_pages(phrase: str) -> None:
    pattern = re.compile(rf"\b{phrase}\b", re.IGNORECASE)
    found = [
        f"{name}: {line}"
        for name, path in PAGES.items()
        for line in prose(path.read_text("utf-8")).splitlines()
        if pattern.search(line)
    ]

    assert found == []


@pytest.mark.parametrize("phrase", IN_PAGES)
def test_the_old_voice_is_gone_from_schemas_and_options(phrase: str) -> None:
    pattern = re.compile(rf"\b{phrase}\b", re.IGNORECASE)
    described = [
        prose(text)
        for name in DOCUMENTS
        for text in re.findall(
            r'"description": ("(?:[^"\\]|\\.)*")',
            (DATA / f"{name}.schema.json").read_text("utf-8"),
        )
    ]
    options = [f"{flag.name} {flag.metavar}".replace("-", " ") for flag in FLAGS]

    assert len(described) > 100
    assert [text for text in (*described, *options) if pattern.search(text)] == []


def test_no_exception_is_for_nothing() -> None:
    both = {path: f"{english} {chinese}".lower() for path, english, chinese in TEXTS}

    for (path, phrase), why in EXCEPTIONS.items():
        assert phrase in both[path], path
        assert why, path
