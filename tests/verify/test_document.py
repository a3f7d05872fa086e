"""What `verify --json` prints fits `data/verify.schema.json`, and no key of it is unknown there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from documents import check
from pages import made

from ortgpu_fix.plan.reasons import Reason
from ortgpu_fix.verify.verification import (
    CheckedTorch,
    LoadedLibrary,
    ModelRun,
    PlacedNode,
    TorchResult,
    TorchRun,
    Verification,
)

RUN = ModelRun(
    name="conv",
    gpu="NVIDIA A10 (8.6)",
    nodes=(PlacedNode("Conv", "CUDAExecutionProvider"),),
    deviation=0.0,
)
LIBRARY = LoadedLibrary(name="libcudnn.so.9", path="/x/libcudnn.so.9", version="9.1")


def model_document(*, gpu: bool, cut: int | None = None) -> dict[str, Any]:
    """What the command makes of a recorded run."""
    page = made(gpu=gpu, cut=cut)
    document: dict[str, Any] = Verification(verdict="no-gpu").to_json()
    document |= {"verdict": page.report.verdict, "model": page.report.to_json()}
    document |= {"bench": page.bench.to_json(), "advice": page.advice.to_json()}
    printed: dict[str, Any] = json.loads(json.dumps(document))
    return printed


@pytest.mark.parametrize("gpu", [True, False])
@pytest.mark.parametrize("cut", [None, 40])
def test_a_model_and_its_times(cut: int | None, *, gpu: bool) -> None:
    """Also where an interrupt came after so many lines."""
    check(model_document(gpu=gpu, cut=cut))


def test_the_small_models_and_torch() -> None:
    run = TorchRun(gpu="NVIDIA A10 (8.6)", error=None, product=0.0, convolution=1e-7)
    torch = TorchResult(error=None, unavailable=None, runs=(run,))
    order = Verification(verdict="works", torch=torch, libraries=(LIBRARY,))
    whole = Verification(
        verdict="works",
        models=(RUN,),
        libraries=(LIBRARY,),
        helped=("libcufft.so.11",),
        notes=(Reason(code="libraries-helped", values=(("libraries", "libcufft.so.11"),)),),
        evidence=("x",),
        build=CheckedTorch(version="2.8.0+cu128", cuda="12.8"),
        orders=(("first", order), ("alone", order)),
    )

    check(json.loads(json.dumps(whole.to_json())))
