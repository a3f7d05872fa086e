"""Environments of real applications, as they were installed from PyPI: the whole answer for each.

What must come out was worked out by hand, from what the packages require and what the wheels hold.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from told import values_of

from ortgpu_fix.cli.command_line import applying
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import Facts, Package
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.reasons import RequirementLine
from ortgpu_fix.report.plan import plan_sections
from ortgpu_fix.report.plan_document import plan_json
from ortgpu_fix.resolve.opened import plan_for, plan_for_check
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

FOLDER = Path(__file__).parents[1] / "cases" / "environments"
MATRIX = load_matrix()
CUDA_13_OF_TORCH = (
    *("cuda-bindings", "cuda-pathfinder", "cuda-toolkit"),
    *("nvidia-cublas", "nvidia-cuda-cccl", "nvidia-cuda-cupti", "nvidia-cuda-nvrtc"),
    *("nvidia-cuda-runtime", "nvidia-cudnn-cu13", "nvidia-cufft", "nvidia-cufile"),
    *("nvidia-cusolver", "nvidia-cusparse", "nvidia-cusparselt-cu13", "nvidia-nccl-cu13"),
    *("nvidia-nvjitlink", "nvidia-nvshmem-cu13", "nvidia-nvtx"),
)
"""What `pip install torch` 2.15 brings of CUDA 13."""


def facts(name: str) -> Facts:
    return facts_json.from_json(json.loads((FOLDER / f"{name}.json").read_text("utf-8")))


@functools.cache
def planned(name: str, **options: Any) -> Plan:
    return plan_for(facts(name), PlanOptions(**options), MATRIX)


def said(name: str, language: Any = "en", **options: Any) -> list[str]:
    """Return the lines of a plan for people."""
    made = planned(name, **options)
    command = applying({}, made, facts(name), "there")
    sections = plan_sections(
        made, facts(name), load_texts(language), verbose=False, asked=False, command=command
    )
    return plain(sections).splitlines()


def values(made: Plan, code: str) -> dict[str, str]:
    [found] = [row for row in made.findings if row.code == code]
    return values_of(found)


def coming(made: Plan) -> dict[str, str]:
    return {row.name: row.version for row in made.install if not row.name.startswith("nvidia-")}


# The newest torch under a driver below 580: everything that it brought goes, whoever holds it.


def test_torch_of_cuda_13_leaves_no_wheel_of_it_and_breaks_nothing() -> None:
    """cuDNN and cuSOLVER hold cuBLAS, which requires NVRTC; all of them go with torch."""
    made = planned("torch215-535", torch="keep")

    assert made.uninstall == tuple(sorted((*CUDA_13_OF_TORCH, "onnxruntime")))
    assert coming(made) == {"onnxruntime-gpu": "1.26.0", "torch": "2.14.1+cu126"}
    assert all(row.name.endswith("-cu12") for row in made.install if "nvidia" in row.name)
    assert made.allowances == ()
    assert "would-conflict" not in {row.code for row in made.findings}


def test_what_is_removed_uses_cuda_in_no_process_any_more() -> None:
    made = planned("modelopt-580", torch="match")

    assert [row.name for row in made.consumers] == ["torch", "cupy-cuda12x"]
    assert "cuda-toolkit" in made.uninstall


def test_what_torch_match_opens_is_not_impossible() -> None:
    lines, chinese = said("torch215-535"), said("torch215-535", "zh")

    assert planned("torch215-535").verdict == "fixable"
    assert planned("torch215-535").needs == ("torch",)
    assert lines[-2:] == [
        "If torch may be replaced, run:",
        "ortgpu-fix --python /path/to/python --torch match --apply",
    ]
    assert chinese[-2] == "如果允许更换 torch，请运行："
    document = plan_json(planned("torch215-535"), load_texts("en"))
    assert document["needs"] == ["--torch match"]
    # With the flag nothing more is needed.
    assert planned("torch215-535", torch="match").needs == ()


def test_why_nothing_works_without_the_flag_is_still_said() -> None:
    rejected = {row.version: row for row in planned("torch215-535").rejected}

    assert [why.code for why in rejected["1.31.1"].machine] == ["driver-too-old"]
    assert rejected["1.26.0"].machine == ()
    assert str(rejected["1.26.0"].blockers[0]) == "torch 2.15.0"
    document: Any = plan_json(planned("torch215-535"), load_texts("en"))
    by = {row["version"]: {why["by"] for why in row["reasons"]} for row in document["rejected"]}
    assert by["1.26.0"] == {"environment"}
    assert by["1.31.1"] == {"machine"}  # it shares CUDA 13 with that torch


# An exact pin of a release that exists for the CPU only.


def test_the_nearest_release_of_the_same_minor_version_answers_an_exact_pin() -> None:
    """PyPI has onnxruntime 1.22.1, and of onnxruntime-gpu 1.22.0 alone."""
    made = planned("genie-tts-580")

    assert coming(made) == {"onnxruntime-gpu": "1.22.0"}
    assert made.placeholder == "1.22.1+ortgpu"
    assert [row.version for row in made.companions if row.name == "onnxruntime"] == [
        "1.22.1+ortgpu"
    ]
    [near] = [row for row in made.findings if row.code == "pin-nearest"]
    assert near.severity == "warning"
    assert values_of(near) == {"by": "genie-tts 2.0.2", "pinned": "1.22.1", "version": "1.22.0"}
    assert (made.needs, made.allowances) == ((), ())


def test_once_it_is_installed_the_environment_is_healthy() -> None:
    before = facts("genie-tts-580")
    made = planned("genie-tts-580")
    new = [Package(name=row.name, version=row.version) for row in made.install]
    new += [Package(name=row.name, version=row.version) for row in made.companions]
    new = [row._replace(provided=row.name == "onnxruntime") for row in new]
    old = [row for row in before.packages if row.name not in {each.name for each in new}]
    build = before.onnxruntime._replace(  # type: ignore[union-attr]
        distribution="onnxruntime-gpu", version="1.22.0", cuda="12.8"
    )
    after = before._replace(packages=(*old, *new), onnxruntime=build)

    assert plan_for(after, PlanOptions(), MATRIX).verdict == "healthy"
    assert plan_for(after, PlanOptions(), MATRIX).placeholder == "1.22.1+ortgpu"
    assert plan_for_check(after, PlanOptions(), MATRIX).verdict == "healthy"


def test_beyond_the_minor_version_it_takes_a_permission() -> None:
    """For Python 3.14 there is no wheel of 1.22.0."""
    before = facts("genie-tts-580")
    newer = before._replace(python=before.python._replace(version="3.14.0"))
    made = plan_for(newer, PlanOptions(), MATRIX)

    assert made.needs == ("conflicts",)
    assert coming(made)["onnxruntime-gpu"] == "1.31.1"
    assert values(made, "would-conflict") == {"by": "genie-tts 2.0.2 (onnxruntime==1.22.1)"}
    assert made.placeholder == "1.22.1+ortgpu"


# A pin behind an extra whose requirements are all installed.


def test_a_pin_behind_an_extra_counts() -> None:
    made = planned("modelopt-580")

    [row] = [row for row in made.rejected if row.version == "1.31.1"]
    assert [
        values_of(why)["requires"] for why in row.environment if why.code == "demand-conflict"
    ] == ['onnxruntime-gpu~=1.24.2; extra == "onnx"']
    assert made.release == "1.24.4"
    assert made.needs == ("torch",)
    assert coming(made) == {"torch": "2.14.1+cu126"}
    assert "onnxruntime-gpu" not in {wheel.name for wheel in made.install}


# Two things that exclude at once.


def test_a_release_that_works_but_for_what_is_installed_is_never_put_on_the_machine() -> None:
    made, lines = planned("super-gradients-5060"), said("super-gradients-5060")

    assert coming(made) == {
        "onnxruntime-gpu": "1.23.2",
        "torch": "2.12.1+cu129",
        "torchvision": "0.27.1+cu129",
    }
    assert made.needs == ("torch", "conflicts")
    assert values(made, "would-conflict") == {"by": "super-gradients 3.7.1 (onnxruntime==1.15.0)"}
    assert lines[-2:] == [
        "If torch may be replaced and requirements of other packages may be broken, run:",
        "ortgpu-fix --python /path/to/python --torch match --allow conflicts --apply",
    ]


def test_what_is_to_be_changed_together_is_told_together() -> None:
    made = resolve(facts("super-gradients-5060"), PlanOptions(), MATRIX)
    texts = load_texts("en")

    [row] = made.unlock
    assert texts.gains(row) == "onnxruntime-gpu 1.23.2"
    assert texts.change(row).startswith(
        "`--torch match` and a version of super-gradients 3.7.1 that allows it"
    )
    assert made.verdict == "impossible"
    assert made.works_beside is not None
    assert made.works_beside.version == "1.23.2"


def test_what_excludes_is_named_where_no_flag_opens_the_way() -> None:
    """What the user's own files require no flag lets go."""
    before, line = facts("cu13pin"), RequirementLine("r.txt", "onnxruntime-gpu==1.26.0")
    options = PlanOptions(requirements=(line,), torch="==2.11.0+cu130")
    made = plan_for(before, options, MATRIX)
    words = {"verbose": False, "asked": False, "command": ""}
    lines = plain(plan_sections(made, before, load_texts("en"), **words)).splitlines()  # type: ignore[arg-type]

    assert made.verdict == "impossible"
    assert lines[0] == (
        "onnxruntime-gpu 1.31.1 works with the driver, GPU and Python below, but not together with "
        "app 1.0, r.txt"
    )


# Sources of the user's own: their lower bound is what a tool wrote, and no wish.


# Applications that will not use it.


def test_what_brings_its_own_runtime_is_promised_nothing() -> None:
    made, lines = planned("sherpa-onnx-580"), said("sherpa-onnx-580")

    assert values(made, "application-own-runtime") == {"by": "sherpa-onnx 2.0.1"}
    assert lines[-2] == (
        "sherpa-onnx 2.0.1 will not use the GPU even then. For your own programs, run:"
    )
    assert "sherpa-onnx 2.0.1" in said("sherpa-onnx-580", "zh")[-2]


def test_an_application_that_names_the_cpu_is_reported_before_the_download() -> None:
    before = facts("sherpa-onnx-580")
    magika = Package(name="magika", version="1.0.3", requires=("onnxruntime>=1.17",))
    made = plan_for(before._replace(packages=(magika,)), PlanOptions(), MATRIX)

    assert values(made, "application-never") == {"by": "magika 1.0.3"}
    assert [str(row) for row in made.unused_by] == ["magika 1.0.3"]
    other = Package(name="fastembed", version="0.9.1", requires=("onnxruntime",))
    both = plan_for(before._replace(packages=(magika, other)), PlanOptions(), MATRIX)
    assert values(both, "application-never") == {"by": "magika 1.0.3"}
    assert both.unused_by == ()
