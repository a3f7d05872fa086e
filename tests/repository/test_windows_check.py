"""The check list for a person with Windows: what it keeps to itself, and what is made of it."""

from __future__ import annotations

import json
import sys
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


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("C:\\Users\\Ada Byron\\x and ada.b on ada-pc", "~\\x and … on …"),
        ("c:\\users\\adabyr~1\\appdata", "~\\appdata"),
        ("D:\\mine\\ortgpu-fix-check\\环境 env\\x", "C:\\ortgpu-fix-check\\环境 env\\x"),
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
