"""Why a model was not run: each sentence with its values."""

from __future__ import annotations

from typing import Any

import pytest

from ortgpu_fix.guests.bench.measurement import Measurement, Tensor
from ortgpu_fix.guests.bench.refusal import refusal


def refused(code: str, release: str | None = "1.26.0", **values: Any) -> tuple[str, dict[str, Any]]:
    error = refusal(Measurement(refused=(code, values), release=release), "m.onnx")
    assert error is not None
    return error.code, dict(error.values)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("x: External data of y is missing", "model-external-data"),
        ("Load model failed: INVALID_PROTOBUF", "model-unreadable"),
    ],
)
def test_what_is_wrong_with_the_file_is_told_with_what_was_said(error: str, code: str) -> None:
    assert refused("load", error=error) == (
        code,
        {"file": "m.onnx", "problem": error.partition("x: ")[2] or error},
    )


def test_an_error_that_nobody_knows_is_told_with_the_release() -> None:
    values = {"file": "m.onnx", "release": "1.26.0", "problem": "odd \\n thing"}

    assert refused("load", error="odd  \\n thing") == ("model-unloadable", values)
    assert refused("load", None, error="odd")[1]["release"] == "?"
    opset = refused("load", error="Opset 99 is under development and only official support")[1]
    assert (opset["needs"], opset["reads"]) == ("opset 99", "older ones")


def test_what_is_wrong_with_the_inputs() -> None:
    assert refused("input-type", name="x", type="seq") == (
        *("model-input-type", {"file": "m.onnx", "name": "x", "type": "seq"}),
    )
    assert refused("input-unknown", name="y", inputs="x, z") == (
        *("shape-unknown", {"name": "y", "inputs": "x, z"}),
    )
    assert refused("shape-unfit", name="x", shape="1x2", declared="nx3") == (
        *("shape-unfit", {"name": "x", "shape": "1x2", "declared": "nx3"}),
    )
    assert refused("shape-large", name="x", shape="9x9") == (
        *("shape-large", {"name": "x", "shape": "9x9"}),
    )
    assert refused("shape-large") == ("shape-large", {"name": "", "shape": ""})
    assert refused("shapes", error="Fail: no", shapes={"x": [1, 2], "s": []}) == (
        "shapes-unfound",
        {"file": "m.onnx", "tried": "x=1x2, s=", "problem": "no"},
    )
    assert refused("shapes", error="no", shapes="odd")[1]["tried"] == ""


@pytest.mark.parametrize("more", ["", " bfloat16"])
def test_an_output_that_numpy_has_no_type_for_is_no_matter_of_shapes(more: str) -> None:
    """Releases up to 1.20 do not name the type: the outputs are, as the model declares them."""
    outputs = tuple(
        Tensor(name=name, type=f"tensor({kind})", shape=(2,))
        for name, kind in (("y", "float"), ("z", "bfloat16"))
    )
    values = {"error": f"RuntimeError: No corresponding Numpy type for Tensor Type.{more}"}

    error = refusal(Measurement(refused=("shapes", values), outputs=outputs), "m.onnx")

    assert error is not None
    assert (error.code, dict(error.values)) == (
        "model-output-type",
        {"file": "m.onnx", "outputs": "y tensor(float), z tensor(bfloat16)"},
    )


@pytest.mark.parametrize("code", ["load", "other"])
def test_a_lack_of_memory_is_told_whatever_was_tried(code: str) -> None:
    for error in ("std::bad_alloc", "Failed to allocate memory for requested buffer"):
        assert refused(code, error=error) == ("model-memory", {"file": "m.onnx"})
    assert refused("memory") == ("model-memory", {"file": "m.onnx"})
