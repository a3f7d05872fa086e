"""The facts document: what it must hold, what it may leave out, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import (
    Driver,
    Interpreter,
    Package,
)

SHORT: dict[str, Any] = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64"},
    "driver": {"version": "535.104.12"},
    "gpus": [{"compute_capability": "8.0"}],
    "python": {"version": "3.11"},
    "packages": [{"name": "Onnx_Runtime", "version": "1.22.1"}],
}


def refused(document: object) -> Error:
    with pytest.raises(Error) as caught:
        facts_json.from_json(document)

    assert caught.value.code == "facts-invalid"
    return caught.value


def test_a_file_written_by_hand_stays_short() -> None:
    read = facts_json.from_json(SHORT)

    assert read.packages == (Package(name="onnx-runtime", version="1.22.1"),)
    assert read.python == Interpreter(version="3.11")
    assert read.onnxruntime is None


@pytest.mark.parametrize(
    ("packages", "build"),
    [
        ([("onnxruntime-gpu", "1.26.0", False)], ("onnxruntime-gpu", "1.26.0")),
        (
            [("onnxruntime-gpu", "1.26.0", False), ("onnxruntime", "1.22.1", False)],
            ("onnxruntime", "1.22.1"),
        ),
        (
            [("onnxruntime-gpu", "1.26.0", False), ("onnxruntime", "1.26.0", True)],
            ("onnxruntime-gpu", "1.26.0"),
        ),
    ],
)
def test_the_build_is_what_the_packages_claim_where_it_is_left_out(
    packages: list[tuple[str, str, bool]], build: tuple[str, str]
) -> None:
    rows = [{"name": name, "version": version, "provided": on} for name, version, on in packages]
    read = facts_json.from_json({**SHORT, "packages": rows}).onnxruntime

    assert read is not None
    assert (read.distribution, read.version) == build


@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        ({"driver": ..., "gpus": ...}, "driver-and-gpus"),
        ({"driver": {}}, "driver"),
        ({"driver": {"cuda": "12.4"}, "gpus": None}, "gpus"),
        ({"driver": None, "gpus": None}, None),
        ({"driver": ..., "gpus": []}, None),
        ({"driver": {"error": "nvml-3: NVML error 3"}, "gpus": None}, None),
    ],
)
def test_absent_unknown_and_unreadable_are_three_facts(
    change: dict[str, Any], unknown: str | None
) -> None:
    document = {key: value for key, value in {**SHORT, **change}.items() if value is not ...}
    read = facts_json.from_json(document)

    assert read.unknown == unknown
    assert (read.driver is None) == (change.get("driver", ...) is None)


def test_something_else_altogether() -> None:
    assert refused([]).values["key"] == cause("whole-document")


def test_targets_of_gpu_code_are_checked() -> None:
    written = {"onnxruntime": {"provider": {"links": [], "sass": ["8.0", ""]}}}

    with pytest.raises(Error) as raised:
        facts_json.from_json(SHORT | written)

    assert raised.value.values["key"] == "onnxruntime.provider.sass"


def test_what_a_newer_program_wrote_is_read_without_what_is_not_known() -> None:
    written: dict[str, Any] = SHORT | {"written_by": "ortgpu-fix 999.1", "moon": "full"}
    written["driver"] = {"version": "535.104.12", "colour": "green"}
    ignored: list[str] = []

    facts = facts_json.from_json(written, ignored)

    assert facts.driver == Driver(version="535.104.12")
    assert sorted(ignored) == ["driver.colour", "moon"]
    assert facts_json.from_json(written) == facts


@pytest.mark.parametrize("by", [None, facts_json.WRITTEN_BY, "another 999"])
def test_what_no_newer_program_wrote_has_no_unknown_keys(by: object) -> None:
    with pytest.raises(Error) as raised:
        facts_json.from_json(SHORT | {"written_by": by, "moon": "full"})

    assert raised.value.code == "facts-invalid"
