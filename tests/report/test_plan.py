"""The plan in words and as JSON, held to the letter."""

from __future__ import annotations

import json
from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import OWN_ENVIRONMENT
from ortgpu_fix.matrix.model import AddedRows
from ortgpu_fix.messages.catalog import Message, load_texts
from ortgpu_fix.messages.sections import plain, size, width
from ortgpu_fix.report.plan import machine_section, plan_sections
from ortgpu_fix.report.plan_document import error_json, plan_json
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

EN = load_texts("en")


def told(
    *packages: str, options: PlanOptions | None = None, verbose: bool = False, **machine: Any
) -> str:
    facts = synthetic.facts(*packages, **machine)
    made = resolve(facts, options or PlanOptions(), synthetic.matrix())
    sections = plan_sections(
        made, facts, EN, verbose=verbose, asked=options is not None, command="ortgpu-fix --apply"
    )
    return plain(sections)


def test_a_plan() -> None:
    assert told("onnxruntime 1.22.1", "numpy 2.2.6") == (
        """\
  Machine      Linux, x86_64, glibc 2.35
✓ Driver       not known, supports up to CUDA 12.2
✓ GPUs         GPU 8.0 (8.0)
  Environment  Python 3.11.7

Found
  ✗  onnxruntime 1.22.1 is the CPU build: it overwrites files of the GPU build
  ✗  onnxruntime-gpu is not installed
  ✗  Not installed for CUDA 12: cublas, cudnn
  ✗  What onnxruntime-gpu requires is not installed: flatbuffers

Plan
  - onnxruntime           1.22.1
  + onnxruntime-gpu       1.26.0, 300 MB
  + 2 nvidia wheels       for CUDA 12, 200 MB
  + ortgpu-fix-libraries  1.26.0, loads these libraries for every application
  + onnxruntime           1.26.0, empty: for packages that require onnxruntime
  + flatbuffers           version chosen by pip or uv at install time
                          500 MB to download

To use a newer release
  onnxruntime-gpu 1.31.0  driver >= 580.65.06

4 problems keep onnxruntime from the GPU here. This mends them all:
ortgpu-fix --apply"""
    )


def test_what_no_package_mends_is_not_promised() -> None:
    said = told("onnxruntime 1.22.1", "numpy 2.2.6", error="cuinit-804: cuInit answers 804")

    assert (
        """
Packages mend only a part of what is above; the rest is up to you. This does their part:
ortgpu-fix --apply"""
        in said
    )


def test_what_is_on_this_machine_is_not_counted_as_a_download() -> None:
    facts = synthetic.facts("onnxruntime 1.22.1", "numpy 2.2.6")
    made = resolve(facts, PlanOptions(), synthetic.matrix())
    files = [wheel.file for wheel in made.install]

    def total(*at_hand: str) -> str:
        options: dict[str, Any] = {"verbose": False, "asked": False, "command": ""}
        sections = plan_sections(made, facts, EN, at_hand=at_hand, **options)
        lines = plain(sections).splitlines()
        return next(line.strip() for line in lines if "download" in line)

    assert total(files[0]).endswith("to download; another 100 MB are on this machine")
    assert total(*files) == "Nothing to download: all of it is on this machine"
    assert total("another.whl") == "500 MB to download"


def test_a_plan_with_all_there_is() -> None:
    said = told("onnxruntime 1.22.1", "numpy 2.2.6", verbose=True)

    assert "+ nvidia-cublas-cu12    12.8.4, 100 MB" in said
    assert (
        """\
Why this set
  onnxruntime-gpu 1.26.0 is the newest that can work here
  built for CUDA 12.8; your driver (CUDA 12.2) can run it, as any driver of that CUDA major can
  carries machine code for compute capability 8.0

Releases that cannot run here
  1.31.0  it is built for CUDA 13, which needs driver 580.65.06 or newer; \
this driver supports up to CUDA 12.2
"""
        in said
    )


def test_a_healthy_environment() -> None:
    assert told(
        "onnxruntime-gpu 1.26.0",
        "nvidia-cublas-cu12 12.8.4",
        "nvidia-cudnn-cu12 9.28.0",
        "numpy 2.2.6",
        "flatbuffers 25.0",
        verbose=True,
        gpus=("12.0",),
        driver="12.8",
    ) == (
        """\
  Machine      Linux, x86_64, glibc 2.35
✓ Driver       not known, supports up to CUDA 12.8
✓ GPUs         GPU 12.0 (12.0)
  Environment  Python 3.11.7

Found
  ✓  Right already, and kept: cublas 12.8.4, cudnn 9.28.0, onnxruntime-gpu 1.26.0

Why this set
  onnxruntime-gpu 1.26.0 is installed, and this machine can run it
  built for CUDA 12.8; your driver (CUDA 12.8) can run it, as any driver of that CUDA major can
  carries PTX that the driver compiles for compute capability 12.0, once, at the first start

Releases that cannot run here
  1.31.0  it is built for CUDA 13, which needs driver 580.65.06 or newer; \
this driver supports up to CUDA 12.8
  1.23.0  it carries no code for compute capability 12.0 (only 6.0, 7.0, 7.5, 8.0, 8.6, 9.0; \
as PTX 9.0a)

To use a newer release
  onnxruntime-gpu 1.31.0  driver >= 580.65.06

Healthy: everything that onnxruntime-gpu 1.26.0 needs is here"""
    )


def test_an_impossible_machine() -> None:
    assert told(driver=None, gpus=()) == (
        """\
  Machine      Linux, x86_64, glibc 2.35
✗ Driver       none
  GPUs         none
  Environment  Python 3.11.7

Found
  ✗  No NVIDIA driver was found
     If this machine has an NVIDIA GPU, install its driver; in a container, start it with the \
NVIDIA container toolkit (`--gpus all`). If it has none, CUDA is not for it: \
`pip install onnxruntime` runs on the CPU, and AMD publishes onnxruntime-migraphx for its GPUs. \
To plan or lock for another machine, give `--driver` and `--gpu`, or `--facts`
  ✗  onnxruntime-gpu is not installed

Releases that cannot run here
  1.18.0 to 1.31.0  this machine has no NVIDIA GPU, or none is visible to it

To use a GPU with onnxruntime
  onnxruntime-gpu 1.31.0  an NVIDIA driver that this system can see

No onnxruntime-gpu on PyPI works on this machine"""
    )


def test_a_wish_is_said_to_have_chosen() -> None:
    assert "the newest that can work here and that you asked for" in told(
        options=PlanOptions(onnxruntime="<1.26"), driver="13.0", verbose=True
    )


def test_an_upgrade_shows_both_versions_and_a_pin_its_reason() -> None:
    facts = synthetic.facts(
        "onnxruntime-gpu 1.31.0",
        {"name": "torch", "version": "2.5", "requires": ["nvidia-cudnn-cu12==9.1.0"]},
    )
    made = resolve(facts, PlanOptions(), synthetic.matrix())
    text = plain(plan_sections(made, facts, EN, verbose=True, asked=False, command="do"))

    assert "+ onnxruntime-gpu       1.31.0 → 1.26.0, 300 MB" in text
    assert "nvidia-cudnn-cu12 9.1.0 is what torch 2.5 requires" in text
    assert "1.18.0" in text  # for CUDA 11


@pytest.mark.parametrize(
    ("driver", "line"),
    [
        ({"error": "version-mismatch"}, "version-mismatch"),
        ({"version": "535.1"}, "535.1"),
        ({"cuda": "12.2"}, "not known, supports up to CUDA 12.2"),
        ({}, "not known"),
        # What is wrong with a driver that tells its release stands among the findings.
        (
            {"version": "535.1", "cuda": "12.2", "error": "gpu-lost: x"},
            "535.1, supports up to CUDA 12.2",
        ),
        ({"version": "535.1", "error": "gpu-lost: x"}, "535.1"),
        ({"cuda": "12.2", "error": "gpu-lost: x"}, "x"),
    ],
)
def test_what_is_not_known_of_a_machine_is_said(driver: dict[str, str], line: str) -> None:
    document = synthetic.document(gpus=None)
    document["driver"] = driver

    section = machine_section(facts_json.from_json(document), EN)

    assert [row.text for row in section.rows][1:3] == [line, "not known"]


def test_a_gpu_of_unknown_capability_is_shown_as_such() -> None:
    facts = facts_json.from_json(
        synthetic.document() | {"gpus": [{"name": "Odd"}, {"compute_capability": "8.6"}]}
    )

    assert "Odd (not known), GPU (8.6)" in plain([machine_section(facts, EN)])


@pytest.mark.parametrize(
    ("path", "source", "told"),
    [
        ("~/.venv/bin/python", "VIRTUAL_ENV", ", ~/.venv/bin/python (VIRTUAL_ENV)"),
        ("~/.venv/bin/python", OWN_ENVIRONMENT, ", ~/.venv/bin/python (this program's own)"),
        ("~/.venv/bin/python", None, ", ~/.venv/bin/python"),
        (None, "VIRTUAL_ENV", ""),
    ],
)
def test_the_environment_is_told_with_its_python_and_with_what_named_it(
    path: str | None, source: str | None, told: str
) -> None:
    document = synthetic.document()
    document["platform"]["distribution"] = "Ubuntu 22.04"
    document["python"] |= {"environment": "venv", "executable": path}
    document["sources"] = {"python": source} if source else {}

    system, *_, environment = machine_section(facts_json.from_json(document), EN).rows

    assert (system.head, system.text) == ("Machine", "Ubuntu 22.04, x86_64, glibc 2.35")
    assert (environment.head, environment.text) == ("Environment", f"Python 3.11.7, venv{told}")
    *_, chinese = machine_section(facts_json.from_json(document), load_texts("zh")).rows
    assert ("本程序自己的环境" in chinese.text) is ("own" in told)


def test_equal_gpus_are_counted() -> None:
    section = machine_section(synthetic.facts(gpus=("8.0", "8.0", "7.5")), EN)

    assert section.rows[2].text == "2 × GPU 8.0 (8.0), GPU 7.5 (7.5)"


def test_the_json_of_a_plan_has_the_keys_of_the_contract() -> None:
    facts = synthetic.facts("onnxruntime 1.22.1", "numpy 2.2.6")
    document = plan_json(resolve(facts, PlanOptions(), synthetic.matrix()), EN)

    assert list(document) == [
        "schema",
        "verdict",
        "findings",
        "selection",
        "uninstall",
        "install",
        "companions",
        "requires",
        "consumers",
        "rejected",
        "unlock",
        "matrix",
    ]
    assert document["unlock"] == [
        {"change": "driver >= 580.65.06", "gains": "onnxruntime-gpu 1.31.0"}
    ]
    assert document["matrix"] == {"date": "2026-01-01", "digest": "sha256:invented"}
    assert json.loads(json.dumps(document)) == document


def test_a_hash_that_an_index_gave_is_told_with_the_day() -> None:
    """Of the wheels in those rows alone, in words and as JSON."""
    facts = synthetic.facts("numpy 2.2.6")
    added = AddedRows("2026-11-22", "https://mirror.example", ("onnxruntime-gpu 1.26.0",))
    made = resolve(facts, PlanOptions(), synthetic.matrix())._replace(matrix_added=(added,))
    rows = plan_json(made, EN)["install"]

    assert isinstance(rows, list)
    assert {row["name"]: row["hash_read"] for row in rows if "hash_read" in row} == {
        "onnxruntime-gpu": {"index": "https://mirror.example", "date": "2026-11-22"}
    }
    sections = plan_sections(made, facts, EN, verbose=False, asked=False, command="ortgpu-fix")
    told = " ".join(plain(sections).split())
    assert "onnxruntime-gpu 1.26.0: hash as https://mirror.example gave it on 2026-11-22" in told


def test_an_impossible_plan_selects_nothing() -> None:
    document = plan_json(resolve(synthetic.facts(gpus=()), PlanOptions(), synthetic.matrix()), EN)

    assert document["selection"] is None
    assert document["install"] == []


def test_the_json_of_an_error() -> None:
    message = Message(code="usage", text="no", hint="yes", exit_code=2)

    assert error_json(message) == {
        "schema": 1,
        "error": {"code": "usage", "message": "no", "hint": "yes"},
    }


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((0, "0 B"), (999, "999 B"), (1000, "1 kB"), (18_000, "18 kB"), (1e6, "1 MB")),
        *((277_000_000, "277 MB"), (1e9, "1.0 GB"), (2.6e9, "2.6 GB"), (1.2e12, "1200.0 GB")),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


def test_chinese_takes_two_columns() -> None:
    assert width("驱动 x") == 6


def test_older_releases_are_counted_not_listed() -> None:
    text = told(driver=None, gpus=("12.0",))

    assert "lists why" not in text  # all for one reason: one line


def test_the_steps_that_take_long_are_said() -> None:
    assert EN.progress("verify") == "Verifying"
