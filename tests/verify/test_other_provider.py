"""What `verify --provider tensorrt` asks for, and what its verdicts rest on.

No GPU was there with a TensorRT: which provider ran what is made up, the messages of onnxruntime
1.26.0 are its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from smoke_said import BUILD, END, GPU, NOT_LOADED, START, driver, model, needed, say

from ortgpu_fix.cli.commands import verify as command
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.report.verification import verification_sections
from ortgpu_fix.utils.process import Finished
from ortgpu_fix.verify.runner import verify
from ortgpu_fix.verify.verification import Verification, verification_exit_code

TENSORRT = "TensorrtExecutionProvider"
ASKED = {**START, "provider": TENSORRT}
ON_TENSORRT = (
    model("conv", "TRTKernel_graph_1 Tensorrt", "MemcpyToHost CUDA"),
    model("matmul", "TRTKernel_graph_2 Tensorrt"),
)


def told(*events: object, **more: Any) -> Verification:
    return say(ASKED, driver(), BUILD, needed(), *events, END, **more)


def test_all_on_tensorrt_and_right_works() -> None:
    found = told(*ON_TENSORRT)

    assert (found.verdict, verification_exit_code(found)) == ("works", 0)
    assert f"conv: TRTKernel_graph_1 on {TENSORRT}, MemcpyToHost on {GPU}" in found.evidence[2]


def test_what_ran_elsewhere_is_named() -> None:
    found = told(ON_TENSORRT[0], model("matmul", "MatMul CUDA"))

    assert (found.verdict, verification_exit_code(found)) == ("other-provider", 6)
    assert dict(found.values) == {"models": "matmul", "provider": TENSORRT}
    for language in ("en", "zh"):
        (first, *_) = verification_sections(found, load_texts(language))
        assert TENSORRT in str(first)


def test_a_tensorrt_that_is_not_there_is_named() -> None:
    reason = "libnvinfer.so.10: cannot open shared object file: No such file or directory"

    found = told(model("conv", "Conv CUDA"), stderr=NOT_LOADED.format(reason))

    assert (found.verdict, dict(found.values)) == (
        "library-missing",
        {"library": "libnvinfer.so.10"},
    )


@pytest.mark.parametrize(
    ("provider", "models"),
    [("cuda", ["conv", "matmul", "fft"]), ("tensorrt", ["conv", "matmul"])],
)
def test_the_child_is_told_what_to_ask_for(provider: str, models: list[str]) -> None:
    asked: list[list[str]] = []

    def runner(argv: Any, **_: Any) -> Finished:
        asked.append(list(argv))
        return Finished(argv=tuple(argv), returncode=1, stdout="", stderr="")

    verify("python", driver=None, runner=runner, environ={}, provider=provider)

    (argv,) = asked
    assert f"--provider={provider}" in argv
    assert [Path(word).stem for word in argv if word.endswith(".onnx")] == models


def test_the_command_asks_for_what_it_was_given(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def runner(argv: Any, **_: Any) -> Finished:
        asked.extend(word for word in argv if word.startswith("--provider"))
        return Finished(argv=tuple(argv), returncode=1, stdout="", stderr="")

    monkeypatch.setattr(command, "run_process", runner)
    run_here("verify", "--python", str(venv), "--provider", "tensorrt", cwd=tmp_path, env={})

    assert asked == ["--provider=tensorrt"]


def test_a_model_of_one_s_own_is_measured_with_cuda(tmp_path: Path) -> None:
    done = run_here("verify", "x.onnx", "--provider", "tensorrt", "--json", cwd=tmp_path, env={})

    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (2, "flags-clash")
    assert "--provider tensorrt, MODEL.onnx, --bench" in error["message"]
