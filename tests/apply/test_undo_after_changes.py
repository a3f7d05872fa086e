"""What somebody changed between a change and its roll back is seen before anything is moved."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from command import run_here
from stand import CUDA, GOOD, HANG_UP, Stand

from ortgpu_fix.apply import journaled_change
from ortgpu_fix.apply.journaled_change import JournaledChange
from ortgpu_fix.apply.rollback import recover_interrupted
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.errors import Error
from support.standin_wheels import Venv, clean_environment, find_uv, state_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills a process group")
CPU = "onnxruntime 1.22.1"
OTHER = "onnxruntime-gpu 1.31.1"


def killed_apply(stand: Stand, moment: str) -> Site:
    """Begin an apply that is killed, as by SIGKILL, at the `moment`."""
    stand.have(CPU)
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))
    target, uv = stand.venv.target(), stand.uv()
    child = os.fork()
    if child == 0:
        set_to_die(moment)
        with contextlib.suppress(BaseException):
            stand.apply(plan, target=target, uv=uv)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    return Site.of(target)


def set_to_die(moment: str) -> None:
    """Let this process kill itself at the `moment` of an apply."""

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    place, move, left = JournaledChange.place, journaled_change.move, [6]

    def counting(source: str, goal: str) -> None:
        left[0] -= 1
        move(source, goal) if left[0] else die()

    def half(*arguments: Any) -> None:
        vars(journaled_change)["move"] = counting
        place(*arguments)

    if moment == "placed":
        JournaledChange.commit = die  # type: ignore[method-assign]
    else:
        JournaledChange.place = half if moment == "half-placed" else die  # type: ignore[assignment,method-assign]


def refusal(stand: Stand, act: Callable[[], object], code: str = "undo-changed") -> str:
    """Return what `act` names when it refuses; the environment must be as it was."""
    before = state_of(stand.venv.folder)
    with pytest.raises(Error) as caught:
        act()
    assert caught.value.code == code
    assert state_of(stand.venv.folder) == before
    return str(caught.value.values.get("names") or caught.value.values["paths"])


def test_nothing_of_ours_stays_after_a_killed_change_is_undone(
    stand: Stand, tmp_path: Path
) -> None:
    """Not the locks, nor the prefix that uv filled."""
    site = killed_apply(stand, "half-placed")
    assert (site.stage / "tree").exists()

    done = run_here(
        *("undo", "--yes", "--python", str(stand.venv.folder)),
        cwd=tmp_path,
        env={**os.environ, "LANG": "C.UTF-8"},
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert stand.unchanged()
    assert not stand.state.exists()


def test_locks_that_a_killed_run_left_alone_go_with_undo(stand: Stand, tmp_path: Path) -> None:
    """It was killed before it had anything to keep, or after all was removed."""
    stand.state.mkdir()
    for name in ("lock", "engine.lock"):
        (stand.state / name).touch()

    done = run_here(
        *("undo", "--python", str(stand.venv.folder)),
        cwd=tmp_path,
        env={**os.environ, "LANG": "C.UTF-8"},
    )

    assert done.returncode == 2
    assert not stand.state.exists()
    assert stand.unchanged()


def test_a_repair_by_hand_after_a_kill_is_not_overwritten(stand: Stand) -> None:
    site = killed_apply(stand, "half-placed")
    shutil.rmtree(stand.venv.site / "onnxruntime", ignore_errors=True)
    stand.venv.install(stand.wheels[OTHER])

    named = refusal(stand, lambda: recover_interrupted(site))

    assert named.startswith("onnxruntime_gpu-1.31.1.dist-info")
    recover_interrupted(site, allow_changed=True)
    assert stand.names() == {"onnxruntime": "1.22.1"}
    now = state_of(stand.venv.folder)
    assert now.items() >= stand.before.items()
    # A uv that came by in between leaves its lock, and a folder without files.
    assert {Path(path).name for path in now.keys() - stand.before} <= {
        ".lock",
        "onnxruntime_gpu.libs",
    }


@pytest.mark.parametrize(
    ("moment", "tool"),  # pip touches nothing that has no RECORD, and half-way there is none
    [
        ("half-placed", "uv"),
        pytest.param("placed", "pip", marks=pytest.mark.slow),
    ],
)
def test_the_same_release_that_a_user_installs_again_after_a_kill_is_kept(
    stand: Stand, moment: str, tool: str
) -> None:
    """Its bytes are those that were to come, but for what the tool itself writes."""
    site = killed_apply(stand, moment)
    python = ["--python", str(stand.venv.python)]
    argv = [sys.executable, "-m", "pip", *python, "install"]
    if tool == "uv":
        argv = [find_uv(), "pip", "install", "--offline", "--no-config", *python]
    argv += ["-q", "--no-index", "--no-deps", "--force-reinstall", str(stand.wheels[GOOD])]
    subprocess.run(argv, check=True, env=clean_environment())

    assert "onnxruntime_gpu-1.26.0.dist-info" in refusal(stand, lambda: recover_interrupted(site))

    recover_interrupted(site, allow_changed=True)
    assert stand.names() == {"onnxruntime": "1.22.1"}


def test_a_file_of_a_user_with_the_name_of_a_temporary_one_stays(stand: Stand) -> None:
    site = killed_apply(stand, "placed")
    mine = stand.venv.site / "onnxruntime" / "__init__.pya1b2c3d4.tmp"
    mine.write_text("mine")

    recover_interrupted(site)

    assert mine.read_text() == "mine"


def test_what_came_later_takes_nothing_of_others_with_it(stand: Stand) -> None:
    """Its RECORD names files of another distribution, and the Python of the environment."""
    stand.have(CPU, "bystander 1.0")
    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)))
    info = stand.venv.site / "late-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1.0\n")
    (stand.venv.site / "onnxruntime" / "late.py").touch()
    rows = ["onnxruntime/late.py", "bystander/__init__.py", "../../../bin/python"]
    rows += ["../../../pyvenv.cfg", "late-1.0.dist-info/METADATA", "late-1.0.dist-info/RECORD"]
    (info / "RECORD").write_text("".join(f"{row},,\n" for row in rows))
    assert refusal(stand, stand.undo).startswith("late-1.0.dist-info")

    stand.undo(allow_changed=True)

    assert stand.unchanged()


def changed(stand: Stand) -> None:
    stand.have(CPU)
    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)))


def test_another_build_in_the_shared_folder(stand: Stand) -> None:
    stand.have(OTHER)
    stand.apply(stand.plan(*CUDA))
    stand.venv.install(stand.wheels[CPU])

    assert refusal(stand, stand.undo).startswith("onnxruntime-1.22.1.dist-info")

    stand.undo(allow_changed=True)
    assert stand.unchanged()


def test_a_signal_before_the_first_step_has_changed_nothing(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no folder of the change yet: nothing is to be put back, and nothing failed."""
    stand.have(CPU)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(JournaledChange, "begin", interrupted)
    plan = stand.plan(GOOD, uninstall=("onnxruntime",))

    assert stand.fails(plan).code == "apply-interrupted"


def test_what_a_distribution_that_came_later_shares_stays(stand: Stand) -> None:
    changed(stand)
    stand.venv.install(stand.wheels["nvidia-curand-cu12 12.9.2.10"])

    stand.undo()

    assert (stand.venv.site / "nvidia" / "__init__.py").exists()
    assert stand.names() == {"onnxruntime": "1.22.1", "nvidia-curand-cu12": "12.9.2.10"}


def test_something_else_changes_the_environment_during_a_change_that_fails(stand: Stand) -> None:
    stand.have(CPU)
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))

    def other_tool() -> tuple[bool, str]:
        stand.venv.install(stand.wheels[OTHER])
        return False, "no"

    with pytest.raises(Error) as caught:
        stand.apply(plan, verify=other_tool)

    assert caught.value.code == "restore-changed"
    names = str(caught.value.values["names"]).split(", ")
    assert "onnxruntime_gpu-1.31.1.dist-info" in names
    assert all(" " not in name for name in names)
    recover_interrupted(Site.of(stand.venv.target()), allow_changed=True)
    assert stand.unchanged()


def fill(folder: Path) -> None:
    """Leave neither a block nor an inode in the filesystem of `folder`."""
    with (folder / "ballast").open("wb", buffering=0) as file:
        for piece in (1 << 20, 1 << 12):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(piece))
    with contextlib.suppress(OSError):
        for number in range(1 << 20):
            os.mknod(folder / f"ballast-{number}")


def test_a_disk_that_fills_before_the_roll_back(stand: Stand, mounted: Callable[..., Path]) -> None:
    """Neither space nor inodes are left when the verification says no."""
    disk = mounted("-t", "tmpfs", "-o", "size=96m,nr_inodes=4000", "tmpfs")
    shutil.copytree(stand.venv.folder, disk / "venv", symlinks=True)
    stand.venv = Venv(folder=disk / "venv")
    stand.have(CPU)
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))

    def full() -> tuple[bool, str]:
        fill(disk)
        return False, "no"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ortgpu_fix.apply.staging._need", lambda *_: None)
        error = stand.fails(plan, verify=full)

    assert error.code == "verify-failed"


@pytest.mark.untraced
@pytest.mark.usefixtures("heard")
def test_two_signals_in_quick_succession(stand: Stand) -> None:
    """The second comes at one of the next events after the first, wherever that is."""
    stand.have(CPU)
    plan = stand.plan(GOOD, uninstall=("onnxruntime",))
    left = [True]

    def traced(frame: FrameType, what: str, _: object) -> Any:
        if left and what == "line" and frame.f_code.co_filename.endswith("apply_plan.py"):
            left.clear()
            os.kill(os.getpid(), HANG_UP)
        return traced

    def signalled() -> tuple[bool, str]:
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            frame.f_trace = traced
            frame = frame.f_back
        sys.settrace(traced)
        os.kill(os.getpid(), signal.SIGTERM)
        return True, ""

    try:
        error = stand.fails(plan, verify=signalled)
    finally:
        sys.settrace(None)

    assert (error.code, left) == ("apply-interrupted", [])


def test_a_defect_in_the_roll_back_is_told_as_one_that_failed(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand.have(CPU)
    plan = stand.plan(GOOD, uninstall=("onnxruntime",))

    def defect(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ortgpu_fix.apply.undo_check.compare", defect)
    with pytest.raises(Error) as caught:
        stand.apply(plan, verify=lambda: (False, "no"))
    assert caught.value.code == "restore-failed"
    monkeypatch.undo()
    recover_interrupted(Site.of(stand.venv.target()))
    assert stand.unchanged()


def test_a_folder_comes_back_where_the_one_around_it_went_with_a_newcomer(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else wrote into the outer folder when it was emptied: it stood, the inner went."""
    stand.have(CPU)
    late = stand.venv.site / "onnxruntime" / "late.py"
    emptied_folders: Callable[..., set[str]] = vars(journaled_change)["emptied_folders"]

    def meanwhile(*given: Any) -> set[str]:
        late.touch()
        return emptied_folders(*given)

    with monkeypatch.context() as patched:
        patched.setattr(journaled_change, "emptied_folders", meanwhile)
        stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)))
    late.unlink()
    stand.venv.install(stand.wheels[OTHER])

    refusal(stand, stand.undo)
    stand.undo(allow_changed=True)

    now = state_of(stand.venv.folder)
    assert {path for path, what in stand.before.items() if now.get(path) != what} == set()
