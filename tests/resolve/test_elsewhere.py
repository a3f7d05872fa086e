"""Builds that PyPI does not have: which index is named for which machine, and where none is."""

from __future__ import annotations

from typing import Any

import pytest
from told import gains, values_of

import synthetic
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.matrix.parse import parse
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.report.plan import plan_sections
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = load_matrix()
FEED = "https://aiinfra.pkgs.visualstudio.com/PublicPackages/_packaging/onnxruntime-cuda-{}/pypi/simple/"
A100 = {"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}
GH200 = {"name": "NVIDIA GH200 480GB", "compute_capability": "9.0"}
ARM = {"system": "linux", "machine": "aarch64", "libc": "glibc 2.35"}
D535, D550 = {"version": "535.104.12"}, {"version": "550.54.15"}
D470, D580 = {"version": "470.256.02"}, {"version": "580.95.05"}
APP = {"name": "app", "version": "1.0", "requires": ["onnxruntime-gpu<1.27"]}


def facts(*packages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an A100 on Linux with driver 535 and Python 3.12."""
    platform = {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"}
    python = {"version": "3.12.3", "environment": "venv", "executable": "/srv/.venv/bin/python"}
    base = {"schema": 1, "platform": platform, "driver": D535, "gpus": [A100], "python": python}
    return base | {"packages": list(packages), "onnxruntime": None} | more


def elsewhere(document: dict[str, Any], matrix: Matrix = MATRIX, **options: Any) -> list[str]:
    """Return for whom an index is named, or what conda-forge has."""
    made = resolve(from_json(document), PlanOptions(**options), matrix)
    ways = {"ort-index", "conda-build", "jetson-index"}
    return [gains(row) for row in made.unlock if row.change.code in ways]


CUDA_11, CUDA_12, CUDA_13 = (f"onnxruntime-gpu (CUDA {cuda})" for cuda in ("11", "12", "13"))


@pytest.mark.parametrize(
    ("document", "options", "named"),
    [
        (facts(), {"onnxruntime": "==1.31.1"}, [CUDA_12]),  # PyPI has it for CUDA 13 alone
        (facts(), {}, [CUDA_12]),  # 1.26.0 works: a newer one may be there
        (facts(driver=D580), {}, []),
        (facts(APP, driver=D580), {"cuda": "13"}, [CUDA_13]),
        (facts(driver=D580), {"cuda": "13", "onnxruntime": "==1.23.2"}, []),  # before its first
        (facts(driver=D470), {}, [CUDA_11]),
        (facts(driver=D580, platform=ARM), {"onnxruntime": "==1.26.0"}, [CUDA_13]),
        (facts(platform=ARM | {"libc": "musl 1.2"}, driver=D580), {}, []),
        (facts(driver=D580, python={"version": "3.15.0"}), {}, [CUDA_13]),  # no wheel for it yet
        (facts(driver=None), {}, []),
    ],
)
def test_an_index_is_named_where_a_build_of_it_would_work(
    document: dict[str, Any], options: dict[str, Any], named: list[str]
) -> None:
    assert elsewhere(document, **options) == named


def test_what_a_build_would_need_is_taken_from_the_one_before_it_by_number() -> None:
    """As text, 1.9 would be newer than 1.26; it has no code for this GPU."""
    tables = synthetic.tables()
    old = synthetic.build("1.9.0", "12.2", sass=("5.2",), suffix="-cu12")
    tables["onnxruntime"]["build"].append(old)
    tables["distributions"]["feed"] = [synthetic.feed("12", "1.30.0")]
    document = synthetic.document(driver="12.8")

    assert elsewhere(document, parse(tables, "", {}), onnxruntime="==1.31.0") == [CUDA_12]


def test_the_index_is_named_by_its_address() -> None:
    made = resolve(from_json(facts()), PlanOptions(onnxruntime="==1.31.1"), MATRIX)
    [row] = [row for row in made.unlock if row.change.code == "ort-index"]

    assert (row.url, values_of(row.change)) == (FEED.format("12"), {"url": FEED.format("12")})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, ["onnxruntime (conda-forge)"]),  # Microsoft builds for CUDA 12 on x86-64 alone
        ({"gpus": [{"compute_capability": "6.0"}]}, []),
        ({"driver": D470}, []),
        ({"platform": {"system": "windows", "machine": "aarch64"}}, []),
        ({"gpus": [{"compute_capability": "8.7"}]}, ["onnxruntime-gpu (Jetson)"]),
    ],
)
def test_arm_with_a_driver_for_cuda_12_is_served_by_conda_forge(
    change: dict[str, Any], named: list[str]
) -> None:
    document = facts(driver=D550, platform=ARM, gpus=[GH200])

    assert elsewhere(document | change) == named


def test_an_index_for_a_cuda_that_pypi_never_had_is_not_judged() -> None:
    """Nobody knows what a build for it would need."""
    tables = synthetic.tables()
    tables["distributions"]["feed"] = [synthetic.feed("10", "1.0.0")]
    document = synthetic.document(driver="12.2")

    assert elsewhere(document, parse(tables, "", {})) == []


def test_the_machine_of_a_real_report() -> None:
    """torch for CUDA 13, and an application that requires a release before PyPI's for CUDA 13."""
    torch, gpu_build = ("torch", "2.11.0"), ("onnxruntime-gpu", "1.26.0")
    packages = [{"name": name, "version": version} for name, version in (torch, gpu_build)]
    folder = {"distribution": gpu_build[0], "version": "1.26.0", "cuda": "12.8", "intact": True}

    assert elsewhere(facts(APP, *packages, driver=D580, onnxruntime=folder)) == [CUDA_13]


def test_what_the_index_turned_out_to_have_is_planned_and_no_way_any_more() -> None:
    """`matrix --update --ort-index-url` adds it; PyPI's own goes before it where that one works."""
    last = next(b for b in MATRIX.builds if (b.version, b.platform) == ("1.26.0", "linux_x86_64"))
    read = last._replace(version="1.31.1", index_url=FEED.format("12"))
    matrix = MATRIX._replace(builds=(*MATRIX.builds, read))

    def planned(**machine: Any) -> tuple[str, str, str | None]:
        made = resolve(from_json(facts(**machine)), PlanOptions(), matrix)
        [build] = [row for row in made.install if row.name == "onnxruntime-gpu"]
        return build.version, build.index_url, made.cuda

    assert planned() == ("1.31.1", FEED.format("12"), "12")
    assert planned(driver=D580) == ("1.31.1", "pypi", "13")
    assert elsewhere(facts(), matrix, onnxruntime="==1.31.1") == []


@pytest.mark.parametrize(
    ("verbose", "asked", "named"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_where_pypi_has_what_works_the_index_is_named_when_more_is_asked(
    *, verbose: bool, asked: bool, named: bool
) -> None:
    read = from_json(facts())
    made = resolve(read, PlanOptions(), MATRIX)
    texts = load_texts("en")
    sections = plan_sections(made, read, texts, verbose=verbose, asked=asked, command="")

    assert (f"{CUDA_12}  " in plain(sections)) is named
