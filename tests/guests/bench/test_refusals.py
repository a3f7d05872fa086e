"""Why a model was not run: each sentence with its values."""

from __future__ import annotations

from typing import Any

import pytest

from ortgpu_fix.guests.bench.bench import Timing, has_tf32, timing
from ortgpu_fix.guests.bench.measurement import Measurement, Tensor
from ortgpu_fix.guests.bench.refusal import refusal


def refused(code: str, release: str | None = "1.26.0", **values: Any) -> tuple[str, dict[str, Any]]:
    error = refusal(Measurement(refused=(code, values), release=release), "m.onnx")
    assert error is not None
    return error.code, dict(error.values)


OPSET = "[ONNXRuntimeError] : 1 : FAIL : Opset 99 is under development and only official support"
KNOWN = f"{OPSET} for domain ai.onnx is till opset 21."


@pytest.mark.parametrize(
    ("error", "code", "values"),
    [
        (KNOWN, "model-too-new", {"needs": "opset 99", "reads": "opset 21"}),
        (OPSET, "model-too-new", {"needs": "opset 99", "reads": "older ones"}),
        (
            "Unsupported model IR version: 12, max supported IR version: 10",
            "model-too-new",
            {"needs": "IR version 12", "reads": "IR version 10"},
        ),
        (
            "[ONNXRuntimeError] : 1 : FAIL : my.domain:Op(-1) is not a registered function/op",
            "model-operator",
            {"operator": "my.domain:Op"},
        ),
        ("odd  \\n thing", "model-unloadable", {"problem": "odd \\n thing"}),
    ],
)
def test_what_a_release_does_not_load_is_told_with_its_number(
    error: str, code: str, values: dict[str, str]
) -> None:
    assert refused("load", error=error) == (code, {"file": "m.onnx", "release": "1.26.0", **values})
    assert refused("load", None, error=error)[1]["release"] == "?"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("x: External data of y is missing", "model-external-data"),
        ("external initializer z", "model-external-data"),
        ("cannot get file size: no such file", "model-external-data"),
        ("Deserialize tensor w failed", "model-external-data"),
        ("Load model failed: INVALID_PROTOBUF", "model-unreadable"),
        ("No graph was found in the protobuf.", "model-unreadable"),
        ("NO_SUCHFILE", "model-unreadable"),
        ("ModelProto does not have a graph.", "model-unreadable"),
    ],
)
def test_what_is_wrong_with_the_file_is_told_with_what_was_said(error: str, code: str) -> None:
    assert refused("load", error=error) == (
        code,
        {"file": "m.onnx", "problem": error.partition("x: ")[2] or error},
    )


def test_a_problem_is_one_line_without_the_name_of_its_class() -> None:
    error = "Fail: [ONNXRuntimeError] : 1 : FAIL : one\n   two " + "".join(
        f"{number:03} " for number in range(100)
    )
    _, values = refused("load", error=error)

    assert values["problem"].startswith("one two 000 001")
    assert len(values["problem"]) == 300


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


@pytest.mark.parametrize("more", ["", " bfloat16", " Int4x2"])
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


@pytest.mark.parametrize("code", ["load", "shapes", "other"])
def test_a_lack_of_memory_is_told_whatever_was_tried(code: str) -> None:
    for error in ("std::bad_alloc", "Failed to allocate memory for requested buffer"):
        assert refused(code, error=error) == ("model-memory", {"file": "m.onnx"})
    assert refused("memory") == ("model-memory", {"file": "m.onnx"})


def measured(**times: list[float]) -> Timing:
    rows = {("cuda", 1, kind): [tuple(values)] for kind, values in times.items()}
    return timing(Measurement(times=rows), "cuda", 1)


def test_the_numbers_of_some_runs() -> None:
    found = measured(
        first=[90.0, 80.0], warm=[5.0, 4.0], steady=[1.0, 2.0, 3.0, 4.0, 5.0], changed=[7.0, 9.0]
    )

    assert found == Timing(
        key="cuda",
        shape=1,
        first_ms=90.0,
        warm_ms=(5.0, 4.0),
        median_ms=3.0,
        low_ms=2.0,
        high_ms=4.0,
        least_ms=1.0,
        runs=5,
        changed_ms=8.0,
    )
    assert measured(first=[1.0]) == Timing(key="cuda", shape=1, first_ms=1.0)
    once = measured(steady=[1.23456])
    assert (once.low_ms, once.median_ms, once.high_ms, once.least_ms) == (1.2346,) * 4
    assert (once.runs, once.first_ms, once.changed_ms) == (1, None, None)


@pytest.mark.parametrize(
    ("release", "has"), [("1.17.3", False), ("1.18.0", True), ("2.0", True), (None, False)]
)
def test_which_releases_know_tf32(release: str | None, *, has: bool) -> None:
    assert has_tf32(release) is has
