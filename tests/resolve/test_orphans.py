"""NVIDIA's wheels that nobody needs: those that a change orphans go, others are reported."""

from __future__ import annotations

from typing import Any

from told import values_of

import synthetic
from ortgpu_fix.matrix.torch import TorchBuild, TorchTable
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = synthetic.matrix()
EN = load_texts("en")
CUDA_12 = ("nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0")
REQUIRED = ("flatbuffers 25.2.10", "numpy 2.4.6", "protobuf 6.31.1")
BUILD = {"distribution": "onnxruntime-gpu", "version": "1.26.0", "intact": True}
NEWER = PlanOptions(latest=True)


def planned(*packages: Any, options: PlanOptions | None = None, matrix: Any = MATRIX) -> Plan:
    gpu = any("onnxruntime-gpu" in str(row) for row in packages)
    facts = synthetic.facts(*packages, *REQUIRED, driver="13.0", onnxruntime=BUILD if gpu else None)
    return resolve(facts, options or PlanOptions(), matrix)


def told(made: Plan, code: str) -> dict[str, str]:
    found = [values_of(row) for row in made.findings if row.code == code]
    return found[0] if found else {}


def row(text: str, *requires: str, **more: Any) -> dict[str, Any]:
    name, version = text.split()
    return {"name": name, "version": version, "requires": list(requires), **more}


def test_the_wheels_of_the_cuda_that_goes_go_with_it() -> None:
    made = planned("onnxruntime-gpu 1.26.0", *CUDA_12, options=NEWER)

    assert made.release == "1.31.0"
    assert made.uninstall == ("nvidia-cublas-cu12", "nvidia-cudnn-cu12")
    assert told(made, "orphans-leave")["names"] == "nvidia-cublas-cu12"  # cuDNN's folder is shared
    assert told(made, "orphans") == {}


def test_what_another_package_uses_stays() -> None:
    asks = row("app 1", "nvidia-cublas-cu12")
    reads = "dataloader 1.2"  # links cuBLAS of CUDA 12, and declares nothing

    for other in (asks, reads):
        made = planned("onnxruntime-gpu 1.26.0", *CUDA_12, other, options=NEWER)
        assert (made.release, made.uninstall) == ("1.31.0", ("nvidia-cudnn-cu12",)), other


def test_what_nothing_needed_before_either_is_reported_with_its_size_and_stays() -> None:
    made = planned(row("nvidia-cublas-cu12 12.8.4", size=900_000_000))

    assert made.release == "1.31.0"
    assert made.uninstall == ()
    [found] = [row for row in made.findings if row.code == "orphans"]
    assert (
        EN.summary(found)
        == "Not needed by any installed package (900 MB): nvidia-cublas-cu12 12.8.4"
    )
    assert "`pip uninstall nvidia-cublas-cu12`" in EN.remedy(found)


def test_what_the_user_asked_pip_for_is_never_removed() -> None:
    wanted = row("nvidia-cublas-cu12 12.8.4", requested=True)
    made = planned("onnxruntime-gpu 1.26.0", wanted, CUDA_12[1], options=NEWER)

    assert made.uninstall == ("nvidia-cudnn-cu12",)
    assert told(made, "orphans")["names"] == "nvidia-cublas-cu12"
    assert told(planned(wanted), "orphans") == {}


def test_what_conda_or_the_users_own_sources_hold_is_reported_and_not_removed() -> None:
    held = row("nvidia-cublas-cu12 12.8.4", held="conda")
    made = planned("onnxruntime-gpu 1.26.0", held, CUDA_12[1], options=NEWER)

    assert made.uninstall == ("nvidia-cudnn-cu12",)
    assert told(made, "orphans")["names"] == "nvidia-cublas-cu12"


# torch, with what it required.


def torch_builds() -> TorchTable:
    values: dict[str, Any] = {
        "platform": synthetic.LINUX,
        "sass": ("8.0", "9.0"),
        "ptx": (),
        "libraries": "required",
        "toolkit": {},
        "glibc": "2.28",
        "pythons": frozenset({"cp311"}),
        "wheels": (),
    }
    rows = (
        ("2.9.0", "cu130", "13.0"),
        ("2.8.0", "cu130", "13.0"),
        ("2.8.0", "cu128", "12.8"),
        ("2.7.0", "cu128", "12.8"),
    )
    builds = tuple(
        TorchBuild(version=version, local=local, cuda=cuda, cudnn="9.12.0", pins=(), **values)
        for version, local, cuda in rows
    )
    return TorchTable(builds=builds)


TORCH_13 = row(
    "torch 2.8.0+cu130",
    "nvidia-cudnn-cu13==9.12.0",
    "nvidia-solver",
    "cuda-toolkit[cublas]",
    "numpy",
    "triton",
)
OF_TORCH = (
    TORCH_13,
    row("nvidia-cudnn-cu13 9.12.0", "nvidia-cublas"),
    row("nvidia-solver 1", "nvidia-cublas", "nvidia-sparse"),
    row("nvidia-sparse 1", "nvidia-cublas"),
    row("nvidia-cublas 13.0.2", "nvidia-rtc"),
    row("nvidia-rtc 1"),
    row("cuda-toolkit 13.0", "nvidia-cublas; extra == 'cublas'"),
    row("triton 3"),
)


def with_torch(*others: Any, torch: str, driver: str = "12.8", conflicts: bool = False) -> Plan:
    facts = synthetic.facts(*OF_TORCH, *others, *REQUIRED, driver=driver)
    options = PlanOptions(torch=torch, conflicts=conflicts)
    return resolve(facts, options, MATRIX._replace(torch=torch_builds()))


def test_all_that_a_torch_of_another_cuda_brought_goes_however_they_hold_one_another() -> None:
    made = with_torch(torch="match")

    assert [row.version for row in made.install if row.name == "torch"] == ["2.8.0+cu128"]
    assert made.uninstall == (
        *("cuda-toolkit", "nvidia-cublas", "nvidia-cudnn-cu13"),
        *("nvidia-rtc", "nvidia-solver", "nvidia-sparse"),
    )
    assert "would-conflict" not in {row.code for row in made.findings}


def test_what_somebody_else_requires_of_it_stays_with_what_that_needs() -> None:
    made = with_torch(row("app 1", "nvidia-sparse"), torch="match")

    assert made.uninstall == ("cuda-toolkit", "nvidia-cudnn-cu13", "nvidia-solver")


def test_who_opens_cuda_13_undeclared_keeps_all_wheels_without_a_major_in_their_names() -> None:
    """`cupy-cuda13x` loads cuSOLVER, which no matrix knows, and requires none of NVIDIA's."""
    made = with_torch("cupy-cuda13x 14.2.0", torch="match", conflicts=True)

    assert made.uninstall == ("cuda-toolkit", "nvidia-cudnn-cu13")


def test_within_cuda_13_a_torch_keeps_what_has_no_name_of_nvidia_s_wheels() -> None:
    """`cuda-toolkit` and `cuda-bindings` are held by the lines of torch alone."""
    moved = row(
        "torch 2.8.0+cu130",
        "cuda-toolkit[cublas]==13.0",
        "nvidia-cudnn-cu13==9.12.0",
        "cuda-bindings<14,>=13.0.3",
        "numpy",
    )
    others = [row for row in OF_TORCH[1:] if row["name"] in {"nvidia-cudnn-cu13", "cuda-toolkit"}]
    others += [row("nvidia-cublas 13.0.2"), row("cuda-bindings 13.0.3", "cuda-pathfinder~=1.1")]
    facts = synthetic.facts(moved, *others, row("cuda-pathfinder 1.3"), *REQUIRED, driver="13.0")
    options = PlanOptions(torch="==2.9.0")
    made = resolve(facts, options, MATRIX._replace(torch=torch_builds()))

    assert [row.version for row in made.install if row.name == "torch"] == ["2.9.0+cu130"]
    assert made.uninstall == ()
