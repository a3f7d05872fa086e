"""The check list for a person with Windows: what it keeps to itself, and what is made of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import record_machine
import windows_check

ROOT = Path(__file__).parents[2]
CHECKS = sorted(record_machine.FOLDER.glob("*/check.json"))
NEVER = {
    "README.md": "**No other GPU and no native Windows yet**",
    "README.zh-CN.md": "**尚未在其他 GPU 和原生 Windows 上测试**",
}
PERSON = {
    "USERPROFILE": "C:\\Users\\Ada Byron",
    "USERNAME": "ada.b",
    "COMPUTERNAME": "ADA-PC",
    "USERDOMAIN": "x",
}


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


@pytest.mark.parametrize("file", CHECKS, ids=lambda file: file.parent.name)
def test_a_check_list_is_whole_and_its_facts_are_the_machine_s(file: Path) -> None:
    check = read(file)

    assert [row["name"] for row in check["steps"]] == list(windows_check.STEPS)
    assert check["facts"] == read(file.with_name("facts.json"))
    if check["system"]["wine"]:
        assert [row for row in check["steps"] if row["outcome"] == "wrong"] == []


def test_the_account_is_made_of_the_check_lists() -> None:
    assert CHECKS
    assert record_machine.ACCOUNT.read_text("utf-8") == record_machine.account()


@pytest.mark.parametrize("name", NEVER)
def test_the_readme_says_so_as_long_as_no_real_windows_was_checked(name: str) -> None:
    text = " ".join((ROOT / name).read_text("utf-8").split())

    assert (NEVER[name] in text) == all(read(file)["system"]["wine"] for file in CHECKS)


def test_a_row_says_where_and_what() -> None:
    check = {
        "date": "2026-12-01",
        "system": {"wine": None, "windows": "10.0.26100", "python": "3.13.1", "code_page": 936},
        "facts": {"gpus": [{"name": "NVIDIA GeForce RTX 4060"}]},
        "steps": [
            {"name": "a plan", "outcome": "well"},
            {"name": "undo", "outcome": "wrong", "why": "exit 5"},
            {"name": "OneDrive", "outcome": "not here", "why": "no OneDrive"},
        ],
    }
    where = "Windows 10.0.26100, Python 3.13.1, code page 936, NVIDIA GeForce RTX 4060; 2026-12-01"

    assert record_machine.row("windows-x", check) == (
        "| [`windows-x`](../../../tests/captures/windows-x/check.json) | "
        f"{where} | a plan | undo | OneDrive (no OneDrive) |"
    )


def test_a_check_list_becomes_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = tmp_path / "README.md"
    account.write_text("a\n<!-- check lists -->\nold\n<!-- end of check lists -->\nb\n")
    monkeypatch.setattr(record_machine, "FOLDER", tmp_path)
    monkeypatch.setattr(record_machine, "ACCOUNT", account)
    [check, *_] = CHECKS

    assert record_machine.main(["windows-x", "--check", str(check)]) == 0
    assert read(tmp_path / "windows-x" / "facts.json") == read(check)["facts"]
    assert read(tmp_path / "windows-x" / "check.json") == read(check)
    lines = account.read_text("utf-8").splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("a", "b", 9)
    assert lines[4:6] == ["|---|---|---|---|---|", record_machine.row("windows-x", read(check))]


def test_what_is_not_of_the_list_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "check.json"
    file.write_text(json.dumps({"facts": {"schema": 1}}))

    assert record_machine.main(["windows-x", "--check", str(file)]) == 1
    assert "facts-invalid" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("C:\\Users\\Ada Byron\\x and ada.b on ada-pc", "~\\x and … on …"),
        ('"C:\\\\Users\\\\Ada Byron\\\\x"', '"~\\\\x"'),
        ("c:\\users\\adabyr~1\\appdata", "~\\appdata"),
        ("D:\\mine\\ortgpu-fix-check\\环境 env\\x", "C:\\ortgpu-fix-check\\环境 env\\x"),
        ("d:\\tools\\python 3\\vcruntime140.dll", "C:\\Python\\vcruntime140.dll"),
        ("exit 2, matrix, canada.be", "exit 2, matrix, canada.be"),
    ],
)
def test_no_name_and_no_path_of_the_person_is_written(
    said: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "base_prefix", "D:\\tools\\Python 3")
    names = windows_check.names_of(PERSON, Path("D:\\mine\\ortgpu-fix-check"))

    assert windows_check.without_names({"why": [said, 1, None]}, names) == {"why": [kept, 1, None]}
    assert windows_check.names_of({}, Path("D:\\x")) == {
        "D:\\tools\\Python 3": "C:\\Python",
        "D:\\x": "C:\\ortgpu-fix-check",
    }


def test_what_went_wrong_is_written_down_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(error: Exception) -> Callable[[object], dict[str, Any]]:
        def step(_: object) -> dict[str, Any]:
            raise error

        return step

    check = windows_check.Checked(tmp_path, "", None)
    monkeypatch.setattr(windows_check, "STEPS", {
        "one": lambda _: {"seen": 1},
        "two": end(windows_check.NotHereError("no such thing")),
        "three": lambda _: {},
        "four": end(ZeroDivisionError()),
        "five": end(windows_check.WrongError("exit 3")),
    })  # fmt: skip
    rows = list(windows_check.steps(check, windows_check.STEPS))

    assert [(row["name"], row["outcome"], row.get("why"), row.get("seen")) for row in rows] == [
        ("one", "well", None, {"seen": 1}),
        ("two", "not here", "no such thing", None),
        ("three", "well", None, {}),
        ("four", "wrong", "ZeroDivisionError()", None),
        ("five", "wrong", "exit 3", None),
    ]
    monkeypatch.setattr(windows_check, "STEPS", {"one": end(OSError("x")), "two": lambda _: {}})
    assert [row["name"] for row in windows_check.steps(check, windows_check.STEPS)] == ["one"]


def test_an_environment_is_the_same_where_its_files_are(tmp_path: Path) -> None:
    for name in ("a.py", "a.pyc", "x.dist-info/RECORD", ".ortgpu-fix/lock", "uv_cache.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one")
    found = windows_check.digests(tmp_path)
    check = windows_check.Checked(tmp_path / "check", "", None)
    check.env, check.before = tmp_path, found
    (tmp_path / "a.pyc").write_text("two")

    assert found.keys() == {"a.py", "a.pyc", str(Path("x.dist-info", "RECORD"))}
    assert windows_check.digests(tmp_path) == found
    (tmp_path / "a.py").write_text("two")
    with pytest.raises(windows_check.WrongError, match=r"a\.py"):
        check.same()


def test_what_a_person_starts_starts_the_list_and_the_gate_does() -> None:
    script = (ROOT / "scripts" / "windows_check.ps1").read_text("ascii")
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")

    assert "$PSScriptRoot 'windows_check.py') @args" in script
    assert "run: ./scripts/windows_check.ps1" in workflow
