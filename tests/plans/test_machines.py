"""The plan for every machine that is kept: worked out by hand, with the reason beside it.

`expected.json` says what must come out and why; none of it was copied from what came out.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from checker import check
from random_machines import TABLES, plan

from ortgpu_fix.cli.commands.plan import VERDICT_EXIT
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.report.plan import plan_sections
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve, resolve_for_check

FOLDER = Path(__file__).parents[1] / "captures"
MACHINES = sorted(path.parent.name for path in FOLDER.glob("*/expected.json"))
MATRIX = load_matrix()


def read(name: str, file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name / file).read_text("utf-8"))
    return found


def document(name: str) -> dict[str, Any]:
    written = FOLDER / name / "facts.json"
    found: dict[str, Any] = read(name, "expected.json").get("facts", {})
    return read(name, "facts.json") if written.exists() else found


def machine(name: str) -> Facts:
    return facts_json.from_json(document(name))


@functools.cache
def planned(name: str, **options: Any) -> Plan:
    return resolve(machine(name), PlanOptions(**options), MATRIX)


def words(name: str, language: Any = "en", *, verbose: bool = False, **options: Any) -> str:
    texts = load_texts(language)
    made = planned(name, **options)
    sections = plan_sections(
        made, machine(name), texts, verbose=verbose, asked=False, command="ortgpu-fix --apply"
    )
    return plain(sections)


def test_every_folder_says_what_is_expected() -> None:
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) == MACHINES


@pytest.mark.parametrize("name", MACHINES)
def test_a_judge_without_the_program_has_nothing_against_it(name: str) -> None:
    given = document(name)

    assert [*check(given, plan(given), TABLES)] == []


@pytest.mark.parametrize("name", MACHINES)
def test_the_plan_is_the_one_worked_out_by_hand(name: str) -> None:
    expected = read(name, "expected.json")["plan"]
    made = planned(name)

    assert expected.pop("why")
    assert expected == {
        "verdict": made.verdict,
        "exit": VERDICT_EXIT[made.verdict],
        "selection": {row.name: row.version for row in made.selection} or None,
        "uninstall": list(made.uninstall),
        "requires": list(made.requires),
        "findings": [finding.code for finding in made.findings],
    }


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("options", [{}, {"latest": True}, {"torch": "match"}], ids=str)
def test_a_check_comes_to_the_verdict_of_the_plan(name: str, options: dict[str, Any]) -> None:
    asked = machine(name), PlanOptions(**options), MATRIX
    made, checked = resolve(*asked, unlocking=False), resolve_for_check(*asked)

    assert (checked.verdict, checked.unfixable) == (made.verdict, made.unfixable)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_machine_is_told_in_words(name: str, language: Any) -> None:
    assert "{" not in words(name, language, verbose=True)


# The five machines whose owners wrote down what went wrong.


@pytest.mark.parametrize(
    ("name", "torch", "index", "version"),
    [
        # Driver 576 speaks 12.9: of the newest torch for CUDA 12 on Windows with code for 12.0.
        ("windows-rtx5060-576", "2.11.0+cu128", "cu128", "1.26.0"),
        # Driver 581 speaks 13.0: 13.2 runs as well, by minor-version compatibility, after 13.0.
        ("windows-rtx5060-581", "2.15.0+cu130", "cu130", "1.31.1"),
    ],
)
def test_a_new_card_gets_a_torch_that_is_built_for_it(
    name: str, torch: str, index: str, version: str
) -> None:
    made = planned(name, torch=">=2.4")
    wheels = {wheel.name: wheel for wheel in made.install}

    assert wheels["torch"].version == torch
    assert wheels["torch"].index_url == f"https://download.pytorch.org/whl/{index}"
    assert wheels["onnxruntime-gpu"].version == version
    assert made.cuda == torch[-3:-1]


def test_a_torch_without_code_for_the_card_names_the_wheel_that_has_it() -> None:
    label = "cu124"
    wish = f"==2.5.1+{label}"
    said = words("windows-rtx5060-576", torch=wish)
    chinese = words("windows-rtx5060-576", "zh", torch=wish)

    assert planned("windows-rtx5060-576", torch=wish).verdict == "impossible"
    assert f"torch 2.5.1+{label}" in said
    assert "does not support compute capability 12.0" in said
    assert "No need to build from source" in said
    assert "onnxruntime-gpu 1.26.0, torch 2.11.0+cu128  `--torch 2.11.0+cu128`" in said
    assert "不支持计算能力 12.0" in chinese
    assert "无需从源码编译" in chinese
