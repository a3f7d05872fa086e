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
from ortgpu_fix.apply.history import discard_undo_data
from ortgpu_fix.apply.journaled_change import JournaledChange
from ortgpu_fix.apply.rollback import pending_recovery, recover_interrupted
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.errors import Error
from support.standin_wheels import Venv, clean_environment, find_uv, state_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills a process group")
CPU = "onnxruntime 1.22.1"
OTHER = "onnxruntime-gpu 1.31.1"
MOMENTS = ("set-aside", "half-placed", "placed")
"""After which step an apply is killed."""


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


@pytest.mark.parametrize("moment", MOMENTS)
def test_nothing_of_ours_stays_after_a_killed_change_is_undone(
    stand: Stand, tmp_path: Path, moment: str
) -> None:
    """Not the locks, nor the prefix that uv filled."""
    site = killed_apply(stand, moment)
    assert (site.stage / "tree").exists()

    done = run_here(
        *("undo", "--yes", "--python", str(stand.venv.folder)),
        cwd=tmp_path,
        env={**os.environ, "LANG": "C.UTF-8"},
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert stand.unchanged()
    assert not stand.state.exists()


@pytest.mark.parametrize("left", [(), ("lock",), ("lock", "engine.lock")])
def test_locks_that_a_killed_run_left_alone_go_with_undo(
    stand: Stand, tmp_path: Path, left: tuple[str, ...]
) -> None:
    """It was killed before it had anything to keep, or after all was removed."""
    stand.state.mkdir()
    for name in left:
        (stand.state / name).touch()

    done = run_here(
        *("undo", "--python", str(stand.venv.folder)),
        cwd=tmp_path,
        env={**os.environ, "LANG": "C.UTF-8"},
    )

    assert done.returncode == 2
    assert not stand.state.exists()
    assert stand.unchanged()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_repair_by_hand_after_a_kill_is_not_overwritten(stand: Stand, moment: str) -> None:
    site = killed_apply(stand, moment)
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
        *((moment, "uv") for moment in MOMENTS),
        pytest.param("set-aside", "pip", marks=pytest.mark.slow),
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


@pytest.mark.parametrize("text", ["mine", "", "import onnxruntime.capi  # mine\n"])
def test_a_file_that_a_user_wrote_after_a_kill_is_named(stand: Stand, text: str) -> None:
    site = killed_apply(stand, "half-placed")
    path = stand.venv.site / "onnxruntime" / "__init__.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)

    assert "__init__.py" in refusal(stand, lambda: recover_interrupted(site))


@pytest.mark.parametrize("name", ["notes.tmp", ".tmpAb3xyz", "__init__.pya1b2c3d4.tmp"])
def test_a_file_of_a_user_with_the_name_of_a_temporary_one_stays(stand: Stand, name: str) -> None:
    site = killed_apply(stand, "placed")
    mine = stand.venv.site / "onnxruntime" / name
    mine.write_text("mine")

    recover_interrupted(site)

    assert mine.read_text() == "mine"


def test_a_file_of_a_user_with_a_temporary_name_outlives_an_undo(stand: Stand) -> None:
    changed(stand)
    mine = stand.venv.site / "onnxruntime" / "notes.tmp"
    mine.write_text("mine")

    stand.undo()

    assert mine.read_text() == "mine"


def test_a_file_of_a_user_among_the_metadata_is_named(stand: Stand) -> None:
    changed(stand)
    mine = stand.venv.site / "onnxruntime_gpu-1.26.0.dist-info" / "mine.txt"
    mine.write_text("mine")

    assert refusal(stand, stand.undo).endswith("mine.txt")


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


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_apply_that_nobody_touched_is_put_back(stand: Stand, moment: str) -> None:
    site = killed_apply(stand, moment)

    assert pending_recovery(site)
    recover_interrupted(site)

    assert stand.unchanged()
    assert not (stand.state / "1").exists()


def test_a_repair_by_hand_can_be_kept(stand: Stand) -> None:
    site = killed_apply(stand, "placed")
    stand.venv.install(stand.wheels[OTHER])
    repaired = state_of(stand.venv.folder)
    with pytest.raises(Error, match="unfinished-change"):
        discard_undo_data(site)

    assert discard_undo_data(site, allow_changed=True) == 0

    assert state_of(stand.venv.folder) == repaired
    assert not stand.state.exists()


@pytest.mark.parametrize("what", ["grown", "other", "shorter"])
def test_a_file_that_changed_after_a_kill_is_not_overwritten(stand: Stand, what: str) -> None:
    site = killed_apply(stand, "placed")
    library = stand.venv.site / "onnxruntime/capi/libonnxruntime_providers_cuda.so"
    text = library.read_bytes()
    changes = {"grown": text + b"x", "other": bytes(len(text)), "shorter": text[:100]}
    library.write_bytes(changes[what])

    assert "providers_cuda" in refusal(stand, lambda: recover_interrupted(site))
    library.write_bytes(text)
    recover_interrupted(site)
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


def test_another_file_of_the_same_size_and_time_is_another(stand: Stand) -> None:
    """Files of FAT have the time of two seconds: what a user writes meanwhile looks the same."""
    site = killed_apply(stand, "set-aside")
    kept = next((stand.state / "1" / "aside").glob("*-INSTALLER"))
    info = stand.venv.site / "onnxruntime-1.22.1.dist-info"
    info.mkdir(exist_ok=True)
    (info / "INSTALLER").write_bytes(b"my"[: kept.stat().st_size])
    then = kept.stat().st_mtime_ns + 10**9
    os.utime(info / "INSTALLER", ns=(then, then))

    assert "INSTALLER" in refusal(stand, lambda: recover_interrupted(site))

    (info / "INSTALLER").write_bytes(kept.read_bytes())
    os.utime(info / "INSTALLER", ns=(then, then))
    recover_interrupted(site)
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


def test_what_was_set_aside_is_gone(stand: Stand) -> None:
    changed(stand)
    shutil.rmtree(stand.state / "1" / "aside")

    assert "onnxruntime" in refusal(stand, stand.undo, "undo-impossible")
    refusal(stand, lambda: stand.undo(allow_changed=True), "undo-impossible")
    (stand.state / "1" / "aside").mkdir()
    refusal(stand, stand.undo, "undo-impossible")


def test_one_file_of_what_was_set_aside_is_another(stand: Stand) -> None:
    changed(stand)
    next((stand.state / "1" / "aside").glob("*-__init__.py")).write_text("another")

    assert "__init__.py" in refusal(stand, stand.undo, "undo-impossible")


def test_a_folder_that_is_a_link_now(stand: Stand, tmp_path: Path) -> None:
    """Everything in it would be put back, and taken out, somewhere else."""
    changed(stand)
    shutil.move(stand.venv.site / "onnxruntime", tmp_path / "elsewhere")
    (stand.venv.site / "onnxruntime").symlink_to(tmp_path / "elsewhere")
    elsewhere = state_of(tmp_path / "elsewhere")

    refusal(stand, lambda: stand.undo(allow_changed=True), "undo-impossible")
    assert state_of(tmp_path / "elsewhere") == elsewhere


@pytest.mark.parametrize("what", ["deleted", "edited", "link", "folder"])
def test_a_file_of_the_change_that_somebody_changed(stand: Stand, what: str) -> None:
    changed(stand)
    path = stand.venv.site / "onnxruntime" / "__init__.py"
    path.unlink()
    if what == "edited":
        path.write_text("mine")
    elif what == "link":
        path.symlink_to("capi")
    elif what == "folder":
        path.mkdir()

    assert refusal(stand, stand.undo) == str(Path("onnxruntime", "__init__.py"))

    stand.undo(allow_changed=True)
    assert stand.unchanged()


def test_a_file_that_was_written_again_with_the_same_bytes_is_no_difference(stand: Stand) -> None:
    changed(stand)
    path = stand.venv.site / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9"
    path.write_bytes(path.read_bytes())
    os.utime(path, (1, 1))

    stand.undo()

    assert stand.unchanged()


def test_something_in_a_place_that_becomes_taken_again(stand: Stand) -> None:
    changed(stand)
    path = stand.venv.site / "onnxruntime-1.22.1.dist-info"
    path.write_text("mine")

    assert path.name in refusal(stand, stand.undo)
    path.unlink()
    path.mkdir()
    (path / "METADATA").write_text("mine")
    assert "METADATA" in refusal(stand, stand.undo)
    stand.undo(allow_changed=True)
    assert stand.unchanged()


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


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_disk_that_fills_before_the_roll_back(
    stand: Stand, mounted: Callable[..., Path], tmp_path: Path, kind: str
) -> None:
    """Neither space nor inodes are left when the verification says no."""
    if kind == "ext4":
        image = tmp_path / "image"
        with image.open("wb") as file:
            file.truncate(96 << 20)
        made = shutil.which("mkfs.ext4")
        if made is None:
            pytest.skip("needs mkfs.ext4")
        subprocess.run([made, "-q", "-N", "4000", image], check=True)
        disk = mounted("-o", "loop", str(image))
    else:
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
@pytest.mark.parametrize("event", ["exception", "return", "line", "call"])
def test_two_signals_in_quick_succession(stand: Stand, event: str) -> None:
    """The second comes at one of the next events after the first, wherever that is."""
    stand.have(CPU)
    plan = stand.plan(GOOD, uninstall=("onnxruntime",))
    left = [event]

    def traced(frame: FrameType, what: str, _: object) -> Any:
        if left and what == event and frame.f_code.co_filename.endswith("swap.py"):
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

    assert error.code == "apply-interrupted"


def test_the_reader_of_what_is_said_is_gone(stand: Stand) -> None:
    stand.have(CPU)
    plan = stand.plan(GOOD, uninstall=("onnxruntime",))

    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError

    assert stand.fails(plan, progress=quiet_until("verify", broken)).code == "apply-interrupted"


def quiet_until(code: str, act: Callable[[], None]) -> Callable[..., None]:
    """Return a progress that does nothing until `code`, and then always what `act` does."""
    began: list[str] = []

    def progress(now: str, /, **_: object) -> None:
        if now == code or began:
            began.append(now)
            act()

    return progress


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
