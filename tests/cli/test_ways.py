"""GPU set-ups that came another way than by onnxruntime-gpu: nothing that works is destroyed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix import __main__
from ortgpu_fix.apply.before_change import check_plan_allowed
from ortgpu_fix.cli.commands.apply import allowed_by
from ortgpu_fix.data_files import example_machine
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

Facts = dict[str, Any]
RTX = "onnxruntime-ep-nv-tensorrt-rtx-cu13 0.5.0"
NEW = {"version": "580.95.05", "cuda": "13.0"}


def having(*packages: str, build: str = "onnxruntime 1.31.1", **more: object) -> Facts:
    facts: Facts = json.loads(json.dumps(example_machine()))
    rows = [text.split() for text in packages]
    facts["packages"] = [{"name": name, "version": version} for name, version in rows]
    facts["gpus"] = [{"name": "NVIDIA A10", "compute_capability": "8.6"}]
    name, version = build.split()
    facts["onnxruntime"] = {"distribution": name, "version": version, "intact": True}
    return facts | more


def told(
    facts: Facts, folder: Path, capsys: pytest.CaptureFixture[str], *flags: str
) -> tuple[int, str]:
    (folder / "host.json").write_text(json.dumps(facts))
    code = __main__.main(["--facts", str(folder / "host.json"), *flags])
    return code, capsys.readouterr().out


def test_onnxruntime_with_a_plugin_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was taken for the CPU build, removed, and 1.3 GB were planned."""
    runtime = [{"name": "libcudart.so.13", "path": "/usr/lib/libcudart.so.13"}]
    facts = having("onnxruntime 1.31.1", RTX, driver=NEW, libraries=runtime)
    code, said = told(facts, tmp_path, capsys)

    assert code == 0
    assert f"{RTX} adds GPU support to onnxruntime as a plugin (NvTensorRTRTXExecution" in said
    assert said.startswith("Healthy: onnxruntime 1.31.1 has everything it needs\n")
    code, line = told(facts, tmp_path, capsys, "--check")
    assert (code, line[:4]) == (0, "OK: ")
    plan = json.loads(told(facts, tmp_path, capsys, "--json")[1])
    assert (plan["verdict"], plan["uninstall"], plan["install"]) == ("healthy", [], [])


def test_what_would_be_lost_needs_to_be_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The only training API was removed without a word."""
    package = "onnxruntime-training-cpu 1.19.2"
    facts = having(package, build=package)
    code, said = told(facts, tmp_path, capsys)
    plan = resolve(from_json(facts), PlanOptions(), load_matrix())

    assert code == 1
    assert "The training API (onnxruntime.training) is removed together with" in said
    assert said.rstrip().endswith("--allow provider --apply")
    with pytest.raises(Error, match="would-lose") as caught:
        check_plan_allowed(plan, allowed_by(()))
    assert caught.value.values == {"distribution": package.partition(" ")[0]}
    check_plan_allowed(plan, allowed_by(["provider"]))


WISH = ("--provider", "tensorrt-rtx")


def test_it_is_told_in_the_document_of_what_is_impossible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The driver runs CUDA 12, and the release that is asked for is built for CUDA 13."""
    facts = having("onnxruntime 1.31.1")
    wish = ("--ort", "1.31.1")
    code, said = told(facts, tmp_path, capsys, "--json", *wish)
    document = json.loads(said)

    assert (code, document["verdict"]) == (3, "impossible")
    [way] = document["ways"]
    plan = json.loads(told(facts, tmp_path, capsys, "--json", *wish, *WISH)[1])
    assert way["size"] == sum(row["size"] for row in plan["install"])
    assert (way["provider"], way["name"], way["version"]) == (
        *("tensorrt-rtx", "onnxruntime-ep-nv-tensorrt-rtx-cu12"),
        "0.5.0",
    )
    assert way["text"] in told(facts, tmp_path, capsys, *wish)[1].replace("\n", " ")


@pytest.mark.parametrize(
    ("flags", "clash"),
    [(("lock",), "lock"), (("--facts", "FILE", "--facts", "OTHER"), "several --facts")],
)
def test_a_set_of_onnxruntime_gpu_has_no_plugin(
    flags: tuple[str, ...], clash: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main([*flags, *WISH]) == 2
    said = capsys.readouterr().err
    assert f"These options cannot be combined: --provider tensorrt-rtx, {clash}\n" in said


@pytest.mark.parametrize(
    "facts",
    [
        having("onnxruntime 1.31.1", RTX),
        having("onnxruntime 1.31.1", "onnxruntime-directml 1.24.0", RTX, driver=NEW),
        having("onnxruntime 1.31.1", RTX, driver={"version": None, "cuda": None}),
    ],
)
def test_a_plugin_that_cannot_work_is_no_reason_to_keep_the_rest(
    facts: Facts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = told(facts, tmp_path, capsys)

    assert code in {1, 3}
    assert "as a plugin" not in said
