"""Which GPUs run which code, and what a release requires beside itself: the limits of both."""

from __future__ import annotations

from typing import Any

import pytest
from told import values_of

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.model import Build, Code
from ortgpu_fix.plan.reasons import Reason
from ortgpu_fix.resolve.components import Component
from ortgpu_fix.resolve.dependencies import (
    choose_numpy,
)
from ortgpu_fix.resolve.gpu_code import (
    gpu_without_code,
    runs_on,
)
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.situation import Situation, situation_of

MATRIX = synthetic.matrix()


def here(*packages: Any, libc: str = "glibc 2.35", **machine: Any) -> Situation:
    document = synthetic.document(*packages, **machine)
    document["platform"]["libc"] = libc
    return situation_of(facts_json.from_json(document), PlanOptions(), MATRIX)


def build(version: str = "1.26.0", platform: str = "linux_x86_64") -> Build:
    [row] = [row for row in MATRIX.builds if row.version == version and row.platform == platform]
    return row


@pytest.mark.parametrize(
    ("sass", "ptx", "gpu", "how"),
    [
        ("8.0", "", "8.6", "sass"),  # a newer one of that major runs it
        ("8.6", "", "8.0", "no"),
        ("8.0", "", "9.0", "no"),
        ("9.0a", "", "9.1", "no"),
        ("12.0f", "", "12.1", "sass"),
        ("12.0f", "", "13.0", "no"),
        ("", "8.0", "12.0", "ptx"),
        ("", "9.0", "8.6", "no"),
        ("", "9.0a", "12.0", "no"),
        ("", "12.0f", "13.0", "no"),
        ("7.5 8.0", "9.0", "8.6", "sass"),
    ],
)
def test_which_gpu_runs_which_code(sass: str, ptx: str, gpu: str, how: str) -> None:
    """Source: CUDA C++ Programming Guide, "Compute Capabilities"."""
    assert runs_on(sass.split(), ptx.split(), gpu) == how


@pytest.mark.parametrize(
    ("name", "gpus", "ptx", "lacks"),
    [
        ("nvidia-cufft-cu12", ("8.0", "12.0"), True, None),
        ("nvidia-cufft-cu12", ("12.0", "8.0"), False, "12.0"),
        ("nvidia-cudnn-cu12", ("8.0", "12.0"), True, "12.0"),
        ("nvidia-cublas", ("12.0",), True, "12.0"),
        ("nvidia-cufft-cu12", ("7.0", "12.0"), True, "7.0"),
    ],
)
def test_the_ptx_of_cublas_and_cudnn_does_not_count(
    name: str, gpus: tuple[str, ...], *, ptx: bool, lacks: str | None
) -> None:
    code = Code(platform="linux_x86_64", first="1", last="2", sass=("8.0",), ptx=("8.0",))

    assert gpu_without_code(code, name, here(gpus=gpus), ptx=ptx) == lacks


def app(requires: str, name: str = "app") -> dict[str, Any]:
    return {"name": name, "version": "1", "requires": [requires]}


def numpy(*packages: Any, version: str = "1.18.0", **machine: Any) -> object:
    found = choose_numpy(build(version), here(*packages, **machine))
    if isinstance(found, Component):
        return found.release.version, found.installed
    return (found.code, values_of(found)) if isinstance(found, Reason) else found


def test_where_no_numpy_fits_it_is_said_for_whom() -> None:
    asks = (app("numpy>=2", "b"), app("numpy>=2.1", "a"), app("numpy<3", "c"))
    needs = {"needs": "<2,>=1.21.6"}

    found = choose_numpy(build("1.18.0"), here("numpy 2.2.6", *asks))
    assert isinstance(found, Reason)
    values = values_of(found)
    assert (found.code, sorted(values.pop("by").split(", "))) == ("numpy-conflict", ["a 1", "b 1"])
    assert values == needs
    assert numpy("numpy 2.2.6", python="3.12.1") == (
        *("numpy-no-wheel", needs | {"python": "cp312"}),
    )
    assert numpy("numpy 2.2.6", libc="glibc 2.12") == (
        *("numpy-no-wheel", needs | {"python": "cp311"}),
    )
