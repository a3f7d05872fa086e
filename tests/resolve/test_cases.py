"""Where the driver or the GPUs are unknown: a case for each machine that it may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from random_machines import RELEASES, UNKNOWN, Document, documents, known_gpus, unlike_its_case

from ortgpu_fix import __main__

CPU_BUILD: dict[str, Any] = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.36"},
    "python": {"version": "3.11.7", "executable": "/srv/.venv/bin/python"},
    "packages": [{"name": "onnxruntime", "version": "1.22.1"}],
}
AMPERE = {"gpus": [{"compute_capability": "8.6"}]}
R550 = {"driver": {"version": "550.54.14"}}


def planned(folder: Path, facts: dict[str, Any], *words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the document of a plan for the machine in a file."""
    (folder / "host.json").write_text(json.dumps(facts))
    done = run_here("--facts", "host.json", "--json", *words, cwd=folder, env={"LANG": "C.UTF-8"})
    document: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, document


def said(folder: Path, facts: dict[str, Any], *words: str) -> tuple[int, list[str]]:
    (folder / "host.json").write_text(json.dumps(facts))
    done = run_here("--facts", "host.json", *words, cwd=folder, env={"LANG": "C.UTF-8"})
    return done.returncode, (done.stdout + done.stderr).splitlines()


def releases(made: dict[str, Any]) -> list[tuple[Any, Any, str | None, str | None]]:
    """Return driver, GPUs, onnxruntime-gpu and CUDA of each case."""
    rows = []
    for case in made["cases"]:
        chosen = case["selection"] or {"packages": [], "cuda": None}
        versions = {row["name"]: row["version"] for row in chosen["packages"]}
        release, gpus = versions.get("onnxruntime-gpu"), case["gpus"] and " ".join(case["gpus"])
        rows.append((case["driver"], gpus, release, chosen["cuda"]))
    return rows


def test_an_unknown_driver_is_a_question_and_no_impossibility(tmp_path: Path) -> None:
    code, made = planned(tmp_path, CPU_BUILD | AMPERE)

    assert (code, made["verdict"], made["selection"], made["install"]) == (1, "unknown", None, [])
    assert releases(made) == [
        (">=580.65.06", None, "1.31.1", "13"),
        (">=525.60.13,<580.65.06", None, "1.26.0", "12"),
        (">=450.80.02,<525.60.13", None, "1.18.1", "11"),
        ("<450.80.02", None, None, None),
    ]
    assert [row["code"] for row in made["findings"]] == ["cpu-build-installed", "gpu-build-missing"]
    assert made["question"]["unknown"] == ["driver"]
    assert made["question"]["command"].startswith("nvidia-smi ")


def test_unknown_gpus_are_those_that_there_are(tmp_path: Path) -> None:
    """550 knows no Blackwell; 1.20.2 is the last with code for 5.2 in CUDA 12."""
    code, made = planned(tmp_path, CPU_BUILD | R550)

    assert (code, made["verdict"]) == (1, "unknown")
    assert [(row[1], row[2]) for row in releases(made)] == [
        ("3.0 3.5 3.7 5.0 10.0 10.3 12.0", None),
        ("7.5 8.0 8.6 8.9 9.0", "1.26.0"),
        ("6.0 6.1 7.0", "1.26.0"),
        ("5.2", "1.20.2"),
    ]
    assert {row[0] for row in releases(made)} == {None}
    cudnn = [
        next(row["version"] for row in case["install"] if "cudnn" in row["name"])
        for case in made["cases"][1:3]
    ]
    assert cudnn[0] != cudnn[1]  # the newest with code for Pascal is an older one


def test_where_both_are_unknown_a_dropped_gpu_is_a_case(tmp_path: Path) -> None:
    _, made = planned(tmp_path, CPU_BUILD)
    pascal = [row for row in releases(made) if "6.1" in (row[1] or "")]

    assert [(row[0], row[2]) for row in pascal] == [
        (">=590", None),
        (">=525.60.13,<590", "1.26.0"),
        (">=450.80.02,<525.60.13", "1.18.1"),
        ("<450.80.02", None),
    ]
    assert made["question"]["unknown"] == ["driver", "gpus"]


def test_what_was_asked_for_holds_in_every_case(tmp_path: Path) -> None:
    flags = ("--cuda", "12", "--ignore-gpu", "8.6")
    _, made = planned(tmp_path, CPU_BUILD | {"driver": {"version": "580.95.05"}}, *flags)

    assert {row[2:] for row in releases(made)} == {("1.26.0", "12"), ("1.20.2", "12"), (None, None)}
    assert not any("8.6" in row[1].split() for row in releases(made))


def test_the_words(tmp_path: Path) -> None:
    code, lines = said(tmp_path, CPU_BUILD | AMPERE)

    assert code == 1
    assert lines[0] == "What to install depends on the driver, which is unknown"
    assert lines[3] == "? Driver       unknown"
    assert lines[4] == "✓ GPU          compute capability 8.6"
    at = lines.index("What each machine would get")
    assert lines[at + 1 : at + 5] == [
        "  onnxruntime-gpu 1.31.1, CUDA 13  driver >= 580.65.06",
        "  onnxruntime-gpu 1.26.0, CUDA 12  driver >= 525.60.13, < 580.65.06",
        "  onnxruntime-gpu 1.18.1, CUDA 11  driver >= 450.80.02, < 525.60.13",
        "  no onnxruntime-gpu               otherwise",
    ]
    assert lines[-1] == "nvidia-smi --query-gpu=name,driver_version --format=csv"


@pytest.mark.parametrize("words", [("--apply", "--yes"), ("download", "-d", "wheels")])
def test_nothing_is_done_for_a_machine_that_is_not_known(
    tmp_path: Path, venv: Path, words: tuple[str, ...]
) -> None:
    here = ("--python", str(venv)) if "--apply" in words else ()
    code, lines = said(tmp_path, CPU_BUILD, *words, *here)

    assert code == 2
    assert "the driver and the GPUs are unknown" in lines[0]
    assert "--driver VERSION --gpu GPU" in lines[-1]


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [(CPU_BUILD | AMPERE, "unknown"), (CPU_BUILD | {"driver": None, "gpus": None}, "impossible")],
)
def test_a_check_tells_what_is_not_known_and_what_is_absent(
    tmp_path: Path, facts: dict[str, Any], verdict: str
) -> None:
    code, document = planned(tmp_path, facts, "--check")

    assert document["verdict"] == verdict
    assert code == (3 if verdict == "impossible" else 1)


def test_what_works_on_no_machine_is_impossible(tmp_path: Path) -> None:
    """onnxruntime-gpu has no wheel for Python 3.5, whatever the driver."""
    code, made = planned(tmp_path, CPU_BUILD | {"python": {"version": "3.5"}})

    assert (code, made["verdict"]) == (3, "impossible")
    assert "cases" not in made


@pytest.mark.untraced
@settings(max_examples=6)
@given(documents(), st.sampled_from(UNKNOWN), st.sampled_from(RELEASES), st.data())
def test_a_case_is_the_plan_of_the_machine_that_it_is_for(
    document: Document, unknown: str, release: str, data: st.DataObject
) -> None:
    """`scripts/prove/machines.py` does a thousand."""
    gpu = data.draw(st.sampled_from(known_gpus(document)))

    assert unlike_its_case(document, unknown, release, gpu) == []


def test_a_driver_that_nothing_runs_on_is_impossible_whatever_the_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = CPU_BUILD | {"driver": {"version": "390.157"}}
    (tmp_path / "host.json").write_text(json.dumps(machine))

    assert __main__.main(["--facts", str(tmp_path / "host.json"), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["verdict"] == "impossible"
