"""What `verify --json` prints fits `data/verify.schema.json`, and no key of it is unknown there."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from documents import SCHEMAS, check, put
from pages import made

from ortgpu_fix.guests.bench.measurement import Failed
from ortgpu_fix.guests.bench.model_report import Copies, Fallback, without_run
from ortgpu_fix.plan.reasons import Reason, reason
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


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS["verify"])


@pytest.mark.parametrize("gpu", [True, False])
@pytest.mark.parametrize("cut", [None, 12, 40])
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


def test_an_error() -> None:
    check({"schema": 1, "error": {"code": "shape-syntax", "message": "x", "hint": None}})


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["verdict"], "fine"),
        (["schema"], 2),
        (["models"], None),
        (["new"], 1),
        (["model", "checked", 0, "right"], "yes"),
        (["model", "providers", 0, "ms"], "1"),
        (["bench", "configurations", 0, "timings", 0, "median_ms"], -1.0),
        (["bench", "configurations", 0, "graph"], None),
        (["advice", "new"], 1),
        (["model", "shapes", 0, "input"], [0.5]),
    ],
)
def test_what_does_not_fit_is_seen(place: list[Any], value: object) -> None:
    document = model_document(gpu=True)
    put(document, place, value)

    with pytest.raises(jsonschema.ValidationError):
        check(document)


def test_every_key_is_in_the_document() -> None:
    """Nothing is promised that is not there."""
    document = model_document(gpu=True)
    for key in ("verdict", "models", "libraries", "evidence", "notes"):
        with pytest.raises(jsonschema.ValidationError):
            check({name: document[name] for name in document if name != key}, "verify")


def test_what_may_be_unknown_is_null() -> None:
    report = made().report
    copies = Copies(to_device=1)
    fallback = Fallback(name="n", op="Loop", why="unknown", ms=0.1)
    failed = Failed(key="cuda-graph", shape=None, error="x")
    document = model_document(gpu=True)
    document["model"] = {
        **report.to_json(),
        "gpu": None,
        "gpu_memory_bytes": None,
        "copies": vars_of(copies),
        "fallbacks": [vars_of(fallback)],
    }
    document["bench"]["configurations"][0]["failed"] = [vars_of(failed)]

    check(json.loads(json.dumps(document)))


def vars_of(row: Any) -> dict[str, Any]:
    """Return a record as the document has it."""
    return {name: getattr(row, name) for name in row.__slots__}


def test_a_model_that_nothing_can_run_is_told_with_what_keeps_it() -> None:
    found = Verification(
        verdict="cpu-fallback",
        values=(("reason", "no onnxruntime"),),
        notes=(reason("import-failed"),),
        evidence=("onnxruntime cannot be imported",),
    )

    document = without_run(found, "model.onnx").to_json()

    assert document["file"] == "model.onnx"
    assert document["notes"] == [{"code": "import-failed", "values": {}}]
    assert document["evidence"] == ["onnxruntime cannot be imported"]
