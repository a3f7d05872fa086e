"""When onnxruntime with a plugin provider is a GPU set-up of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ortgpu_fix.data_files import example_machine
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import plugin_kept, resolve, resolve_for_check
from ortgpu_fix.resolve.situation import situation

RTX = "onnxruntime-ep-nv-tensorrt-rtx-cu13"


def machine(*names: str, **more: object) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(json.dumps(example_machine()))
    facts["packages"] = [{"name": name, "version": "1.31.1"} for name in names]
    return facts | {"driver": {"version": "580.95.05", "cuda": "13.0"}} | more


def kept(document: dict[str, Any], options: PlanOptions | None = None) -> str | None:
    here = situation(from_json(document), options or PlanOptions(), load_matrix(torch=False))
    found = plugin_kept(here)
    return found.name if found else None


@pytest.mark.parametrize(
    ("document", "name"),
    [
        (machine("onnxruntime", RTX), RTX),
        (machine("onnxruntime", "onnxruntime-ep-cuda12", RTX), "onnxruntime-ep-cuda12"),
        (machine("onnxruntime"), None),
        (machine(RTX), None),
        (machine("onnxruntime", RTX, gpus=[]), None),
        (machine("onnxruntime", RTX, gpus=None), None),
        (machine("onnxruntime", RTX, driver=None), None),
        (machine("onnxruntime", RTX, driver={"version": None, "cuda": "12.9"}), None),
        (machine("onnxruntime", RTX, "onnxruntime-gpu"), None),
        (machine("onnxruntime", RTX, "onnxruntime-directml"), None),
    ],
)
def test_it_is_kept_where_it_can_work(document: dict[str, Any], name: str | None) -> None:
    assert kept(document) == name


@pytest.mark.parametrize(("at", "change"), [(0, {"provided": True}), (1, {"intact": False})])
def test_an_empty_onnxruntime_or_a_damaged_plugin_is_none(at: int, change: dict[str, bool]) -> None:
    document = machine("onnxruntime", RTX)
    document["packages"][at] |= change

    assert kept(document) is None


@pytest.mark.parametrize(
    "options",
    [
        PlanOptions(latest=True),
        PlanOptions(cuda="13"),
        PlanOptions(onnxruntime=">=1.26"),
        PlanOptions(providers=True),
        PlanOptions(torch="match"),
    ],
)
def test_it_gives_way_to_a_wish(options: PlanOptions) -> None:
    assert kept(machine("onnxruntime", RTX), options) is None


def test_the_plan_leaves_it_and_the_check_agrees() -> None:
    facts = from_json(machine("onnxruntime", RTX))
    matrix = load_matrix()
    made = resolve(facts, PlanOptions(), matrix)

    assert (made.verdict, made.uninstall, made.install) == ("healthy", (), ())
    assert [row.code for row in made.findings] == ["plugin-provider"]
    assert (made.matrix_date, made.matrix_digest) == (matrix.date, matrix.digest)
    assert resolve_for_check(facts, PlanOptions(), matrix).verdict == "healthy"
    python = facts.python._replace(change="unfinished")
    assert resolve(facts._replace(python=python), PlanOptions(), matrix).verdict == "fixable"
