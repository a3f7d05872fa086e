"""The plan in words and as JSON, held to the letter."""

from __future__ import annotations

from typing import Any, cast

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import OWN_ENVIRONMENT, Facts
from ortgpu_fix.matrix.model import AddedRows
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import Row, Section, plain
from ortgpu_fix.plan.model import Alternative, Plan, Rejected, Unlock
from ortgpu_fix.plan.reasons import Named, Reason, finding, reason
from ortgpu_fix.plan.wheels import PYPI, Wheel
from ortgpu_fix.report.plan import machine_section, plan_sections
from ortgpu_fix.report.plan_document import plan_json
from ortgpu_fix.report.rejected import SHORT, reason_text, rejected_section
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
onnxruntime can't use the GPU: the CPU-only package is installed (all fixable)

  System       Linux, x86_64, glibc 2.35
✓ Driver       unknown (supports up to CUDA 12.2)
✓ GPU          GPU 8.0 (compute capability 8.0)
  Environment  Python 3.11.7

Problems
  ✗  onnxruntime 1.22.1 is the CPU-only package; sessions run on the CPU
  ✗  onnxruntime-gpu is not installed
  ✗  Missing CUDA 12 libraries: cublas, cudnn
  ✗  Missing requirements of onnxruntime-gpu: flatbuffers

Fix (downloads up to 500 MB)
  - onnxruntime 1.22.1
  + onnxruntime-gpu 1.26.0
  + 2 NVIDIA wheels for CUDA 12
  + 2 local helper packages: loader, placeholder
  + flatbuffers (uv picks the version)

To use a newer version
  onnxruntime-gpu 1.31.0  driver >= 580.65.06

To fix this, run:
ortgpu-fix --apply"""
    )


def test_what_no_package_fixes_is_not_promised() -> None:
    said = told("onnxruntime 1.22.1", "numpy 2.2.6", error="cuinit-804: cuInit error 804")

    assert said.startswith(
        "onnxruntime can't use the GPU: the driver does not work (partly fixable)\n"
    )
    assert said.endswith(
        """
Some of these need you (marked "You"). This command fixes the rest:
ortgpu-fix --apply"""
    )
    assert "\n     You: Remove the cuda-compat directory" in said


def test_a_plan_with_all_there_is() -> None:
    said = told("onnxruntime 1.22.1", "numpy 2.2.6", verbose=True)

    assert "\n  + nvidia-cublas-cu12 12.8.4, 100 MB\n" in said
    assert (
        """
  + ortgpu-fix-libraries 1.26.0 (loader: lets unchanged programs find these libraries)
  + onnxruntime 1.26.0 (placeholder: keeps the CPU-only package out)
"""
        in said
    )
    assert (
        """\
Why these packages
  onnxruntime-gpu 1.26.0 is the newest version that works
  built for CUDA 12.8; the driver (CUDA 12.2) can run it, like any driver of the same CUDA major \
version
  supports compute capability 8.0

Versions that can't be used
  1.31.0  needs driver 580.65.06 or newer for CUDA 13; the driver supports up to CUDA 12.2
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
Healthy: onnxruntime-gpu 1.26.0 has everything it needs

  System       Linux, x86_64, glibc 2.35
✓ Driver       unknown (supports up to CUDA 12.8)
✓ GPU          GPU 12.0 (compute capability 12.0)
  Environment  Python 3.11.7

Why these packages
  onnxruntime-gpu 1.26.0 is already installed and works
  built for CUDA 12.8; the driver (CUDA 12.8) can run it, like any driver of the same CUDA major \
version
  supports compute capability 12.0 through PTX, which the driver compiles once, on the first run

Versions that can't be used
  1.31.0  needs driver 580.65.06 or newer for CUDA 13; the driver supports up to CUDA 12.8
  1.23.0  does not support compute capability 12.0 (only 6.0, 7.0, 7.5, 8.0, 8.6, 9.0; \
as PTX 9.0a)

Notes
  ✓  Already OK, unchanged: cublas 12.8.4, cudnn 9.28.0, onnxruntime-gpu 1.26.0

To use a newer version
  onnxruntime-gpu 1.31.0  driver >= 580.65.06, and `--ort latest`"""
    )


def test_an_impossible_machine() -> None:
    assert told(driver=None, gpus=()) == (
        """\
No onnxruntime-gpu works without an NVIDIA driver

  System       Linux, x86_64, glibc 2.35
✗ Driver       none
  GPUs         none
  Environment  Python 3.11.7

Problems
  ✗  No NVIDIA driver was found
     With an NVIDIA GPU: install its driver; in a container, use the NVIDIA container toolkit \
(`--gpus all`). Without one: `pip install onnxruntime` runs on the CPU, and AMD publishes \
onnxruntime-migraphx for its GPUs. For another machine: pass `--driver` and `--gpu`, or `--facts`

To use the GPU
  onnxruntime-gpu 1.31.0  a visible NVIDIA driver

`--verbose` lists why each version was rejected"""
    )


@pytest.mark.parametrize(
    ("machine", "first", "marks"),
    [
        ({"driver": "9.1"}, "No onnxruntime-gpu on PyPI works with driver 390.0", " ✗✓ "),
        ({"gpus": ("2.0",)}, "No onnxruntime-gpu on PyPI works with GPU 2.0", " ✓✗ "),
        (
            {"python": {"version": "3.20.0"}},
            "No onnxruntime-gpu on PyPI works with Python 3.20.0",
            " ✓✓✗",
        ),
        (
            {"libc": "musl 1.2.4"},
            "No onnxruntime-gpu on PyPI works on Linux, x86_64, musl 1.2.4",
            "✗✓✓ ",
        ),
    ],
)
def test_what_of_a_machine_is_at_fault_is_said_first_and_marked(
    machine: dict[str, Any], first: str, marks: str
) -> None:
    """And what is not at fault is marked right: nobody need look there."""
    python, libc = machine.pop("python", {}), machine.pop("libc", None)
    found = synthetic.document(**machine)
    found["python"] |= python
    if libc:
        found["platform"]["libc"] = libc
    if found["driver"]:
        found["driver"]["version"] = "390.0" if found["driver"]["cuda"] == "9.1" else "535.1"
    facts = facts_json.from_json(found)
    plan = resolve(facts, PlanOptions(), synthetic.matrix())
    sections = plan_sections(plan, facts, EN, verbose=False, asked=False, command="")

    assert sections[0].rows == (Row(text=first, style="bold red"),)
    assert "".join(row.head[0] for row in sections[1].rows) == marks
    assert not section(sections, "Versions that can't be used")
    assert sections[-1].rows[0].text == "`--verbose` lists why each version was rejected"


def first(plan: Plan, facts: Facts | None = None, **more: Any) -> str:
    """Return the first sentence of `plan`."""
    said: dict[str, Any] = {"verbose": False, "asked": False, "command": "", **more}
    return plan_sections(plan, facts or synthetic.facts(), EN, **said)[0].rows[0].text


def excluded(version: str, code: str, **values: Any) -> Rejected:
    """Return a release that the machine excludes."""
    why = (reason(code, **values),)
    return Rejected(package="onnxruntime-gpu", version=version, machine=why)


def test_what_two_things_of_a_machine_exclude_together_is_no_fault_of_one() -> None:
    plan = resolve(synthetic.facts(gpus=()), PlanOptions(), synthetic.matrix())
    old = excluded("1.2", "no-gpu-code", gpu="12.0", carried="8.0")
    new = excluded("1.3", "jetson")
    plan = plan._replace(rejected=(new, old), considered=("1.3", "1.2"))
    sections = plan_sections(plan, synthetic.facts(), EN, verbose=False, asked=False, command="")

    assert first(plan) == "No onnxruntime-gpu on PyPI works with the driver, GPU and Python below"
    assert [row.head for row in section(sections, "Versions that can't be used")] == ["1.3", "1.2"]
    assert [row.head[0] for row in sections[1].rows] == [" "] * 4
    assert first(plan._replace(rejected=(new,))) == "No onnxruntime-gpu on PyPI supports Jetson"
    assert first(plan._replace(rejected=())) == (
        "No onnxruntime-gpu on PyPI works with the driver, GPU and Python below"
    )
    driver = excluded("1.2", "driver-unknown")
    assert first(plan._replace(rejected=(driver,))) == (
        "No onnxruntime-gpu on PyPI works with this driver"
    )


def test_what_the_environment_excludes_is_said_of_it() -> None:
    plan = resolve(synthetic.facts(gpus=()), PlanOptions(), synthetic.matrix())
    by = reason("demand-conflict", by=Named("app", "1.0"), requires="onnxruntime<1")
    beside = Rejected("onnxruntime-gpu", "1.3", environment=(by,))
    alone = beside._replace(environment=(reason("not-wished", wish="--cuda 11"),))

    assert first(plan._replace(rejected=(alone,))) == (
        "No onnxruntime-gpu on PyPI works with the installed packages"
    )
    assert first(plan._replace(rejected=(beside,))) == (
        "onnxruntime-gpu 1.3 works with the driver, GPU and Python below, but not together with "
        "app 1.0"
    )
    assert first(plan._replace(rejected=(alone,)), asked=True) == (
        "No onnxruntime-gpu matches `--cuda 11` and works with the driver, GPU and Python below"
    )
    assert first(plan._replace(rejected=()), asked=True) == (
        "No onnxruntime-gpu matches your options and works with the driver, GPU and Python below"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"needs": ("torch",)}, "onnxruntime-gpu 1.26.0 works only if torch is replaced"),
        (
            {"findings": (finding("numpy-too-old", "error", installed="1", version="2"),)},
            "onnxruntime can't use the GPU (fixable)",
        ),
        (
            {"findings": (finding("numpy-too-old", "error", installed="1", version="2"),) * 2},
            "onnxruntime can't use the GPU: 2 problems (all fixable)",
        ),
        (
            {"findings": (finding("gpu-build-missing", "error"),) * 2},
            "onnxruntime can't use the GPU: onnxruntime-gpu is not installed (all fixable)",
        ),
        (
            {
                "findings": (
                    finding("gpu-build-missing", "error"),
                    finding("installed-editable", "error", by="a 1", name="a"),
                )
            },
            (
                "onnxruntime can't use the GPU: onnxruntime-gpu is not installed "
                "(fixable, but part of it is up to you)"
            ),
        ),
        (  # beside it CUDA may work
            {"findings": (finding("plugin-missing", "error", provider="P", by="b 1"),)},
            "P is not installed: b 1 adds it to plain onnxruntime",
        ),
    ],
)
def test_the_first_sentence_of_what_can_be_fixed(changes: dict[str, Any], sentence: str) -> None:
    plan = made("numpy 2.2.6")[0]

    assert first(plan._replace(**changes)) == sentence


def test_an_upgrade_shows_both_versions_and_a_pin_its_reason() -> None:
    facts = synthetic.facts(
        "onnxruntime-gpu 1.31.0",
        {"name": "torch", "version": "2.5", "requires": ["nvidia-cudnn-cu12==9.1.0"]},
    )
    made = resolve(facts, PlanOptions(), synthetic.matrix())
    text = plain(plan_sections(made, facts, EN, verbose=True, asked=False, command="do"))

    assert "~ onnxruntime-gpu 1.31.0 → 1.26.0 (downgrade), 300 MB" in text
    assert "nvidia-cudnn-cu12 9.1.0: required by torch 2.5" in text
    assert "1.18.0" in text  # for CUDA 11


@pytest.mark.parametrize(
    ("driver", "line"),
    [
        ({"error": "version-mismatch"}, "version-mismatch"),
        ({"version": "535.1"}, "535.1"),
        ({"cuda": "12.2"}, "unknown (supports up to CUDA 12.2)"),
        ({}, "unknown"),
        (
            {"version": "535.1", "cuda": "12.2", "error": "gpu-lost: x"},
            "535.1 (supports up to CUDA 12.2)",
        ),
    ],
)
def test_what_is_not_known_of_a_machine_is_said(driver: dict[str, str], line: str) -> None:
    document = synthetic.document(gpus=None)
    document["driver"] = driver

    section = machine_section(facts_json.from_json(document), EN)

    assert [row.text for row in section.rows][1:3] == [line, "unknown"]


@pytest.mark.parametrize(
    ("path", "source", "told"),
    [
        ("~/.venv/bin/python", "VIRTUAL_ENV", ", ~/.venv/bin/python (from VIRTUAL_ENV)"),
        (
            "~/.venv/bin/python",
            OWN_ENVIRONMENT,
            ", ~/.venv/bin/python, ortgpu-fix's own environment",
        ),
        ("~/.venv/bin/python", None, ", ~/.venv/bin/python"),
        ("/a\nb/bin/python", "VIRTUAL_ENV", ", /a b/bin/python (from VIRTUAL_ENV)"),
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

    assert (system.head, system.text) == ("System", "Ubuntu 22.04, x86_64, glibc 2.35")
    assert (environment.head, environment.text) == ("Environment", f"Python 3.11.7, venv{told}")
    *_, chinese = machine_section(facts_json.from_json(document), load_texts("zh")).rows
    assert ("ortgpu-fix 自己的环境" in chinese.text) is ("own" in told)


def test_another_way_is_a_row_of_the_document() -> None:
    plan = resolve(synthetic.facts(gpus=()), PlanOptions(), synthetic.matrix())
    way = Alternative(provider="tensorrt-rtx", by=Named("a-plugin", "0.5.0"), size=177_000_000)

    assert "ways" not in plan_json(plan, EN)
    [row] = cast(
        "list[dict[str, object]]", plan_json(plan._replace(alternatives=(way,)), EN)["ways"]
    )
    text = str(row.pop("text"))
    assert row == {
        "provider": "tensorrt-rtx",
        "name": "a-plugin",
        "version": "0.5.0",
        "size": 177_000_000,
    }
    assert text.startswith("Alternative: `--provider tensorrt-rtx` plans a-plugin 0.5.0")
    assert "(177 MB)" in text


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
    assert "onnxruntime-gpu 1.26.0: hash from https://mirror.example, read on 2026-11-22" in told


WHOLE = (
    "onnxruntime-gpu 1.26.0",
    "nvidia-cublas-cu12 12.8.4",
    "nvidia-cudnn-cu12 9.28.0",
    "numpy 2.2.6",
    "flatbuffers 25.0",
)


NEWEST = "onnxruntime-gpu 1.31.0"


def made(
    *packages: Any, options: PlanOptions | None = None, python: Any = None, **machine: Any
) -> tuple[Plan, tuple[Section, ...]]:
    """Return a plan, and what is told of it."""
    names = ("verbose", "asked", "at_hand", "where")
    more = {name: machine.pop(name) for name in names if name in machine}
    document = synthetic.document(*packages, **machine)
    document["python"] |= python or {}
    facts = facts_json.from_json(document)
    plan = resolve(facts, options or PlanOptions(), synthetic.matrix())
    said: dict[str, Any] = {"verbose": False, "asked": False, "command": "ortgpu-fix --apply"}
    return plan, plan_sections(plan, facts, EN, **said | more)


def document(*packages: Any, **machine: Any) -> dict[str, Any]:
    return plan_json(made(*packages, **machine)[0], EN)


def section(sections: tuple[Section, ...], heading: str) -> tuple[Row, ...]:
    """Return the rows under `heading`; a heading may say more, in brackets."""
    found = (each for each in sections if each.heading.partition(" (")[0] == heading)
    return next((each.rows for each in found), ())


def test_the_document_of_a_plan_tells_each_wheel() -> None:
    torch = {"name": "torch", "version": "2.5", "requires": ["nvidia-cudnn-cu12==9.1.0"]}
    found = document("onnxruntime 1.22.1", "numpy 2.2.6", torch)

    assert (found["schema"], found["verdict"]) == (1, "fixable")
    assert found["selection"] == {
        "cuda": "12",
        "packages": [
            {"name": "nvidia-cublas-cu12", "version": "12.8.4", "index": "pypi"},
            {"name": "nvidia-cudnn-cu12", "version": "9.1.0", "index": "pypi"},
            {"name": "onnxruntime-gpu", "version": "1.26.0", "index": "pypi"},
            {"name": "torch", "version": "2.5", "index": "pypi"},
        ],
    }
    assert found["uninstall"] == ["onnxruntime"]
    assert found["install"][2] == {
        "name": "onnxruntime-gpu",
        "version": "1.26.0",
        "index": "pypi",
        "file": "onnxruntime_gpu-1.26.0-cp311-cp311-linux_x86_64.whl",
        "sha256": "0" * 64,
        "size": 300_000_000,
    }
    assert [row["name"] for row in found["install"]] == [
        *("nvidia-cublas-cu12", "nvidia-cudnn-cu12", "onnxruntime-gpu"),
    ]
    assert found["companions"] == [
        {"name": row.name, "version": row.version}
        for row in made("onnxruntime 1.22.1", "numpy 2.2.6", torch)[0].companions
    ]
    assert found["requires"] == ["flatbuffers"]
    rejected = found["rejected"][0]
    assert (rejected["package"], rejected["version"]) == ("onnxruntime-gpu", "1.31.0")
    assert [row["code"] for row in rejected["reasons"]] == ["driver-too-old", "torch-other-cuda"]
    assert rejected["reasons"][0]["text"] == (
        "needs driver 580.65.06 or newer for CUDA 13; the driver supports up to CUDA 12.2"
    )


@pytest.mark.parametrize(
    ("packages", "lines"),
    [(WHOLE[:1], ["+ 2 NVIDIA wheels for CUDA 12"]), (WHOLE[:2], ["+ nvidia-cudnn-cu12 9.28.0"])],
)
def test_wheels_that_come_anew_are_told_together(
    packages: tuple[str, ...], lines: list[str]
) -> None:
    _, sections = made(*packages, *WHOLE[3:])
    rows = [row.text for row in section(sections, "Fix")]

    assert [text for text in rows if "nvidia" in text.lower()] == lines


def test_what_is_removed_of_nvidia_is_one_line_too_unless_all_is_asked_for() -> None:
    plan, _ = made("onnxruntime 1.22.1", *WHOLE[1:])
    plan = plan._replace(uninstall=("nvidia-cublas-cu12", "nvidia-cudnn-cu12", "onnxruntime"))
    facts = synthetic.facts("onnxruntime 1.22.1", *WHOLE[1:])
    said: dict[str, Any] = {"asked": False, "command": ""}
    short, whole = (
        section(plan_sections(plan, facts, EN, verbose=verbose, **said), "Fix")
        for verbose in (False, True)
    )

    assert [row.text for row in short if row.style == "red"] == [
        *("- onnxruntime 1.22.1", "- 2 NVIDIA wheels"),
    ]
    assert [row.text for row in whole if row.style == "red"] == [
        "- nvidia-cublas-cu12 12.8.4",
        "- nvidia-cudnn-cu12 9.28.0",
        "- onnxruntime 1.22.1",
    ]


def test_the_runtime_of_microsoft_says_what_it_is_for() -> None:
    plan, _ = made("numpy 2.2.6")
    wheel = plan.install[0]._replace(name="msvc-runtime", version="14.42")
    options: dict[str, Any] = {"verbose": False, "asked": False, "command": ""}
    facts = synthetic.facts()
    sections = plan_sections(plan._replace(install=(wheel,)), facts, EN, **options)

    assert section(sections, "Fix")[0].text == (
        "+ msvc-runtime 14.42 (Visual C++ runtime that onnxruntime-gpu needs)"
    )


def heading(sections: tuple[Section, ...]) -> str:
    return next(each.heading for each in sections if each.heading.startswith("Fix"))


@pytest.mark.parametrize("taken", [False, True])
def test_what_the_smallest_set_saves_stands_beside_the_total(*, taken: bool) -> None:
    plan, _ = made("numpy 2.2.6", "flatbuffers 25.0")
    facts = synthetic.facts("numpy 2.2.6", "flatbuffers 25.0")
    plan = plan._replace(bytes_saved=155_000_000, small=taken)
    sections = plan_sections(plan, facts, EN, verbose=False, asked=False, command="")

    if taken:
        assert heading(sections) == "Fix (downloads up to 500 MB)"
        assert section(sections, "Fix")[-1].text.startswith(
            "155 MB less than with the newest versions. "
        )
    else:
        assert heading(sections) == "Fix (downloads up to 500 MB; 345 MB with `--prefer small`)"
    assert plan_json(plan, EN)["prefer_small"] == {"less": 155_000_000, "taken": taken}
    assert "prefer_small" not in plan_json(plan._replace(bytes_saved=0), EN)


def test_where_wheels_are_at_hand_the_smallest_set_is_not_offered() -> None:
    """What it saves is of a download of everything; it said so also where it saved nothing."""
    plan, _ = made("numpy 2.2.6", "flatbuffers 25.0")
    facts = synthetic.facts("numpy 2.2.6", "flatbuffers 25.0")
    plan = plan._replace(bytes_saved=155_000_000)
    here = [wheel.file for wheel in plan.install]

    def said(*files: str) -> str:
        flags: Any = {"verbose": False, "asked": False, "command": "", "at_hand": files}
        return heading(plan_sections(plan, facts, EN, **flags))

    assert said(*here) == "Fix (nothing to download)"
    assert said(here[0]) == "Fix (downloads up to 400 MB; another 100 MB is already local)"
    assert said("another.whl").endswith("; 345 MB with `--prefer small`)")


def test_a_wheel_of_unknown_size_names_its_index_and_counts_for_no_total() -> None:
    plan, _ = made("numpy 2.2.6", "flatbuffers 25.0")
    facts = synthetic.facts("numpy 2.2.6", "flatbuffers 25.0")
    torch = plan.install[0]._replace(
        name="torch", version="2.10.0+cu128", index_url="https://t.example/whl/cu128", size=0
    )
    with_torch = plan._replace(install=(*plan.install, torch))
    said: dict[str, Any] = {"verbose": False, "asked": False, "command": ""}
    sections = plan_sections(with_torch, facts, EN, **said)

    assert "+ torch 2.10.0+cu128, from https://t.example/whl/cu128" in [
        row.text for row in section(sections, "Fix")
    ]
    assert heading(sections) == (
        "Fix (downloads up to 500 MB, plus packages from other indexes, plus dependencies of torch)"
    )


@pytest.mark.parametrize(
    ("packages", "machine", "first", "style", "last"),
    [
        (WHOLE, {}, "Healthy: onnxruntime-gpu 1.26.0 has everything it needs", "bold green", ""),
        (
            ("onnxruntime-gpu 1.23.0", *WHOLE[1:]),
            {"options": PlanOptions(latest=True), "asked": True},
            "Nothing is broken; there is a change to make",
            "bold",
            "To make this change, run:",
        ),
        (
            (NEWEST, *WHOLE[1:]),
            {},
            f"onnxruntime can't use the GPU: the installed {NEWEST} can't be used (fixable)",
            "bold",
            "To fix this, run:",
        ),
        (
            (),
            {"where": "new"},
            "onnxruntime-gpu 1.26.0 works with the driver, GPU and Python below",
            "bold",
            "In a new Python 3.11.7 environment (`uv venv --python 3.11.7 .venv`), run:",
        ),
        (
            ("onnxruntime 1.22.1", *WHOLE[1:]),
            {"where": "there"},
            "onnxruntime can't use the GPU: the CPU-only package is installed (all fixable)",
            "bold",
            "Run this on that machine:",
        ),
    ],
)
def test_the_first_sentence_is_the_verdict_and_the_command_is_the_last_line(
    packages: tuple[str, ...], machine: dict[str, Any], first: str, style: str, last: str
) -> None:
    _, sections = made(*packages, **machine)

    assert sections[0].rows == (Row(text=first, style=style),)
    if last:
        assert sections[-1].rows == (
            Row(text=last, style="bold"),
            Row(text="ortgpu-fix --apply", style="bold", unwrapped=True),
        )
    else:
        assert not any(row.unwrapped for each in sections for row in each.rows)


def test_what_the_user_has_to_do_first_is_told_before_the_command() -> None:
    """A command that is refused as things are mends nothing."""
    _, sections = made({"name": "onnxruntime", "version": "1.22.1", "held": "conda"})

    assert [row.text for row in sections[-1].rows] == [
        EN.label("fixable-after"),
        "ortgpu-fix --apply",
    ]


def test_where_something_else_keeps_programs_away_it_is_no_green_end() -> None:
    shadow = {"shadow": "/work/onnxruntime.py"}
    _, healthy = made(*WHOLE, python=shadow)
    _, fixable = made(*WHOLE[:4], python=shadow)
    _, unreadable = made(*WHOLE, error="cuinit-804: cuInit error 804")

    assert healthy[0].rows == (
        Row(text=EN.label("shadowed", build="onnxruntime-gpu 1.26.0"), style="bold red"),
    )
    assert fixable[0].rows[0].text == (
        "onnxruntime can't use the GPU: programs import another onnxruntime (partly fixable)"
    )
    assert unreadable[0].rows == (
        Row(text=EN.label("outside", build="onnxruntime-gpu 1.26.0"), style="bold red"),
    )


def test_in_chinese_the_marks_between_reasons_are_chinese() -> None:
    zh = load_texts("zh")
    plan, _ = made(*WHOLE, "transformer 4.2", "dataloader 1.0")
    said = {"verbose": False, "asked": False, "command": ""}
    sections = plan_sections(plan, synthetic.facts(), zh, **said)  # type: ignore[arg-type]
    [unknown, known] = [row.text for row in section(sections, zh.label("consumers"))]
    [first, second] = [*why(1), *why(2)]

    assert known.startswith("CUDA 12，")
    assert "，CUDA" not in unknown
    assert reason_text([first, second], zh, verbose=True) == (
        f"{zh.reason(first)}；{zh.reason(second)}"
    )


def test_who_else_uses_cuda_is_told_dimly_and_torch_alone_is_not() -> None:
    _, sections = made(*WHOLE, "transformer 4.2", "dataloader 1.0")
    [rows] = [each.rows for each in sections if each.heading == EN.label("consumers")]

    assert [row.head for row in rows] == ["dataloader 1.0", "transformer 4.2"]
    assert rows[1].text.startswith("CUDA 12, ")
    assert not rows[0].text.startswith("CUDA")
    assert {row.style for row in rows} == {"dim"}
    torch = {"name": "torch", "version": "2.5", "requires": ["nvidia-cudnn-cu12==9.1.0"]}
    plan, sections = made("numpy 2.2.6", torch)
    assert [row.name for row in plan.consumers] == ["torch"]
    assert not section(sections, EN.label("consumers"))


def test_changes_that_allow_the_same_share_a_line() -> None:
    plan, _ = made(driver="12.2")
    both = ("newer-driver", {"floor": "580.1"}), ("drop-wish", {"wish": "--ort"})
    rows = [
        Unlock(changes=(reason(code, **more),), gains=(Named("onnxruntime-gpu", "2.0"),))
        for code, more in both
    ]
    rows.insert(
        1,
        Unlock(
            changes=(reason("drop-wish", wish="--cuda"),), gains=(Named("onnxruntime-gpu", "1.9"),)
        ),
    )
    said = {"verbose": False, "asked": False, "command": ""}
    sections = plan_sections(
        plan._replace(unlock=tuple(rows)),
        synthetic.facts(),
        EN,
        **said,  # type: ignore[arg-type]
    )

    assert [(row.head, row.text) for row in section(sections, "To use a newer version")] == [
        ("onnxruntime-gpu 2.0", "driver >= 580.1; or without `--ort`"),
        ("onnxruntime-gpu 1.9", "without `--cuda`"),
    ]


def test_why_this_set_is_told_where_more_is_asked_for() -> None:
    def first(**more: Any) -> str:
        _, sections = made("numpy 2.2.6", verbose=True, **more)
        rows = section(sections, "Why these packages")
        assert {row.style for row in rows[1:]} == {"dim"}
        return rows[0].text

    assert first() == "onnxruntime-gpu 1.26.0 is the newest version that works"
    assert first(asked=True) == (
        "onnxruntime-gpu 1.26.0 is the newest version that works and matches your options"
    )
    assert not section(made("numpy 2.2.6")[1], "Why these packages")
    _, over = made("onnxruntime-gpu 1.23.0", options=PlanOptions(latest=True), verbose=True)
    assert section(over, "Why these packages")[0].text == EN.label(
        "why-newest", build="onnxruntime-gpu 1.26.0"
    )
    nowhere = made("numpy 2.2.6", verbose=True, driver=None, gpus=())[1]
    assert not section(nowhere, "Why these packages")


def why(number: int) -> tuple[Reason, ...]:
    """Return reasons that no neighbour has."""
    return (reason("no-gpu-code", gpu=f"{number}.0", carried="9.0"),)


def rows(package: str, *versions: str) -> list[Rejected]:
    return [
        Rejected(package=package, version=version, machine=why(number))
        for number, version in enumerate(versions)
    ]


def shown(*rejected: Rejected, taken: str | None = None, verbose: bool = False) -> list[str]:
    wheel = Wheel(
        name="onnxruntime-gpu", version=taken or "", index_url=PYPI, file="", size=0, sha256=""
    )
    plan = Plan(
        verdict="fixable",
        matrix_date="",
        matrix_digest="",
        selection=(wheel,) if taken else (),
        rejected=rejected,
    )
    section = rejected_section(plan, EN, verbose=verbose)
    return [row.head if row.head != "…" else f"… {row.text}" for row in section.rows]


ORT = ("1.31.1", "1.31.0", "1.26.0", "1.25.0", "1.24.0")


def test_the_newest_few_are_shown_and_the_rest_is_counted() -> None:
    short = shown(*rows("onnxruntime-gpu", *ORT))

    assert short[:SHORT] == ["1.31.1", "1.31.0", "1.26.0"]
    assert len(short) == SHORT + 1
    assert "2" in short[-1]
    assert shown(*rows("onnxruntime-gpu", *ORT), verbose=True) == [*ORT]


def test_what_is_older_than_the_release_that_is_taken_needs_no_reason() -> None:
    short = shown(*rows("onnxruntime-gpu", *ORT), taken="1.26.0")

    assert short[:-1] == ["1.31.1", "1.31.0"]
    assert "3" in short[-1]


def test_a_range_covers_only_versions_that_are_rejected() -> None:
    """It covered eight that work, too."""
    same = [row._replace(machine=why(1)) for row in rows("onnxruntime-gpu", *ORT)]
    without = [row for row in same if row.version != "1.26.0"]
    plan = Plan(verdict="impossible", matrix_date="", matrix_digest="", rejected=tuple(without))

    def heads(plan: Plan) -> list[str]:
        return [row.head for row in rejected_section(plan, EN, verbose=True).rows]

    assert heads(plan._replace(considered=ORT)) == ["1.31.0 to 1.31.1", "1.24.0 to 1.25.0"]
    assert heads(plan._replace(considered=("1.31.1", "1.31.0", "1.25.0", "1.24.0"))) == [
        "1.24.0 to 1.31.1"
    ]


def test_torches_that_were_passed_over_come_last() -> None:
    torches = rows("torch", *(f"2.{minor}.0" for minor in range(SHORT + 2)))
    short = shown(*torches, *rows("onnxruntime-gpu", "1.31.1"))

    assert short[0] == "1.31.1"
    assert short[1 : SHORT + 1] == [f"torch 2.{minor}.0" for minor in range(SHORT)]
    assert len(short) == SHORT + 2
    assert len(shown(*torches, verbose=True)) == SHORT + 2


def test_who_else_excludes_a_release_is_told_beside_the_first_reason() -> None:
    why = [
        reason("demand-conflict", by=Named(name, "1.0"), requires="onnxruntime<1")
        for name in ("app", "other")
    ]
    row = Rejected(package="onnxruntime-gpu", version="1.3", environment=tuple(why))
    plan = Plan(verdict="impossible", matrix_date="", matrix_digest="", rejected=(row,))

    [said] = rejected_section(plan, EN, verbose=False).rows

    assert said.text == EN.label("also-excludes", reason=EN.reason(why[0]), by="other 1.0")


def test_a_release_that_is_installed_anew_has_one_version() -> None:
    _, sections = made("onnxruntime 1.22.1", *WHOLE)

    assert "+ onnxruntime-gpu 1.26.0 (reinstall)" in [row.text for row in section(sections, "Fix")]


def test_a_long_list_of_names_is_cut() -> None:
    row = finding("library-missing", "error", names=tuple("abcdef"), cuda="12")
    plan = made("numpy 2.2.6")[0]._replace(findings=(row,))
    options: dict[str, Any] = {"verbose": False, "asked": False, "command": ""}

    sections = plan_sections(plan, synthetic.facts(), EN, **options)

    said = section(sections, "Problems")[0].text
    assert said == "Missing CUDA 12 libraries: a, b, c, d, …"
