"""A plan for another machine needs no environment here: flags describe it, and the plan says so."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix import __main__
from ortgpu_fix.cli.described import describes_environment
from ortgpu_fix.cli.parser import parse

RTX = ("--driver", "551.61", "--gpu", "RTX 4060")
A100 = ("--driver", "535.104.12", "--gpu", "A100")


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run as `uv tool install` leaves it: in an environment of this program's own."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV"):
        monkeypatch.delenv(name, raising=False)
    private = tmp_path / "tool"
    private.mkdir()
    (private / "uv-receipt.toml").touch()
    monkeypatch.setattr(sys, "prefix", str(private))
    monkeypatch.setenv("PATH", os.defpath)  # without the environment of these tests
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def outcome(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = __main__.main([*words])
    done = capsys.readouterr()
    return code, done.out + done.err


def facts_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code, out = outcome(capsys, "facts", *words)
    assert code == 0, out
    document: dict[str, Any] = json.loads(out)
    return document


@pytest.mark.parametrize(
    ("words", "without", "with_version"),
    [
        (("lock",), True, True),
        (("facts",), True, True),
        (("plan",), False, True),
        (("check",), False, False),
        (("apply",), False, False),
    ],
)
def test_which_commands_need_no_environment(
    words: tuple[str, ...], *, without: bool, with_version: bool, nowhere: Path
) -> None:
    assert describes_environment(parse([*words]).machine, {}, nowhere) is without
    line = parse([*words, "--python", "3.11"])
    assert describes_environment(line.machine, {}, nowhere) is with_version


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    ("flags", "platform"),
    [
        (RTX, ("windows", "x86_64")),
        (A100, ("linux", "x86_64")),
        (("--driver", "540.4", "--gpu", "8.7"), ("linux", "aarch64")),
        ((*A100, "--platform", "linux-aarch64"), ("linux", "aarch64")),
    ],
)
def test_driver_and_gpu_tell_the_platform_where_they_can(
    flags: tuple[str, ...], platform: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    seen = facts_of(capsys, *flags)["platform"]

    assert (seen["system"], seen["machine"]) == platform


@pytest.mark.usefixtures("nowhere")
def test_what_was_assumed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    _, assumed = outcome(capsys, *RTX)
    _, named = outcome(capsys, *RTX, "--platform", "windows", "--python", "3.12")
    version = ".".join(map(str, sys.version_info[:3]))

    assert "Windows, x86_64, assumed; `--platform` changes it" in assumed
    assert f"Python {version}, venv, assumed; `--python 3.12` changes it" in assumed
    assert "assumed" not in named
    assert "Python 3.12, venv" in named


@pytest.mark.usefixtures("nowhere")
def test_the_last_line_is_for_the_machine_where_it_is_typed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, unnamed = outcome(capsys, *A100, "--platform", "linux-x86_64")
    _, there = outcome(capsys, *RTX, "--python", "3.12", "--platform", "windows")

    assert unnamed.splitlines()[-2].startswith("Run this on that machine:")
    assert unnamed.splitlines()[-1] == "ortgpu-fix --driver 535.104.12 --gpu A100 --apply"
    assert there.splitlines()[-2].startswith("On that machine, in a new Python 3.12 environment")
    assert there.splitlines()[-1] == (
        'ortgpu-fix --python .venv --driver 551.61 --gpu "RTX 4060" --apply'
    )


def test_what_a_file_of_another_machine_says_is_typed_into_its_environment(
    nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = facts_of(capsys, *A100, "--python", "3.11")
    words = {}
    for python in ({"version": "3.11"}, {**seen["python"], "executable": "/opt/app/bin/python"}):
        file = nowhere / "host.json"
        file.write_text(json.dumps({**seen, "python": python, "sources": {"python": "--python"}}))
        words[len(python)] = outcome(capsys, "--facts", "host.json")[1].splitlines()[-1]
        sourceless = {**seen, "python": python, "sources": {}}
        file.write_text(json.dumps(sourceless))
        assert ".venv" not in outcome(capsys, "--facts", "host.json")[1].splitlines()[-1]

    new, old = words.values()
    assert new == "ortgpu-fix --python .venv --apply"
    assert old == "ortgpu-fix --python /opt/app/bin/python --apply"


def test_a_version_is_a_new_environment_here(
    nowhere: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (nowhere / "host.json").write_text(json.dumps(facts_of(capsys, *A100)))
    monkeypatch.setattr("ortgpu_fix.cli.requests.MachineOptions.elsewhere", False)
    _, here = outcome(capsys, "--facts", "host.json", "--python", "3.12")

    assert here.splitlines()[-2].startswith("In a new Python 3.12 environment (`uv venv")
    assert here.splitlines()[-1] == "ortgpu-fix --python .venv --facts host.json --apply"


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("words", [("--apply", "--yes"), ("undo",)])
def test_what_runs_or_changes_an_environment_needs_one(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(capsys, *words)[0] == 2
    code, said = outcome(capsys, *words, "--python", "3.11")

    assert code == 2
    assert "`--python 3.11` is only a version" in said
    assert "`uv venv --python 3.11 .venv`" in said


def test_what_is_described_can_be_written_down(
    nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = outcome(
        capsys, *("facts", "--platform", "windows"), *RTX, "--python", "3.10", "-o", "host.json"
    )
    seen = json.loads((nowhere / "host.json").read_text())

    assert code == 0, said
    assert seen["python"]["version"] == "3.10"
    assert seen["packages"] == []


def test_a_plan_for_the_wrong_platform_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--python", sys.executable, "--json")
    findings = {}
    for name, machine in {"windows": RTX, "linux": A100}.items():
        __main__.main([*flags, *machine])
        plan = json.loads(capsys.readouterr().out)
        findings[name] = {row["code"]: row for row in plan["findings"]}

    assert "platform-unexpected" not in findings["linux"]
    assert findings["windows"]["platform-unexpected"]["severity"] == "warning"
    assert "--platform windows" in findings["windows"]["platform-unexpected"]["remedy"]


def test_a_python_here_is_not_of_another_platform(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = outcome(capsys, *RTX, "--platform", "windows", "--python", sys.executable)

    assert code == 2
    assert "windows" in said
    assert sys.executable in said


@pytest.mark.parametrize(
    ("flags", "partner"),
    [
        (("--platform", "windows"), "--driver VERSION --gpu GPU"),
        (
            ("verify", "--platform", "windows", *RTX),
            "`plan`, `facts`, `lock`, `download`, `explain`",
        ),
    ],
)
def test_a_platform_alone_is_refused(
    flags: tuple[str, ...], partner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = outcome(capsys, *flags)

    assert code == 2
    assert partner in said
