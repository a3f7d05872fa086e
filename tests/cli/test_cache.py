"""`cache dir|info|purge`: what this program keeps, and nobody else's."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from other_user import SOMEBODY, with_others

from ortgpu_fix.__main__ import main
from ortgpu_fix.cli.matrix_files import readings_folder, user_file
from ortgpu_fix.data_files import load_table
from ortgpu_fix.matrix.additions import additions_json


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / ".cache"))
    kept = tmp_path / ".cache" / "ortgpu-fix"
    (kept / "readings" / "ab").mkdir(parents=True)
    (kept / "readings" / "ab" / "x.json").write_bytes(bytes(2000))
    (tmp_path / ".cache" / "uv").mkdir()
    return tmp_path


def test_where_it_is(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "dir"]) == 0
    assert capsys.readouterr().out == f"{home / '.cache' / 'ortgpu-fix'}\n"


def test_how_much_it_is(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "folder": str(home / ".cache" / "ortgpu-fix"),
        "bytes": {"readings": 2000},
    }
    assert main(["cache", "info"]) == 0
    first, readings = capsys.readouterr().out.splitlines()
    assert first.startswith(f"The cache is in {home}")
    assert readings.endswith(" 2 kB")


def test_it_is_removed_and_nothing_else(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "purge"]) == 0

    assert capsys.readouterr().out.startswith("Removed 2 kB from ")
    assert (home / ".cache" / "uv").is_dir()
    assert main(["cache", "purge", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == {"readings": 0}


@pytest.mark.skipif(sys.platform == "win32", reason="a user of Windows has LOCALAPPDATA")
def test_without_a_home(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HOME")

    assert main(["cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "folder": None, "bytes": {}}
    assert main(["cache", "purge"]) == 0
    assert capsys.readouterr().out == "There is no cache: this user has no home directory\n"
    assert home.is_dir()


@pytest.fixture
def rows(home: Path) -> Path:
    """Return the file of `matrix --update`: a release that only these rows know."""
    build = next(row for row in load_table("onnxruntime")["build"] if row["version"] == "1.26.0")
    tables: dict[str, Any] = {
        "onnxruntime": {"build": [build | {"version": "1.99.0"}]},
        "nvidia": {"distribution": []},
        "toolkits": {"toolkit": []},
        "torch": {"torch": [], "companion": []},
    }
    document = additions_json("2027-01-01", "https://pypi.org/simple", tables)
    file = user_file({"HOME": str(home), "LOCALAPPDATA": str(home / ".cache")})
    assert file is not None
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document) + "\n")
    return file


def test_the_rows_of_update_are_shown_and_go_on_request(
    rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache"]) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert str(rows) in told
    assert "`ortgpu-fix matrix --forget`" in told
    assert main(["cache", "purge"]) == 0
    assert rows.is_file()  # rows are data, and no cache
    assert main(["matrix", "1.99.0"]) == 0
    capsys.readouterr()

    assert main(["matrix", "--forget"]) == 0

    assert capsys.readouterr().out.startswith(f"Removed {rows}")
    assert not rows.exists()
    assert main(["matrix", "1.99.0"]) == 2
    capsys.readouterr()
    assert main(["matrix", "--forget", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "forgotten": None}
    assert main(["cache"]) == 0
    assert "--forget" not in capsys.readouterr().out


def give(folder: Path, owner: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


@with_others
def test_root_with_the_home_of_a_user_keeps_nothing_there_and_says_so_once(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = home / ".cache" / "ortgpu-fix"
    shutil.rmtree(kept)
    give(home, SOMEBODY)
    environ = {"HOME": str(home)}

    assert [readings_folder(environ), readings_folder(environ)] == [None] * 2

    said = capsys.readouterr().err
    assert said.count(f"{kept} belongs to another user (with sudo: use `sudo -H`)") == 1
    assert not kept.exists()
    assert main(["cache"]) == 0
    assert "belongs to another user" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a privilege there")
def test_a_link_in_the_cache_goes_and_what_it_leads_to_stays(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = home / ".cache" / "ortgpu-fix" / "readings"
    disk = link.rename(tmp_path / "disk")
    link.symlink_to(disk)

    assert main(["cache", "purge"]) == 0

    done = capsys.readouterr()
    said = f"Removed the link {link}; its target was kept: {disk}"
    assert done.out.splitlines() == [f"Removed 0 B from {link.parent}", said]
    assert not link.is_symlink()
    assert (disk / "ab" / "x.json").stat().st_size == 2000


@with_others
def test_root_adds_no_rows_to_the_data_of_a_user(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would be ignored from then on: the file would not be that user's."""
    give(home, SOMEBODY)

    assert main(["matrix", "--update"]) == 2

    assert "is in another user's home directory" in capsys.readouterr().err
    assert not (home / ".local").exists()
