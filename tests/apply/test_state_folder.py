"""The state folder names files to move and to delete: nothing in it is followed elsewhere."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ortgpu_fix.apply import environment_lock, state_folder
from ortgpu_fix.apply.environment_lock import hold_environment_lock
from ortgpu_fix.apply.history import discard_undo_data, history_summary
from ortgpu_fix.apply.journal import Begin
from ortgpu_fix.apply.journaled_change import Incoming, JournaledChange
from ortgpu_fix.apply.rollback import discard_stage, recover_interrupted, undo_last
from ortgpu_fix.apply.state_folder import Site, check_state_folder, prepare_state_folder
from ortgpu_fix.errors import Error
from support.standin_wheels import state_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and owners of Unix")


class Changed:
    """A folder like an environment, after a change of one file that was committed."""

    def __init__(self, folder: Path) -> None:
        purelib = folder / "lib" / "python3.11" / "site-packages"
        (folder / "bin").mkdir(parents=True)
        purelib.mkdir(parents=True)
        (purelib / "a.py").write_text("a = 1")
        self.folder, self.before = folder, state_of(folder)
        self.site = Site(
            purelib=str(purelib),
            platlib=str(purelib),
            scripts=str(folder / "bin"),
            prefix=str(folder),
        )
        self.state = self.site.state
        prepare_state_folder(self.site)
        change = JournaledChange(self.site)
        change.begin(Begin(plan="b 1", removed=("a",), installed=(("b", "1"),), present=()))
        change.back_up([str(purelib / "a.py")])
        source = self.state / "b.py"
        source.write_text("b = 1")
        change.place([Incoming(str(purelib / "b.py"), str(source), "")], [])
        change.commit()

    def undo(self, *, allow_changed: bool = False) -> None:
        undo_last(self.site, [("b", "1")], allow_changed=allow_changed)

    def unchanged(self) -> bool:
        return state_of(self.folder) == self.before


@pytest.fixture
def changed(tmp_path: Path) -> Changed:
    return Changed(tmp_path / "venv")


def refused(changed: Changed, outside: Path, code: str) -> Error:
    """Everything that reads the state must end in the Error `code`, with nothing changed."""
    site = changed.site
    before, other = state_of(changed.folder), state_of(outside)
    acts: list[Callable[[], object]] = [
        lambda: recover_interrupted(site),
        lambda: discard_undo_data(site, allow_changed=True),
        lambda: changed.undo(allow_changed=True),
    ]
    for act in acts:
        with pytest.raises(Error, match=code):
            act()
        assert state_of(changed.folder) == before
        assert state_of(outside) == other
    assert history_summary(site, ())[0] == "unfinished"
    with pytest.raises(Error) as caught:
        changed.undo()
    assert state_of(changed.folder) == before
    return caught.value


@pytest.mark.parametrize(
    "name",
    [".", "lock", "stage", "1", "1/journal", "1/aside"],
)
def test_a_link_is_not_followed(changed: Changed, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    path = changed.state if name == "." else changed.state / name
    if path.exists():
        path.rename(outside / "moved")
    else:
        (outside / "moved").write_text("precious")
    path.symlink_to(outside / "moved")

    error = refused(changed, outside, "state-refused")

    assert Path(str(error.values["path"])).name == path.name
    assert error.values["why"] == "link"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("name", [".", "1/journal"])
def test_what_belongs_to_somebody_else_is_not_used(
    changed: Changed, tmp_path: Path, name: str
) -> None:
    (tmp_path / "outside").mkdir()
    os.chown(changed.state / name, 4321, 4321)

    error = refused(changed, tmp_path / "outside", "state-refused")

    assert error.values["why"] == 4321


PLANTED = [
    "/{outside}/precious",
    "../../../../outside/precious",
    "./onnxruntime/__init__.py",
    ".ortgpu-fix/1/journal",
    "",
]


@pytest.mark.parametrize("path", PLANTED)
@pytest.mark.parametrize("step", ["aside", "emptied", "created", "whole", "folders"])
def test_a_path_outside_is_not_touched(
    changed: Changed, tmp_path: Path, path: str, step: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    path = path.format(outside=outside)
    journal = changed.state / "1" / "journal"
    rows = {
        "aside": {
            "step": "aside",
            "moves": [[path, "000000-__init__.py"]],
            "seen": [["file", 1, 2]],
        },
        "emptied": {"step": "emptied", "folders": [[path, 0o777]], "names": ["folder-0"]},
    }
    if step in rows:
        line = f"\n{json.dumps(rows[step])}\n"
        journal.write_text(journal.read_text() + line)
    else:
        lines = [json.loads(line) for line in journal.read_text().splitlines() if line]
        for row in lines:
            if row["step"] == "install":
                row |= {step: [path]}
                if step == "created":
                    row |= {"sizes": [1], "hashes": [""]}
        journal.write_text("".join(f"\n{json.dumps(row)}\n" for row in lines))

    error = refused(changed, outside, "journal-outside")

    assert error.values["path"] == path


def test_a_filesystem_without_locks(changed: Changed, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_: int) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(environment_lock, "_try_lock", no_locks)
    with (
        pytest.raises(Error, match="No locks available"),
        hold_environment_lock(changed.site),
    ):
        pass


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="Linux has files without a name")
@pytest.mark.parametrize("number", [errno.EISDIR, errno.EROFS])
def test_a_filesystem_without_nameless_files_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """EISDIR is what kernels before 3.11 and some filesystems say. Source: open(2)."""
    opened = os.open

    def without(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(number, os.strerror(number))
        return opened(path, flags, mode, **more)

    folder = str(tmp_path)
    site = Site(purelib=folder, platlib=folder, scripts=folder, prefix=folder)
    monkeypatch.setattr(os, "open", without)
    if number == errno.EROFS:
        with pytest.raises(Error, match="environment-read-only"):
            prepare_state_folder(site)
        return
    prepare_state_folder(site)

    assert [path.name for path in tmp_path.iterdir()] == [site.state.name]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize(("owner", "trusted"), [(4321, True), (88, True), (77, False)])
def test_whose_state_folder_is_trusted(
    changed: Changed, monkeypatch: pytest.MonkeyPatch, owner: int, *, trusted: bool
) -> None:
    """Root's, one's own, and that of whom the environment belongs to."""
    os.chown(changed.site.purelib, 88, 88)
    for path in [changed.state, *changed.state.rglob("*")]:
        os.chown(path, owner, owner)
    monkeypatch.setattr(state_folder, "_own_user", lambda: 4321)

    if trusted:
        assert check_state_folder(changed.site)
    else:
        with pytest.raises(Error, match="state-refused"):
            check_state_folder(changed.site)


@pytest.mark.parametrize("name", ["stage/tree", "stage/uv"])
def test_a_link_below_the_staging_folder_is_refused_and_not_followed(
    name: str, changed: Changed, tmp_path: Path
) -> None:
    """Where it led to a folder of documents, an apply deleted the file in there."""
    documents = tmp_path / "docs"
    documents.mkdir()
    (documents / "only.txt").write_text("mine")
    planted = changed.state / name
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.symlink_to(documents)

    for act in (check_state_folder, prepare_state_folder, discard_undo_data):
        with pytest.raises(Error, match="state-refused"):
            act(changed.site)
    with pytest.raises(Error, match="state-refused"):
        discard_stage(changed.site)
    with pytest.raises(Error, match="state-refused"):
        changed.undo()
    assert (documents / "only.txt").read_text() == "mine"
    assert planted.is_symlink()


@pytest.mark.parametrize("name", ["1/journal", "lock"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(name: str, changed: Changed) -> None:
    """`--check`, the plan and undo hung for ever."""
    file = changed.state / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    os.mkfifo(file)

    assert history_summary(changed.site, [])[0] == "unfinished"
    with pytest.raises(Error) as caught:
        changed.undo()

    assert caught.value.values == {"path": file, "why": "no file"}


def test_a_lock_that_shares_its_file_is_made_anew(changed: Changed, tmp_path: Path) -> None:
    """An archive keeps hard links: a document that was called `lock`, too, was written over."""
    document = tmp_path / "document"
    document.write_text("mine")
    lock = changed.state / "lock"
    lock.unlink(missing_ok=True)
    lock.hardlink_to(document)

    with hold_environment_lock(changed.site):
        assert json.loads(lock.read_text())["pid"] == os.getpid()
        with pytest.raises(Error, match="environment-locked"):
            changed.undo()
    changed.undo()

    assert document.read_text() == "mine"
    assert changed.unchanged()


def test_a_copy_of_an_environment_that_shares_its_files_keeps_its_journal(
    changed: Changed, tmp_path: Path
) -> None:
    """`cp -al`: the undo of one was noted in the journal of the other."""
    copy = tmp_path / "copy"
    shutil.copytree(changed.folder, copy, copy_function=os.link)
    before = state_of(copy)

    changed.undo()

    assert changed.unchanged()
    assert state_of(copy) == before


@pytest.mark.parametrize("name", ["²", "0000000007"])
def test_a_folder_that_is_no_change_is_not_counted(changed: Changed, name: str) -> None:
    """What came after it ended in an internal error, or could not be undone."""
    (changed.state / name).mkdir()

    assert JournaledChange(changed.site).number == 2


def test_a_change_that_could_not_be_found_again_is_not_begun(changed: Changed) -> None:
    (changed.state / "999999998").mkdir()
    assert JournaledChange(changed.site).number == 999_999_999
    (changed.state / "999999999").mkdir()

    with pytest.raises(Error) as caught:
        JournaledChange(changed.site)

    path = changed.state / "999999999"
    assert caught.value.code == "state-refused"
    assert caught.value.values == {"path": path, "why": 999_999_999}
