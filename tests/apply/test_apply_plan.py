"""Applying plans to real environments, with real uv, on stand-in wheels."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from stand import CUDA, GOOD, HANG_UP, REQUIRES, Stand

from ortgpu_fix.apply.apply_plan import Applied, apply
from ortgpu_fix.apply.before_change import Allowed
from ortgpu_fix.apply.chosen_wheels import ChosenWheel
from ortgpu_fix.apply.files_to_remove import installed_in_site
from ortgpu_fix.apply.history import history_summary, recorded_changes
from ortgpu_fix.apply.state_folder import Site, size_of
from ortgpu_fix.companions.build import library_wheel, placeholder_wheel
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import Target
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.matrix.load import companion_modules
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.utils.progress import silent
from support.local_index import Fault, LocalIndex, make_wheel
from support.standin_wheels import (
    Venv,
    clean_environment,
    find_uv,
    state_of,
)


def code_of(stand: Stand, plan: Plan, **changes: object) -> Error:
    with pytest.raises(Error) as caught:
        stand.apply(plan, **changes)
    return caught.value


def test_from_the_cpu_build_and_back(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1", "bystander 1.0", "nvidia-curand-cu12 12.9.2.10")
    bystander = state_of(stand.venv.site / "bystander")
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",), requires=REQUIRES)

    done = stand.apply(plan)

    target = stand.venv.target()
    assert target.build is not None
    assert (target.build.distribution, target.build.intact) == ("onnxruntime-gpu", True)
    assert stand.names().keys() >= {"onnxruntime-gpu", "nvidia-cudnn-cu12", "flatbuffers"}
    assert "onnxruntime" not in stand.names()
    assert dict(done.installed)["onnxruntime-gpu"] == "1.26.0"
    assert done.untidy == 0
    assert state_of(stand.venv.site / "bystander") == bystander
    assert not (stand.state / "stage").exists()
    assert not list(stand.venv.site.glob("onnxruntime*/direct_url.json"))
    assert not (stand.venv.site / "nvidia_cublas_cu12-12.9.2.10.dist-info/direct_url.json").exists()

    stand.undo()

    assert stand.unchanged()
    assert not stand.state.exists()


def test_from_another_state(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1", "onnxruntime-gpu 1.31.1")
    plan = stand.plan(*CUDA, uninstall=("onnxruntime", "nvidia-cudnn-cu13"))

    stand.apply(plan)

    target = stand.venv.target()
    assert target.build is not None
    assert target.build.intact
    assert sorted(stand.names()) == sorted(name.split()[0] for name in CUDA)
    assert [one.missing for one in target.installed] == [0, 0, 0]
    stand.undo()
    assert stand.unchanged()


def test_a_gutted_folder_with_leftovers(stand: Stand) -> None:
    stand.have("onnxruntime-gpu 1.26.0")
    shared = stand.venv.site / "onnxruntime"
    (shared / "__init__.py").unlink()
    (shared / "old").mkdir(mode=0o700)
    (shared / "old" / "left.so").write_text("over")
    (shared / "old" / "left.so").chmod(0o640)
    (shared / "link").symlink_to("old")
    (shared / "capi" / "__pycache__").mkdir()
    (shared / "capi" / "__pycache__" / "gone.cpython-311.pyc").write_text("x")
    stand.before = state_of(stand.venv.folder)

    stand.apply(stand.plan(GOOD))

    assert not (shared / "old").exists()
    assert not (shared / "link").is_symlink()
    stand.undo()
    assert stand.unchanged()


def test_bytecode_that_an_application_left_since_is_no_change(stand: Stand) -> None:
    """It ran before the change and after it, as applications do."""
    stand.have("onnxruntime 1.22.1")
    cached = stand.venv.site / "onnxruntime" / "__pycache__" / "__init__.cpython-311.pyc"
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(b"of the CPU build")
    stand.before = state_of(stand.venv.folder)
    stand.apply(stand.plan(GOOD, uninstall=("onnxruntime",)))
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(b"of the GPU build, and of another size")

    stand.undo()

    assert stand.unchanged()


def test_the_environment_s_own_installer_sees_what_it_did_itself(stand: Stand) -> None:
    stand.apply(stand.plan(*CUDA, requires=REQUIRES))

    check = [find_uv(), "pip", "check", "--python", str(stand.venv.python)]
    freeze = [find_uv(), "pip", "freeze", "--python", str(stand.venv.python)]
    env = clean_environment()
    assert subprocess.run(check, check=False, env=env, capture_output=True).returncode == 0
    shown = subprocess.run(freeze, check=True, env=env, capture_output=True, text=True).stdout
    assert "onnxruntime-gpu==1.26.0\n" in shown
    assert "file:" not in shown


def test_requirements_are_chosen_within_what_is_installed(stand: Stand) -> None:
    stand.have("bystander 1.0", "packaging 25.0")
    plan = stand.plan(GOOD, requires=REQUIRES)

    done = stand.apply(plan, allowed=Allowed())

    assert done.conflicts == ()  # the bystander's want of an older protobuf is not new
    assert sorted(dict(done.installed)) == ["flatbuffers", "onnxruntime-gpu", "protobuf"]


def test_ordinary_requirements_are_shown_before_anything_is_downloaded(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1")
    [record] = stand.venv.site.glob("onnxruntime-1.22.1.dist-info/RECORD")
    files = len(record.read_text().splitlines())
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",), requires=REQUIRES)
    said: list[tuple[str, dict[str, object]]] = []
    seen: list[Sequence[ChosenWheel]] = []
    downloads: list[str] = []

    def progress(code: str, /, **values: object) -> None:
        said.append((code, values))

    def confirm(chosen: Sequence[ChosenWheel]) -> None:
        seen.append(chosen)
        downloads.extend(line for line in stand.server.behaviour.requests if ".whl" in line)

    stand.apply(plan, confirm=confirm, progress=progress)

    (chosen,) = seen
    rows = {row.wheel.name: row for row in chosen}
    assert rows.keys() == {"flatbuffers", "packaging", "protobuf"}
    assert rows["protobuf"].wheel.version == "6.33.0"
    assert rows["protobuf"].place == stand.server.url
    digest = hashlib.sha256(stand.wheels["protobuf 6.33.0"].read_bytes()).hexdigest()
    assert rows["protobuf"].wheel.sha256 == digest
    assert [line for line in downloads if "bytes=" not in line and "GET" in line] == []
    assert [step for step in said if step[0] in {"set-aside", "install", "sync", "verify"}] == [
        ("install", {"engine": "uv 0", "count": 6}),
        ("sync", {}),
        ("set-aside", {"files": files}),
        ("verify", {}),
    ]
    begin = json.loads((stand.state / "1" / "journal").read_text().split("\n")[1])
    assert ["protobuf", "6.33.0", "pypi", digest] in begin["packages"]


def test_a_requirement_that_arrives_otherwise_than_shown_is_not_taken(stand: Stand) -> None:
    file = stand.wheels["protobuf 6.33.0"].name
    plan = stand.plan(*CUDA, requires=REQUIRES)

    def swapped(_: object) -> None:
        stand.server.behaviour.faults[file] = "other-bytes"

    error = stand.fails(plan, confirm=swapped)
    stand.server.behaviour.faults.clear()

    assert (error.code, error.values["file"]) == ("wheel-broken", file)


def test_an_installed_version_that_no_index_has_is_no_problem(stand: Stand) -> None:
    own = make_wheel(stand.venv.folder / "own", "flatbuffers", "99.0+local", files={"f.py": ""})
    stand.venv.install(own)

    done = stand.apply(stand.plan(GOOD, requires=REQUIRES))

    assert "flatbuffers" not in dict(done.installed)
    assert stand.names()["flatbuffers"] == "99.0+local"


def test_a_wheel_made_here_is_installed_too(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1")

    stand.apply(stand.plan(GOOD), companions=[placeholder_wheel("1.26.0")])

    assert stand.names() == stand.names() | {"onnxruntime": "1.26.0", "onnxruntime-gpu": "1.26.0"}
    assert (stand.venv.site / "onnxruntime" / "__init__.py").exists()
    stand.undo()
    assert stand.unchanged()


def test_what_runs_at_every_start_is_compiled_and_goes_without_a_trace(stand: Stand) -> None:
    made = library_wheel("1.26.0", (), companion_modules())

    stand.apply(stand.plan(), companions=[made])

    package = stand.venv.site / "_ortgpu_fix_libraries"
    compiled = {path.name.partition(".")[0] for path in package.glob("__pycache__/*.pyc")}
    assert compiled == {"__init__", "__main__", "demand", "load", "lost", "service"}
    stand.undo()
    assert stand.unchanged()

    stand.apply(stand.plan(), companions=[made])
    wanted = ["uninstall", "ortgpu-fix-libraries", "--python", str(stand.venv.python)]
    subprocess.run([find_uv(), "pip", *wanted], check=True, env=clean_environment())
    assert not package.exists()


def raiser(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_a_change_that_fails(stand: Stand) -> None:
    error = OSError(errno.EIO, "Input/output error", "/x")
    values = {"cause": "Input/output error (/x)"}
    stand.have("onnxruntime 1.22.1", "nvidia-cudnn-cu13 9.28.0.42")
    plan = stand.plan(*CUDA, uninstall=("onnxruntime", "nvidia-cudnn-cu13"))

    failure = code_of(stand, plan, verify=raiser(error))

    assert (failure.code, failure.values) == ("apply-failed", values)
    assert stand.unchanged()
    assert not stand.state.exists()


def test_a_disk_that_fails_before_anything_is_changed(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While what comes is flushed: nothing was moved, and it is the disk that is to be named."""

    def refused(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    stand.have("onnxruntime 1.22.1")
    monkeypatch.setattr(os, "fsync", refused)
    failure = code_of(stand, stand.plan(*CUDA, uninstall=("onnxruntime",)))

    assert (failure.code, {*failure.values}) == ("disk-failed", {"path", "reason"})
    assert stand.unchanged()


def test_who_interrupts_uv_leaves_nothing_behind(stand: Stand) -> None:
    with pytest.raises(KeyboardInterrupt):
        stand.apply(stand.plan(*CUDA), uv=stand.uv_then(raiser(KeyboardInterrupt())))

    assert stand.unchanged()
    assert not (stand.state / "stage").exists()


@pytest.mark.usefixtures("heard")
def test_a_signal(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1")
    number = signal.SIGTERM
    handler = signal.getsignal(number)

    def verify() -> tuple[bool, str]:
        signal.raise_signal(number)
        return True, ""

    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))

    assert code_of(stand, plan, verify=verify).code == "apply-interrupted"
    assert stand.unchanged()
    assert signal.getsignal(number) is handler


@pytest.mark.usefixtures("heard")
def test_a_signal_that_is_ignored_already_ends_nothing(stand: Stand) -> None:
    """So it is under `nohup`, and in a job in the background."""
    number = HANG_UP
    signal.signal(number, signal.SIG_IGN)

    def verify() -> tuple[bool, str]:
        signal.raise_signal(number)
        return True, ""

    stand.apply(stand.plan(GOOD), verify=verify)

    assert stand.names()["onnxruntime-gpu"] == "1.26.0"
    assert signal.getsignal(number) is signal.SIG_IGN


def test_in_another_thread_than_the_main_one(stand: Stand) -> None:
    done: list[Applied] = []
    worker = threading.Thread(target=lambda: done.append(stand.apply(stand.plan(GOOD))))
    worker.start()
    worker.join()

    assert done


def test_a_former_change_is_forgotten_by_the_next_and_only_by_a_good_one(stand: Stand) -> None:
    stand.apply(stand.plan("onnxruntime-gpu 1.31.1"))
    first = state_of(stand.venv.folder)
    code_of(stand, stand.plan(GOOD), verify=lambda: (False, "no"))
    assert state_of(stand.venv.folder) == first
    assert [one.number for one in recorded_changes(Site.of(stand.venv.target()))] == [1]

    stand.apply(stand.plan(GOOD))
    (left,) = recorded_changes(Site.of(stand.venv.target()))
    assert (left.number, left.state) == (2, "committed")
    assert size_of(stand.state / "2") > 200_000

    stand.undo()
    assert state_of(stand.venv.folder) == first
    with pytest.raises(Error, match="nothing-to-undo"):
        stand.undo()


def test_lists_of_files_that_are_lost(stand: Stand) -> None:
    cudnn = "nvidia-cudnn-cu13 9.28.0.42"
    stand.have("onnxruntime 1.22.1", GOOD, "nvidia-cudnn-cu12 9.28.0.42", cudnn)
    for record in stand.venv.site.glob("*.dist-info/RECORD"):
        record.unlink()
    (stand.venv.site / "onnxruntime" / "__init__.py").unlink()
    stand.before = state_of(stand.venv.folder)

    assert stand.fails(stand.plan(uninstall=("nvidia-cudnn-cu13",))).code == "no-record"

    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)))

    target = stand.venv.target()
    assert target.build is not None
    assert target.build.intact
    assert "onnxruntime" not in stand.names()
    stand.undo()
    assert stand.unchanged()


def test_a_link_that_leads_out_of_the_environment(stand: Stand, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (stand.venv.site / "nvidia").symlink_to(tmp_path / "outside")
    stand.before = state_of(stand.venv.folder)

    assert code_of(stand, stand.plan(*CUDA)).code == "path-outside"
    assert stand.unchanged()
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_symbolic_link_to_the_environment(stand: Stand, tmp_path: Path) -> None:
    stand.have("onnxruntime 1.22.1")
    (tmp_path / "link").symlink_to(stand.venv.folder)
    through = Venv(folder=tmp_path / "link")

    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)), target=through.target())
    stand.undo()

    assert stand.unchanged()


def test_what_the_python_below_has_is_not_of_the_change(stand: Stand, tmp_path: Path) -> None:
    below = tmp_path / "below"
    with zipfile.ZipFile(stand.wheels["onnxruntime 1.22.1"]) as file:
        file.extractall(below)
    (stand.venv.site / "below.pth").write_text(f"{below}\n")
    stand.before = state_of(stand.venv.folder)
    plan = stand.plan(GOOD, uninstall=("onnxruntime",))

    stand.apply(plan, companions=[placeholder_wheel("1.26.0")])

    target = stand.venv.target()
    assert [one.version for one in target.installed if one.key == "onnxruntime"] == [
        "1.26.0",
        "1.22.1",
    ]
    site = Site.of(target)
    assert history_summary(site, installed_in_site(target, site))[0] == "kept"
    stand.undo()
    assert stand.unchanged()


def test_an_environment_that_moved_in_between(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1")
    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",)))
    stand.venv.folder.rename(stand.venv.folder.with_name("moved"))
    stand.venv = Venv(folder=stand.venv.folder.with_name("moved"))

    stand.undo()

    assert stand.unchanged()


FAULTS = {
    "reset": ("index-unreachable", "Connection reset by peer"),
    "other-bytes": ("download-hash-mismatch", "SHA-256 mismatch"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_index_that_fails_half_way(stand: Stand, fault: Fault) -> None:
    """One file of the set has it; the other two are served well."""
    stand.have("onnxruntime 1.22.1")
    file = stand.wheels["nvidia-cublas-cu12 12.9.2.10"].name
    stand.server.behaviour.faults[file] = fault
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))

    error = stand.fails(plan)

    code, cause = FAULTS[fault]
    assert error.code == code
    message = load_texts("en").error(error)
    assert message.exit_code == 7
    assert cause in message.text
    assert not stand.state.exists()

    stand.server.behaviour.faults.clear()
    stand.apply(plan)


def test_a_mirror_with_an_incomplete_set(stand: Stand, tmp_path: Path) -> None:
    """The page is there, and does not list the release; what is there is not installed alone."""
    for name in CUDA[:2]:
        shutil.copy(stand.wheels[name], tmp_path)
    make_wheel(tmp_path, "nvidia-cublas-cu12", "12.0.1", files={"x.py": ""})
    with LocalIndex(tmp_path) as mirror:
        sources = IndexConfig(index_url=mirror.url, origin="flag")
        error = stand.fails(stand.plan(*CUDA), index=Index(sources))

    assert error.code == "file-not-on-index"
    assert error.values["file"] == stand.wheels[CUDA[2]].name


def test_ordinary_requirements_that_do_not_exist(stand: Stand) -> None:
    error = code_of(stand, stand.plan(GOOD, requires=("no-such-thing>=1",)))

    assert error.code == "requirements-impossible"
    assert "no-such-thing" in str(error.values["said"])
    assert stand.unchanged()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root")
def test_folders_of_somebody_else(stand: Stand) -> None:
    """A child that gives up its rights tries to apply."""
    stand.have("onnxruntime 1.22.1")
    target, plan, uv = stand.venv.target(), stand.plan(GOOD), stand.uv()
    index = Index(IndexConfig(index_url=stand.server.url))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setuid(65534)
            apply(
                plan,
                target,
                index=index,
                uv=uv,
                verify=lambda: (True, ""),
                progress=silent,
            )
        except Error as error:
            status = 0 if error.code == "environment-read-only" else 2
        finally:
            os._exit(status)

    assert os.waitpid(child, 0)[1] == 0
    assert stand.unchanged()


def test_a_disk_that_is_full(
    stand: Stand, mounted: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So few KiB are left that what comes has no room."""
    disk = mounted("-t", "tmpfs", "-o", "size=64m", "tmpfs")
    shutil.copytree(stand.venv.folder, disk / "venv", symlinks=True)
    stand.venv = Venv(folder=disk / "venv")
    stand.have("onnxruntime 1.22.1")
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))

    assert code_of(stand, plan).code == "no-space"  # the margin alone is more than that
    assert stand.unchanged()

    monkeypatch.setattr("ortgpu_fix.apply.staging._need", lambda *_: None)
    free = shutil.disk_usage(disk).free
    (disk / "ballast").write_bytes(b"x" * (free - 400 * 1024))
    error = stand.fails(plan)

    assert error.code in {"disk-full", "install-failed", "apply-failed"}


@pytest.mark.slow
def test_of_two_at_once_one_wins(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1")
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))
    for _ in range(3):
        target = stand.venv.target()
        ends: list[str] = []
        together = threading.Barrier(2)

        def one(target: Target, ends: list[str], together: threading.Barrier) -> None:
            together.wait()
            try:
                stand.apply(plan, target=target)
                ends.append("done")
            except Error as error:
                ends.append(error.code)

        workers = [threading.Thread(target=one, args=(target, ends, together)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

        assert sorted(ends) == ["done", "environment-locked"]
        stand.undo()
        assert stand.unchanged()
