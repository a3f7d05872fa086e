"""`cache dir|info|purge`: what this program keeps, and nobody else's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ortgpu_fix.__main__ import main


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / ".cache"))
    kept = tmp_path / ".cache" / "ortgpu-fix"
    (kept / "wheels").mkdir(parents=True)
    (kept / "wheels" / "a-1-py3-none-any.whl").write_bytes(bytes(3_000_000))
    (kept / "readings" / "ab").mkdir(parents=True)
    (kept / "readings" / "ab" / "x.json").write_bytes(bytes(2000))
    (tmp_path / ".cache" / "uv").mkdir()
    return tmp_path


def test_where_it_is(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "dir"]) == 0
    assert capsys.readouterr().out == f"{home / '.cache' / 'ortgpu-fix'}\n"


@pytest.mark.parametrize("words", [["cache"], ["cache", "info"]])
def test_how_much_it_is(home: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "folder": str(home / ".cache" / "ortgpu-fix"),
        "bytes": {"wheels": 3_000_000, "readings": 2000},
    }
    assert main(words) == 0
    first, wheels, readings = capsys.readouterr().out.splitlines()
    assert first.startswith(f"Kept in {home}")
    assert wheels.endswith(" 3 MB")
    assert readings.endswith(" 2 kB")


def test_it_is_removed_and_nothing_else(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "purge"]) == 0

    assert capsys.readouterr().out.startswith("Removed 3 MB from ")
    assert (home / ".cache" / "uv").is_dir()
    assert main(["cache", "purge", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == {"wheels": 0, "readings": 0}


@pytest.mark.skipif(sys.platform == "win32", reason="a user of Windows has LOCALAPPDATA")
def test_without_a_home(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HOME")

    assert main(["cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "folder": None, "bytes": {}}
    assert main(["cache", "purge"]) == 0
    assert capsys.readouterr().out == "There is no cache: this user has no home folder\n"
    assert home.is_dir()


def test_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "purgw"]) == 2
    assert "purge" in capsys.readouterr().err
