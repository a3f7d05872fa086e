"""An environment that is right but for its TensorRT, by the commands, with the shipped matrix."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import synthetic
from ortgpu_fix.__main__ import main

Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run the command on facts; return its exit code and what it printed."""

    def run(facts: dict[str, Any], *argv: str) -> tuple[int, str]:
        file = tmp_path / "facts.json"
        file.write_text(json.dumps(facts))
        code = main(["--facts", str(file), *argv])
        return code, capsys.readouterr().out

    return run


def healthy(ask: Ask, release: str, **more: Any) -> dict[str, Any]:
    """Return the facts of a machine on which everything is installed that the plan names."""
    facts = synthetic.document("numpy 2.2.6", driver="12.8", gpus=("8.6",), **more)
    plan = json.loads(ask(facts, "--ort", f"=={release}", "--json")[1])
    wheels = [*plan["selection"]["packages"], *plan["companions"]]
    found = {row["name"]: row["version"] for row in wheels}
    found |= dict.fromkeys(plan["requires"], "100.0")
    facts["packages"] = [
        {"name": name, "version": version, "provided": name == "onnxruntime"}
        for name, version in {"numpy": "2.2.6", **found}.items()
    ]
    facts["onnxruntime"] = {"distribution": "onnxruntime-gpu", "version": release}
    return facts


@pytest.mark.parametrize(
    ("release", "installed", "codes", "exit_code"),
    [
        ("1.23.2", [], [], 0),
        ("1.23.2", ["tensorrt 10.16.1.11"], [], 0),
        ("1.23.2", ["tensorrt 11.4.0.106"], ["tensorrt-costs-cuda"], 1),
        ("1.26.0", ["tensorrt-cu13 11.4.0.106"], ["tensorrt-unfit"], 0),
        ("1.26.0", ["tensorrt-cu12 10.16.1.11"], [], 0),
        ("1.26.0", [], [], 0),
    ],
)
def test_a_healthy_environment_with_a_tensorrt(
    release: str, installed: list[str], codes: list[str], exit_code: int, ask: Ask
) -> None:
    facts = healthy(ask, release)
    facts["packages"] += [
        dict(zip(("name", "version"), row.split(), strict=True)) for row in installed
    ]

    code, document = ask(facts, "--json")
    checked, _ = ask(facts, "--check")

    plan = json.loads(document)
    assert plan["verdict"] == "healthy"
    told = [row for row in plan["findings"] if row["severity"] != "info"]
    assert [row["code"] for row in told] == codes
    assert (code, checked) == (exit_code, exit_code)
    _, text = ask(facts)
    assert ("pip install 'tensorrt-cu12==10.*'" in text) is bool(codes)


def test_a_tensorrt_of_the_system_is_told_with_its_place(ask: Ask) -> None:
    library = {"name": "libnvinfer.so.11", "path": "/opt/tensorrt/lib/libnvinfer.so.11"}
    facts = healthy(ask, "1.26.0", libraries=[library])

    _, text = ask(facts)

    assert "but /opt/tensorrt/lib/libnvinfer.so.11 is installed;" in text


def test_the_wish_for_it_is_a_plan_and_its_command(ask: Ask) -> None:
    facts = healthy(ask, "1.26.0")
    wish = ("--provider", "tensorrt", "--tensorrt-index-url", "https://me:secret@m.example/trt/")

    code, document = ask(facts, *wish, "--json")
    _, text = ask(facts, *wish)
    checked, _ = ask(facts, *wish[:2], "--check")

    assert (code, checked) == (1, 1)
    (wheel,) = json.loads(document)["install"]
    assert wheel["name"] == "tensorrt-cu12-libs"
    assert (wheel["index"], wheel["sha256"]) == ("https://m.example/trt", None)
    command = "--provider tensorrt --tensorrt-index-url https://m.example/trt/ --apply"
    assert command in text
    assert "from https://m.example/trt" in text
    assert "plus packages from other indexes" in text
    assert "secret" not in document + text


def test_who_has_it_has_all_that_was_wished_for(ask: Ask) -> None:
    facts = healthy(ask, "1.26.0")
    facts["packages"].append({"name": "tensorrt-cu12-libs", "version": "10.3.0"})

    codes = {ask(facts, *more)[0] for more in ((), ("--provider", "tensorrt"), ("--check",))}

    assert codes == {0}
