"""What is said of a model, from values: each verdict, its numbers, and the limits between them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from told import values_of

from ortgpu_fix.guests.bench.measurement import (
    Failed,
    Made,
    Measurement,
    NodeEvent,
    OutputRow,
    Tensor,
)
from ortgpu_fix.guests.bench.model_report import ModelReport
from ortgpu_fix.guests.bench.model_verdict import CUDA, WITHOUT_TF32, judge_model
from ortgpu_fix.verify.verification import Verification

GPU, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
NO_KERNEL = "CUDA kernel not found in registries for Op type: {} node name: {}\n"
FORCED = "Force fallback to CPU execution for node: {} because the CPU execution path is faster\n"


def node(name: str, op: str = "MatMul", provider: str = GPU, **more: Any) -> NodeEvent:
    values: dict[str, Any] = {"microseconds": 1000, "output_bytes": 4, "types": ("float",)}
    return NodeEvent(name=name, op=op, provider=provider, **{**values, "elements": 500, **more})


def output(
    deviation: float | None = 0.0,
    name: str = "y",
    kind: str = "float32",
    problem: str | None = None,
) -> OutputRow:
    return OutputRow(name=name, type=kind, shape=(1, 3), deviation=deviation, problem=problem)


def ran(
    *events: NodeEvent, outputs: tuple[OutputRow, ...] = (output(),), **more: Any
) -> ModelReport:
    """Judge a run on the GPU that came to its end."""
    settings = {name: more.pop(name) for name in ("end", "without_tf32") if name in more}
    environment = more.pop("environment", "works")
    values: dict[str, Any] = {
        "ended": True,
        "made": {"cpu": Made(create_ms=2.0, providers=(CPU,)), CUDA: Made(**MADE)},
        "events": {CUDA: events or (node("one"),)},
        "compared": {(CUDA, 0): outputs},
        **more,
    }
    return judge_model(
        Measurement(**values),
        file="m.onnx",
        environment=Verification(verdict=environment),
        **settings,
    )


MADE: dict[str, Any] = {"create_ms": 90.5, "providers": (GPU, CPU)}


def notes(found: ModelReport) -> list[tuple[str, dict[str, str]]]:
    return [(note.code, values_of(note)) for note in found.notes]


def test_a_session_without_the_gpu_names_every_node_once() -> None:
    events = (
        *(node("one", "Conv", CPU), node("one", "Conv", CPU), node("two", "Gemm", CPU)),
        *(node("three", "Conv", CPU), node("copy", "MemcpyToHost", CPU)),
    )
    found = ran(*events, made={CUDA: Made(create_ms=1.0, providers=(CPU,))})

    assert found.verdict == "cpu-fallback"
    counts = {"count": "3", "total": "3", "missing": "3", "free": "0"}
    assert values_of(found) == {**counts, "operators": "Conv, Gemm"}
    assert [*found.operators.items()] == [("Conv", 2), ("Gemm", 1)]


def test_work_on_shapes_counts_as_such_and_not_as_a_fallback() -> None:
    found = ran(node("a"), node("b"), node("c"), node("s", "Shape", CPU))

    assert found.verdict == "works"
    assert values_of(found) == {"total": "3", "shape_nodes": "1"}


def test_a_node_is_work_on_shapes_where_every_turn_of_its_loop_is() -> None:
    small = node("x", "Mul", CPU, types=("int64",), elements=2)
    large = node("x", "Mul", CPU, types=("int64",), elements=200)

    for turns in ((small, large), (large, small)):
        [found] = ran(node("a"), *turns).fallbacks
        assert (found.why, found.ms) == ("unknown", 2.0)


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (NO_KERNEL.format("Loop", "x"), "no-kernel"),
        (NO_KERNEL.format("Loop", "another"), "no-kernel"),
        (NO_KERNEL.format("If", "x"), "unknown"),
        (FORCED.format("x"), "optimizer"),
        (FORCED.format("another"), "unknown"),
    ],
)
def test_why_a_node_is_on_the_cpu_is_what_the_log_says_of_it(log: str, why: str) -> None:
    assert [row.why for row in ran(node("a"), node("x", "Loop", CPU), log=log).fallbacks] == [why]


def test_copies_are_those_of_a_run_and_what_the_application_copies_besides() -> None:
    events = (
        node("a", "MemcpyFromHost", output_bytes=10),
        node("b", "MemcpyFromHost", output_bytes=20),
        node("c", "MemcpyToHost", output_bytes=7),
        node("d"),
    )
    found = ran(
        *events,
        outputs=(output(), output(kind="int64")),
        inputs=(
            Tensor(name="x", type="tensor(float16)", shape=(2, 5)),
            Tensor(name="mask", type="tensor(bool)", shape=(3,)),
        ),
        shapes=((("x", (2, 5)), ("mask", (3,))), (("x", (9, 5)),)),
        given=True,
    )

    assert found.copies is not None
    assert asdict(found.copies) == {
        "to_device": 2,
        "to_device_bytes": 30,
        "to_host": 1,
        "to_host_bytes": 7,
        "input_bytes": 2 * 5 * 2 + 3,
        "output_bytes": 3 * 4 + 3 * 8,
    }
    assert ran(environment="no-gpu").copies is None
    assert ran(events={}).copies is None


@pytest.mark.parametrize(
    ("error", "noted"),
    [
        ("CUDA failure 2: out of memory ; GPU=0 ;", ["cuda-failure-2"]),
        ("CUDA failure 700: an illegal memory access was encountered ;", []),
        ("Fail: FAILED TO ALLOCATE memory for requested buffer", ["cuda-failure-2"]),
    ],
)
def test_a_run_that_failed_on_the_gpu_names_its_error(error: str, noted: list[str]) -> None:
    found = ran(
        failed=(Failed(key="other", shape=0, error="no"), Failed(key=CUDA, shape=0, error=error))
    )

    assert found.verdict == "crashed"
    assert values_of(found) == {"step": error, "end": "error"}
    assert [code for code, _ in notes(found)] == noted
    assert found.evidence == ("other: no", f"{CUDA}: {error}")
    never_made = ran(made={}, step="session cuda")
    assert (never_made.verdict, values_of(never_made)["step"]) == ("crashed", "session cuda")


X = Tensor(name="x", type="tensor(float)", shape=(1, 3))
FREE = Tensor(name="n", type="tensor(float)", shape=(1, "batch"))


@pytest.mark.parametrize(
    ("inputs", "given", "guessed"),
    [
        ((X, FREE), False, True),
        ((X, FREE), True, False),
        ((X,), False, False),
        ((Tensor(name="n", type="tensor(float)", shape=(None, 3)),), False, True),
    ],
)
def test_shapes_are_guessed_where_one_is_free_and_none_was_given(
    inputs: tuple[Tensor, ...], *, given: bool, guessed: bool
) -> None:
    shapes = ((("n", (1, 3)),), (("n", (4, 3)),))
    found = ran(inputs=inputs, given=given, shapes=shapes)

    assert notes(found) == (
        [("shapes-guessed", {"shapes": "--shape n=1x3; --shape n=4x3"})] if guessed else []
    )
    assert (found.inputs, found.shapes, found.shapes_given) == (inputs, shapes, given)
    crashed = ran(inputs=inputs, given=given, ended=False, end="SIGSEGV")
    assert notes(crashed) == [("model-crashes", {})]  # no shape is known to have worked


@pytest.mark.parametrize(
    ("deviation", "kind", "event", "right"),
    [
        (1e-3, "float32", "float", True),
        (1.1e-3, "float32", "float", False),
        (2e-2, "float32", "float16", True),
        (2.1e-2, "float16", "float", False),
        (None, "float32", "float", False),
    ],
)
def test_half_as_exact_numbers_may_deviate_more(
    deviation: float | None, kind: str, event: str, *, right: bool
) -> None:
    found = ran(node("a", types=(event,)), outputs=(output(deviation, kind=kind),))

    [row] = found.checked
    assert (row.right, row.deviation) == (right, deviation)
    assert row.tolerance == (2e-2 if "float16" in {kind, event} else 1e-3)
    assert found.float16 == (event == "float16")
    assert found.verdict == ("works" if right else "wrong-result")


def test_an_output_without_numbers_is_not_said_to_be_random() -> None:
    rows = (
        *(output(None, "none", problem="type"), output(None, "sparse", problem="type")),
        *(output(0.5, "random"), output(None, "odd", problem="shape"), output()),
    )

    found = ran(outputs=rows, repeated=rows)

    assert found.verdict == "works"
    assert notes(found) == [
        ("outputs-random", {"outputs": "random, odd"}),
        ("outputs-not-compared", {"outputs": "none, sparse"}),
    ]
    twice = ran(compared={(CUDA, 0): rows[:3], (CUDA, 1): rows[:3]}, repeated=rows)
    assert [values for _, values in notes(twice)] == [
        {"outputs": "random"},
        {"outputs": "none, sparse"},
    ]
    alone = ran(outputs=rows[:1], repeated=rows)
    assert [code for code, _ in notes(alone)] == ["outputs-not-compared"]
    assert notes(ran(outputs=rows[-1:], repeated=rows[-1:])) == []


def without_tf32(*outputs: OutputRow) -> Measurement:
    return Measurement(ended=True, compared={(WITHOUT_TF32, 0): outputs} if outputs else {})


@pytest.mark.parametrize(
    ("exact", "verdict"),
    [
        (without_tf32(output(1e-6), output(1e-6, "z")), "works"),
        (without_tf32(output(1e-6), output(0.5, "z")), "wrong-result"),
        (without_tf32(), "wrong-result"),
        (None, "wrong-result"),
    ],
)
def test_tf32_is_the_reason_where_all_is_right_without_it(
    exact: Measurement | None, verdict: str
) -> None:
    outputs = (output(4e-3), output(6e-3, "z"), output(0.0, "w"))

    found = ran(outputs=outputs, without_tf32=exact)

    assert found.verdict == verdict
    works = verdict == "works"
    assert notes(found) == ([("tf32-deviates", {"deviation": "0.006"})] if works else [])
    if not works:
        assert values_of(found) == {"outputs": "y, z"}


def test_where_the_gpu_was_not_tried_nothing_is_said_of_it() -> None:
    events = {"cpu": (node("a", "Conv", CPU),), CUDA: (node("b"),)}
    found = ran(environment="no-driver", events=events, gpu="A10 (8.6)")

    assert (found.verdict, found.values, found.gpu) == ("no-driver", (), None)
    assert (found.fallbacks, found.checked, found.copies) == ((), (), None)
    assert found.operators == {"Conv": 1}
