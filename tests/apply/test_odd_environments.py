"""What an environment may hold, and what may happen to it, that nobody would think of."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path

import pytest
from stand import CUDA, Stand

from ortgpu_fix.apply.journaled_change import move
from ortgpu_fix.apply.rollback import recover_interrupted
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.errors import Error
from ortgpu_fix.messages.catalog import load_texts
from support.standin_wheels import state_of

LONG = "\N{ROCKET}" * 63 + ".py"
"""255 bytes, and 66 characters."""


def listed(stand: Stand, *rows: str) -> None:
    """Have the CPU build, with more rows in its RECORD."""
    stand.have("onnxruntime 1.22.1")
    [record] = stand.venv.site.glob("onnxruntime-1.22.1.dist-info/RECORD")
    record.write_text("".join([record.read_text(), *(f'"{row}",,\n' for row in rows)]))
    stand.before = state_of(stand.venv.folder)


def test_what_a_record_says_of_our_own_files_or_of_python_moves_none_of_them(stand: Stand) -> None:
    """An apply moved its own lock away, and neither its roll back nor an undo worked any more."""
    (stand.venv.site / "here").symlink_to(".ortgpu-fix")
    listed(stand, "here/lock")
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))

    assert stand.fails(plan, verify=lambda: (False, "no")).code == "verify-failed"
    stand.apply(plan)
    assert stand.venv.python.exists()
    stand.undo()

    assert stand.unchanged()


def test_an_environment_that_is_renamed_while_it_is_verified_is_not_said_to_be_as_before(
    stand: Stand, tmp_path: Path
) -> None:
    """What a roll back needs has gone with it, and is used at its new place."""
    stand.have("onnxruntime 1.22.1")
    before, there = state_of(stand.venv.folder), tmp_path / "renamed"

    def verify() -> tuple[bool, str]:
        stand.venv.folder.rename(there)
        return False, "no"

    with pytest.raises(Error) as caught:
        stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)), verify=verify)

    told = load_texts("en").error(caught.value)
    assert (told.code, told.exit_code) == ("restore-moved", 5)
    assert str(stand.venv.folder) in told.text
    assert not stand.venv.folder.exists()
    [purelib] = map(str, there.glob("lib/python*/site-packages"))
    recover_interrupted(Site(purelib, purelib, str(there / "bin"), str(there)))
    assert state_of(there) == before


def test_an_environment_that_is_renamed_while_it_is_put_back_is_put_back_at_its_new_place(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand.have("onnxruntime 1.22.1")
    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)))
    moved: list[str] = []

    def going(source: str, goal: str) -> None:
        move(source, goal)
        moved.append(goal)
        if len(moved) == 20:
            stand.venv.folder.rename(tmp_path / "renamed")

    with monkeypatch.context() as patch:
        patch.setattr("ortgpu_fix.apply.rollback.move", going)
        with pytest.raises(Error, match="restore-moved"):
            stand.undo()
    [purelib] = map(str, (tmp_path / "renamed").glob("lib/python*/site-packages"))
    there = str(tmp_path / "renamed")
    recover_interrupted(Site(purelib, purelib, f"{there}/bin", there))

    (tmp_path / "renamed").rename(stand.venv.folder)
    assert stand.unchanged()


def test_state_that_is_removed_while_it_is_verified_is_told(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1")

    def verify() -> tuple[bool, str]:
        shutil.rmtree(stand.state)
        return True, "no"

    with pytest.raises(Error) as caught:
        stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)), verify=verify)

    told = load_texts("en").error(caught.value)
    assert (told.code, told.exit_code) == ("restore-lost", 5)
    assert "onnxruntime" not in stand.names(), "nothing was put back"
    assert not list(stand.state.glob("*/journal")), "none is made without its beginning"


def test_a_backup_that_goes_while_it_is_put_back_is_not_said_to_be_back(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is neither here nor there was taken for one that had been put back."""
    stand.have("onnxruntime 1.22.1")
    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)))

    def going(source: str, goal: str) -> None:
        move(source, goal)
        if not goal.startswith(str(stand.state)):
            shutil.rmtree(stand.state / "1" / "aside")

    monkeypatch.setattr("ortgpu_fix.apply.rollback.move", going)

    with pytest.raises(Error) as caught:
        stand.undo()

    assert caught.value.code == "restore-failed"


@pytest.mark.skipif(sys.platform == "win32", reason="counts units of UTF-16")
def test_a_name_of_255_bytes_is_copied_to_another_filesystem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").write_text("mine")
    real = os.replace

    def elsewhere(source: str, goal: str) -> None:
        if source.endswith("one"):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        real(source, goal)

    monkeypatch.setattr("ortgpu_fix.apply.journaled_change.os.replace", elsewhere)
    move(str(tmp_path / "one"), str(tmp_path / LONG))

    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(LONG, "mine")]
