"""An installed TensorRT against the one that the chosen onnxruntime-gpu links."""

from __future__ import annotations

from typing import Any

import pytest
from told import values_of

import synthetic
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.reasons import Finding
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve, resolve_for_check

MATRIX = synthetic.matrix()
CODES = {"tensorrt-unfit", "tensorrt-costs-cuda"}
WHOLE = ("onnxruntime-gpu 1.26.0", "nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0")


def told(*packages: Any, ort: str = "==1.26.0", **machine: Any) -> list[Finding]:
    options = PlanOptions(onnxruntime=ort)
    made = resolve(synthetic.facts(*packages, **machine), options, MATRIX)
    return [row for row in made.findings if row.code in CODES]


@pytest.mark.parametrize(
    ("packages", "libraries"),
    [
        ((), []),
        (("tensorrt 10.0.1", "tensorrt-lean 11.0.0"), []),
        (("tensorrt-cu13 11.4.0.106",), ["libnvinfer.so.10"]),
        (("tensorrt 0.0.1",), ["libnvinfer_lean.so.8"]),
    ],
)
def test_nothing_is_told_where_none_is_installed_or_the_right_one(
    packages: tuple[str, ...], libraries: list[str]
) -> None:
    assert told(*packages, libraries=[{"name": name} for name in libraries]) == []


def test_another_major_is_told_with_the_one_that_is_right() -> None:
    libraries = [{"name": "libnvinfer.so.8", "path": "/opt/trt/libnvinfer.so.8"}]

    (found,) = told(
        "tensorrt-cu13 11.4.0.106", "tensorrt-cu13-libs 11.4.0.106", libraries=libraries
    )

    assert (found.code, found.severity) == ("tensorrt-unfit", "warning")
    assert values_of(found) == {
        "installed": "tensorrt-cu13 11.4.0.106, tensorrt-cu13-libs 11.4.0.106, "
        "/opt/trt/libnvinfer.so.8",
        "version": "1.26.0",
        "library": "libnvinfer.so.10",
        "major": "10",
        "requirement": "tensorrt-cu12==10.*",
    }
    for language in ("en", "zh"):
        texts = load_texts(language)
        assert "/opt/trt/libnvinfer.so.8" in texts.summary(found)
        assert "pip install 'tensorrt-cu12==10.*'" in texts.remedy(found)
        assert texts.is_for_user(found)


@pytest.mark.parametrize("release", ["1.23.0", "1.26.0"])
def test_what_costs_cuda_is_told_by_a_check_too(release: str) -> None:
    """The packages are right; the plan is, but for what no package mends."""
    row = ("tensorrt 11.4.0.106", *WHOLE[1:], f"onnxruntime-gpu {release}", "numpy 2.2.6")
    facts = synthetic.facts(*row, "flatbuffers 25.0")
    options = PlanOptions(onnxruntime=f"=={release}")

    made = resolve(facts, options, MATRIX)

    assert resolve_for_check(facts, options, MATRIX).unfixable == made.unfixable
    assert [row.code for row in made.unfixable] == (
        ["tensorrt-costs-cuda"] if release == "1.23.0" else []
    )
