"""Files of the user's project change with the environment: in one change, which goes back whole."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from ortgpu_fix.apply.before_change import check_files_unchanged
from ortgpu_fix.apply.journal import Begin
from ortgpu_fix.apply.journaled_change import Incoming, JournaledChange
from ortgpu_fix.apply.rollback import recover_interrupted, undo_last
from ortgpu_fix.apply.state_folder import Site, prepare_state_folder
from ortgpu_fix.errors import Error
from ortgpu_fix.project.model import FileChange

BEFORE, AFTER, EDITED = b"before\n", b"after\n", b"edited\n"
WHEEL = "onnxruntime-1.26.0+ortgpu-py3-none-any.whl"
KILLED = 9


class Place(NamedTuple):
    """An environment with one module, beside the project that it belongs to."""

    root: Path
    site: Site

    @property
    def pyproject(self) -> Path:
        return self.root / "pyproject.toml"

    @property
    def module(self) -> Path:
        return Path(self.site.purelib, "a.py")

    def state(self) -> dict[str, bytes]:
        """Return every file but ours."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files if ".ortgpu-fix" not in path.parts}

    def change(self) -> None:
        """Replace the module and the project's file, and add a wheel to it."""
        stage = self.site.stage
        stage.mkdir(parents=True)
        goals = [self.module, self.pyproject, self.root / "gpu-wheels" / WHEEL]
        incoming = []
        for at, goal in enumerate(goals):
            (stage / str(at)).write_bytes(AFTER)
            digest = hashlib.sha256(AFTER).hexdigest()
            incoming.append(Incoming(str(goal), str(stage / str(at)), digest))
        change = JournaledChange(self.site)
        files = tuple(self.site.relative(str(goal)) for goal in goals[1:])
        change.begin(Begin(plan="x", removed=(), installed=(), present=(), files=files))
        own = [str(self.pyproject)]
        change.back_up([str(self.module), *own], copied=own)
        change.place(incoming, (), [str(goals[2].parent)])
        change.commit()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = tmp_path.resolve() / "app"
    purelib = root / ".venv/lib/site-packages"
    purelib.mkdir(parents=True)
    (root / ".venv/bin").mkdir()
    folders = (purelib, purelib, root / ".venv/bin", root / ".venv")
    made = Place(root, Site(*map(str, folders)))
    made.module.write_bytes(BEFORE)
    made.pyproject.write_bytes(BEFORE)
    prepare_state_folder(made.site)
    return made


def killed_at(place: Place, step: int) -> bool:
    """Change it in another process, which is killed before its `step`; tell whether it was."""
    child = os.fork()
    if child == 0:
        left = [step]

        def counted(function: Callable[..., None]) -> Callable[..., None]:
            def call(*words: object) -> None:
                if left[0] == 0:
                    os._exit(KILLED)
                left[0] -= 1
                function(*words)

            return call

        for name in ("fsync", "replace", "rename"):
            setattr(os, name, counted(getattr(os, name)))
        try:
            place.change()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("edit", [False, True])
@pytest.mark.parametrize("step", range(2, 39, 4))
def test_a_kill_at_any_step_loses_nothing_of_the_project(
    place: Place,
    step: int,
    edit: bool,  # noqa: FBT001
) -> None:
    before = place.state()
    if not killed_at(place, step):
        assert place.pyproject.read_bytes() == AFTER
        undo_last(place.site, ())
        assert place.state() == before
        return
    assert place.pyproject.read_bytes() in {BEFORE, AFTER}  # it is never away
    if edit:
        place.pyproject.write_bytes(EDITED)
        try:
            recover_interrupted(place.site)
        except Error as error:
            said = error.code, "pyproject.toml" in str(error.values["names"])
            assert said == ("undo-changed", True)
        assert place.pyproject.read_bytes() == EDITED
        return
    recover_interrupted(place.site)
    if place.module.read_bytes() == AFTER:  # all was done
        assert place.pyproject.read_bytes() == AFTER
        assert (place.root / "gpu-wheels" / WHEEL).read_bytes() == AFTER
        undo_last(place.site, ())
    assert place.state() == before
    assert not (place.root / "gpu-wheels").exists()


def test_the_whole_change_takes_fewer_steps_than_were_tried(place: Place) -> None:
    assert not killed_at(place, 38)


def test_a_journal_may_not_name_other_files_of_the_user(place: Place) -> None:
    secret = place.root / "id_rsa"
    secret.write_bytes(BEFORE)
    change = JournaledChange(place.site)
    named = (place.site.relative(str(secret)),)
    change.begin(Begin(plan="x", removed=(), installed=(), present=(), files=named))
    change.back_up([str(secret)], copied=[str(secret)])
    with pytest.raises(Error) as caught:
        recover_interrupted(place.site)
    assert caught.value.code == "journal-outside"
    assert secret.read_bytes() == BEFORE


def test_a_pipfile_of_an_environment_elsewhere_goes_back(tmp_path: Path) -> None:
    """Pipenv keeps its environments in a directory of its own."""
    pipfile = tmp_path.resolve() / "app/Pipfile"
    pipfile.parent.mkdir()
    pipfile.write_bytes(BEFORE)
    purelib = tmp_path.resolve() / "virtualenvs/app-1234/lib/site-packages"
    purelib.mkdir(parents=True)
    site = Site(*map(str, (purelib, purelib, purelib.parents[1], purelib.parents[1])))
    prepare_state_folder(site)
    site.stage.mkdir(parents=True)
    (site.stage / "0").write_bytes(AFTER)
    change = JournaledChange(site)
    files = (site.relative(str(pipfile)),)
    change.begin(Begin(plan="x", removed=(), installed=(), present=(), files=files))
    change.back_up([str(pipfile)], copied=[str(pipfile)])
    digest = hashlib.sha256(AFTER).hexdigest()
    change.place([Incoming(str(pipfile), str(site.stage / "0"), digest)], (), [])
    change.commit()
    assert pipfile.read_bytes() == AFTER

    undo_last(site, ())
    assert pipfile.read_bytes() == BEFORE


def test_a_file_that_is_not_as_it_was_read_stops_the_change(place: Place) -> None:
    check_files_unchanged([FileChange(place.pyproject, BEFORE, AFTER)])
    check_files_unchanged([FileChange(place.root / "gpu-wheels" / WHEEL, None, AFTER)])
    for before in (EDITED, None):
        with pytest.raises(Error) as caught:
            check_files_unchanged([FileChange(place.pyproject, before, AFTER)])
        assert caught.value.code == "file-changed"
