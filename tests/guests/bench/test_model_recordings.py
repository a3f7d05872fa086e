"""Where a model ran, from recorded profiles.

The recordings are real, of onnxruntime on the CPU. No GPU was at hand: a profile of one is made of
a real one here, with CUDAExecutionProvider in the place of the other, `Memcpy` nodes as onnxruntime
inserts them, and the sentences of its log as its source has them (`fallback_cpu_capability.cc`,
`cuda_execution_provider.cc`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from told import values_of

from ortgpu_fix.guests.bench.measurement import (
    Measurement,
    parse_measurement,
    say_shapes,
    shapes_of,
)
from ortgpu_fix.guests.bench.model_report import ModelReport
from ortgpu_fix.guests.bench.model_verdict import judge_model
from ortgpu_fix.guests.bench.refusal import refusal
from ortgpu_fix.verify.verification import Verification

RECORDINGS = Path(__file__).parents[2] / "recordings" / "measure"
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
NO_KERNEL = (
    "2026-11-22 03:50:37.9 [I:onnxruntime:Default, cuda_execution_provider.cc:3055 GetCapability]"
    " CUDA kernel not found in registries for Op type: {op} node name: {name}\n"
)
Rows = list[dict[str, Any]]


def recorded(name: str) -> Rows:
    text = (RECORDINGS / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def parsed(rows: Rows, log: str = "") -> Measurement:
    return parse_measurement("\n".join(json.dumps(row) for row in rows), log)


def judged(rows: Rows, log: str = "", **more: Any) -> ModelReport:
    environment = Verification(verdict=more.pop("environment", "works"))
    return judge_model(parsed(rows, log), file="m.onnx", environment=environment, **more)


def as_gpu(
    name: str = "silero-vad-place-1.31.1",
    *,
    on_cpu: Callable[[dict[str, Any]], bool] = lambda _: False,
    copies: tuple[str, ...] = (),
    deviation: float | None = 0.0,
) -> Rows:
    """A recording with a second session, as if the GPU had run what is not `on_cpu`."""
    rows = recorded(name)
    more: Rows = [{"event": "gpu", "name": "NVIDIA A10 (8.6)", "index": 0}]
    for row in rows:
        if row.get("key") != "cpu" or row["event"] == "doing":
            continue
        new = {**row, "key": "cuda"}
        if row["event"] == "session":
            new["providers"] = [CUDA, CPU]
        elif row["event"] == "outputs":
            new["outputs"] = [{**each, "deviation": deviation} for each in row["outputs"]]
        elif row["event"] == "profile":
            events = [{**each, "provider": CPU if on_cpu(each) else CUDA} for each in row["events"]]
            first = {**events[0], "provider": CUDA, "output_size": "1000", "us": 7}
            events += [
                {**first, "op_name": op, "name": f"Memcpy_{at}_kernel_time"}
                for at, op in enumerate(copies)
            ]
            new["events"] = events
        more.append(new)
    return [*rows[:-1], *more, rows[-1]]


@pytest.mark.parametrize("release", ["1.12.0", "1.31.1"])
def test_a_real_profile_of_the_cpu(release: str) -> None:
    found = judged(recorded(f"silero-vad-place-{release}"), environment="no-gpu")

    assert (found.verdict, found.onnxruntime, found.gpu) == ("no-gpu", release, None)
    [share] = found.providers
    assert share.provider == CPU
    assert share.nodes == sum(found.operators.values())
    assert share.ms > 0
    assert found.operators["FusedConv"] == 5
    assert found.fallbacks == ()
    assert found.checked == ()
    assert [note.code for note in found.notes] == ["shapes-guessed"]
    assert say_shapes(found.shapes[0]) == "input=1x512, state=2x1x128, sr="
    assert found.first_ms.keys() == {"cpu"}


def test_an_operator_without_a_kernel() -> None:
    rows = as_gpu(
        on_cpu=lambda each: each["op_name"] == "LSTM",
        copies=("MemcpyToHost", "MemcpyFromHost", "MemcpyFromHost"),
    )
    names = {
        each["name"].removesuffix("_kernel_time")
        for row in rows
        for each in row.get("events", [])
        if each["op_name"] == "LSTM"
    }
    log = "".join(NO_KERNEL.format(op="LSTM", name=name) for name in sorted(names))

    found = judged(rows, log)

    assert found.verdict == "cpu-fallback"
    assert values_of(found)["count"] == str(len(names))
    assert values_of(found)["operators"] == "LSTM"
    assert {row.name for row in found.fallbacks} == names
    assert {row.why for row in found.fallbacks} == {"no-kernel"}
    assert [row.ms for row in found.fallbacks] == sorted(
        (row.ms for row in found.fallbacks), reverse=True
    )
    copies = found.copies
    assert copies is not None
    assert (copies.to_host, copies.to_host_bytes) == (1, 1000)
    assert (copies.to_device, copies.to_device_bytes) == (2, 2000)
    assert sum(row.nodes for row in found.providers) == sum(found.operators.values())


@pytest.mark.parametrize(
    ("end", "log", "note"),
    [
        ("SIGSEGV", "", "model-crashes"),
        ("SIGKILL", "", "model-memory"),
        (
            "SIGABRT",
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "model-memory",
        ),
        ("timeout", "", "model-never-ends"),
    ],
)
def test_a_process_that_did_not_come_to_its_end(end: str, log: str, note: str) -> None:
    rows = recorded("silero-vad-place-1.31.1")[:-3]

    found = judged(rows, log, environment="no-gpu", end=end)

    assert (found.verdict, values_of(found)["end"]) == ("crashed", end)
    assert found.notes[0].code == note


def test_a_recording_cut_anywhere_is_judged() -> None:
    rows = as_gpu()
    for count in range(len(rows)):
        assert judged(rows[:count]).verdict == "crashed"


def test_lines_that_are_no_events_are_passed_over() -> None:
    text = '{"event": 7}\n[]\nnothing\n{"event": "times", "ms": "x"}\n{"event": "profile"}\n{}\n'

    assert not parse_measurement(text).ended
    assert shapes_of({"x": [1, "n", 3.5], "y": None}) == (("x", (1,)), ("y", ()))


ERRORS = recorded("load-errors")


@pytest.mark.parametrize("row", ERRORS, ids=[f"{row['case']}-{row['release']}" for row in ERRORS])
def test_what_onnxruntime_says_of_a_model_that_it_cannot_load(row: dict[str, str]) -> None:
    wanted = {
        "bad": "model-unreadable",
        "cut": "model-unreadable",
        "zero": "model-unreadable",
        "nosuch": "model-unreadable",
        "newop": "model-too-new",
        "newir": "model-too-new",
        "custom": "model-operator",
        "ext": "model-external-data",
    }
    found = parsed(
        [
            {"event": "onnxruntime", "version": row["release"]},
            {"event": "refused", "code": "load", "values": {"error": row["error"]}},
        ]
    )

    error = refusal(found, "m.onnx")

    assert error is not None
    assert error.code == wanted[row["case"]]
    if row["case"] == "newop":
        assert error.values["needs"] == "opset 99"
        reads = {"1.12.0": "opset 17", "1.19.2": "opset 21", "1.31.1": "opset 26"}
        assert error.values["reads"] == reads[row["release"]]
    if row["case"] == "custom":
        assert error.values["operator"] == "my.domain:MatMul"
    assert "[ONNXRuntimeError]" not in str(error.values.get("problem"))


def test_names_that_broke_the_profile_are_no_crash() -> None:
    rows = as_gpu()
    for row in rows:
        if row["event"] == "profile":
            row["broken"] = 3

    found = judged(rows)

    assert found.verdict == "works"
    [note] = [note for note in found.notes if note.code == "node-names-broken"]
    assert note.values == (("count", "3"),)
    assert "node-names-broken" not in [note.code for note in judged(as_gpu()).notes]
