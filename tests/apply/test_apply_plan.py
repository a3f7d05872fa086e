"""Applying plans to real environments, with real uv and real pip, on stand-in wheels."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from stand import CUDA, GOOD, HANG_UP, REQUIRES, Kind, Stand

from ortgpu_fix.apply.apply_plan import Applied, apply
from ortgpu_fix.apply.before_change import Allowed
from ortgpu_fix.apply.chosen_wheels import ChosenWheel
from ortgpu_fix.apply.environment_files import metadata_folders
from ortgpu_fix.apply.environment_lock import hold_environment_lock
from ortgpu_fix.apply.files_to_remove import distributions_here
from ortgpu_fix.apply.history import discard_undo_data, history_summary, recorded_changes
from ortgpu_fix.apply.journal import Begin
from ortgpu_fix.apply.journaled_change import JournaledChange
from ortgpu_fix.apply.rollback import recover_interrupted, undo_last
from ortgpu_fix.apply.state_folder import Site, prepare_state_folder, size_of
from ortgpu_fix.companions.build import library_wheel, stand_in_wheel
from ortgpu_fix.engine.choose import Engine
from ortgpu_fix.engine.common import Prefix, StagedFile
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import Target
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.matrix.load import companion_modules
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.wheels import Pinned
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


def test_our_pip_works_on_an_environment_without_one(
    stand_of: Callable[[Kind], Stand],
) -> None:
    stand = stand_of("our-pip")
    stand.have("onnxruntime 1.22.1", "flatbuffers 25.9.23")

    stand.apply(stand.plan(*CUDA, uninstall=("onnxruntime",), requires=REQUIRES))

    assert stand.names().keys() >= {"onnxruntime-gpu", "protobuf"}
    assert "pip" not in stand.names()
    stand.undo()
    assert stand.unchanged()


@pytest.mark.parametrize(
    "had",
    [
        ("onnxruntime 1.22.1", "onnxruntime-gpu 1.31.1"),
        ("onnxruntime-gpu 1.31.1", "onnxruntime 1.22.1"),
        ("onnxruntime-gpu 1.31.1", "nvidia-cudnn-cu13 9.28.0.42"),
        ("nvidia-cudnn-cu12 9.28.0.42", "nvidia-cudnn-cu13 9.28.0.42"),
        (),
    ],
)
def test_from_other_states(quick: Stand, had: tuple[str, ...]) -> None:
    quick.have(*had)
    plan = quick.plan(*CUDA, uninstall=("onnxruntime", "nvidia-cudnn-cu13"))

    quick.apply(plan)

    target = quick.venv.target()
    assert target.build is not None
    assert target.build.intact
    assert sorted(quick.names()) == sorted(name.split()[0] for name in CUDA)
    assert [one.missing for one in target.installed] == [0, 0, 0]
    quick.undo()
    assert quick.unchanged()


def test_a_gutted_folder_with_leftovers(quick: Stand) -> None:
    quick.have("onnxruntime-gpu 1.26.0")
    shared = quick.venv.site / "onnxruntime"
    (shared / "__init__.py").unlink()
    (shared / "old").mkdir(mode=0o700)
    (shared / "old" / "left.so").write_text("over")
    (shared / "old" / "left.so").chmod(0o640)
    (shared / "link").symlink_to("old")
    (shared / "capi" / "__pycache__").mkdir()
    (shared / "capi" / "__pycache__" / "gone.cpython-311.pyc").write_text("x")
    quick.before = state_of(quick.venv.folder)

    quick.apply(quick.plan(GOOD))

    assert not (shared / "old").exists()
    assert not (shared / "link").is_symlink()
    quick.undo()
    assert quick.unchanged()


def test_a_file_that_another_distribution_lists_stays(quick: Stand) -> None:
    quick.have("nvidia-cublas-cu12 12.9.2.10", "nvidia-curand-cu12 12.9.2.10")

    quick.apply(quick.plan(uninstall=("nvidia-cublas-cu12",)))

    assert (quick.venv.site / "nvidia" / "__init__.py").exists()
    assert not (quick.venv.site / "nvidia" / "cublas").exists()
    quick.undo()
    assert quick.unchanged()


def test_bytecode_goes_with_its_module_and_comes_back(quick: Stand) -> None:
    quick.have("onnxruntime 1.22.1")
    code = "import onnxruntime, onnxruntime.tools.check"
    subprocess.run([quick.venv.python, "-c", code], check=True)
    quick.before = state_of(quick.venv.folder)

    quick.apply(quick.plan(GOOD, uninstall=("onnxruntime",)))
    assert not list(quick.venv.site.glob("onnxruntime/**/*.pyc"))
    subprocess.run([quick.venv.python, "-c", code], check=True)
    quick.undo()

    assert quick.unchanged()


def test_bytecode_that_an_application_left_since_is_no_change(quick: Stand) -> None:
    """It ran before the change and after it, as applications do."""
    quick.have("onnxruntime 1.22.1")
    cached = quick.venv.site / "onnxruntime" / "__pycache__" / "__init__.cpython-311.pyc"
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(b"of the CPU build")
    quick.before = state_of(quick.venv.folder)
    quick.apply(quick.plan(GOOD, uninstall=("onnxruntime",)))
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(b"of the GPU build, and of another size")

    quick.undo()

    assert quick.unchanged()


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
    downloads: list[Path] = []

    def progress(code: str, /, **values: object) -> None:
        said.append((code, values))

    def confirm(chosen: Sequence[ChosenWheel]) -> None:
        seen.append(chosen)
        downloads.extend((stand.state / "stage" / "wheels").iterdir())

    stand.apply(plan, confirm=confirm, progress=progress)

    (chosen,) = seen
    rows = {row.wheel.name: row for row in chosen}
    assert rows.keys() == {"flatbuffers", "packaging", "protobuf"}
    assert rows["protobuf"].wheel.version == "6.33.0"
    assert rows["protobuf"].place == stand.server.url
    digest = hashlib.sha256(stand.wheels["protobuf 6.33.0"].read_bytes()).hexdigest()
    assert rows["protobuf"].wheel.sha256 == digest
    assert downloads == []
    assert [step for step in said if step[0] in {"set-aside", "install", "sync", "verify"}] == [
        ("install", {"engine": f"{stand.kind} 0", "count": 6}),
        ("sync", {}),
        ("set-aside", {"files": files}),
        ("verify", {}),
    ]
    begin = json.loads((stand.state / "1" / "journal").read_text().split("\n")[1])
    assert ["protobuf", "6.33.0", "pypi", digest] in begin["packages"]


def test_what_is_downloaded_here_is_said_to_be_installed(quick: Stand, tmp_path: Path) -> None:
    """uv brings what an index has; a folder's wheel is staged beside, and so is what is made."""
    own = make_wheel(tmp_path, "own", "1.0", files={"own.py": ""})
    said: list[tuple[str, dict[str, object]]] = []

    quick.apply(
        quick.plan(GOOD, own),
        companions=[stand_in_wheel("1.26.0")],
        progress=lambda code, /, **values: said.append((code, values)),
    )

    assert [values for code, values in said if code == "install"] == [
        {"engine": "uv 0", "count": 1},
        {"engine": "uv 0", "count": 1},
    ]


def test_who_says_no_has_downloaded_nothing(quick: Stand) -> None:
    def decline(_: object) -> None:
        assert list((quick.state / "stage" / "wheels").iterdir()) == []
        raise Error("declined")

    assert quick.fails(quick.plan(*CUDA, requires=REQUIRES), confirm=decline).code == "declined"
    assert not quick.state.exists()


def test_a_requirement_that_arrives_otherwise_than_shown_is_not_taken(quick: Stand) -> None:
    file = quick.wheels["protobuf 6.33.0"].name
    plan = quick.plan(*CUDA, requires=REQUIRES)

    def swapped(_: object) -> None:
        quick.server.behaviour.faults[file] = "other-bytes"

    error = quick.fails(plan, confirm=swapped)
    quick.server.behaviour.faults.clear()

    assert (error.code, error.values["file"]) == ("download-hash-mismatch", file)


def test_a_conflict_that_was_not_there_before(quick: Stand) -> None:
    old = make_wheel(quick.server.folder, "protobuf", "5.29.0", files={"google/x.py": ""})
    try:
        quick.venv.install(old, quick.wheels["bystander 1.0"])
        (quick.venv.folder / ".lock").unlink()
        quick.before = state_of(quick.venv.folder)
        plan = quick.plan("protobuf 6.33.0")

        error = code_of(quick, plan, allowed=Allowed())

        assert error.code == "would-conflict"
        assert error.values["conflicts"] == "bystander 1.0: protobuf<6 (6.33.0)"
        assert quick.unchanged()
        assert quick.apply(plan).conflicts
    finally:
        old.unlink()


def test_an_installed_version_that_no_index_has_is_no_problem(stand: Stand) -> None:
    own = make_wheel(stand.venv.folder / "own", "flatbuffers", "99.0+local", files={"f.py": ""})
    stand.venv.install(own)

    done = stand.apply(stand.plan(GOOD, requires=REQUIRES))

    assert "flatbuffers" not in dict(done.installed)
    assert stand.names()["flatbuffers"] == "99.0+local"


def test_a_wheel_made_here_is_installed_too(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1")

    stand.apply(stand.plan(GOOD), companions=[stand_in_wheel("1.26.0")])

    assert stand.names() == stand.names() | {"onnxruntime": "1.26.0", "onnxruntime-gpu": "1.26.0"}
    assert (stand.venv.site / "onnxruntime" / "__init__.py").exists()
    stand.undo()
    assert stand.unchanged()


def test_what_runs_at_every_start_is_compiled_and_goes_without_a_trace(stand: Stand) -> None:
    made = library_wheel("1.26.0", (), companion_modules())

    stand.apply(stand.plan(), companions=[made])

    package = stand.venv.site / "_ortgpu_fix_libraries"
    compiled = {path.name.partition(".")[0] for path in package.glob("__pycache__/*.pyc")}
    assert compiled == {"__init__", "demand", "load", "lost", "service"}
    stand.undo()
    assert stand.unchanged()

    stand.apply(stand.plan(), companions=[made])
    wanted = ["uninstall", "ortgpu-fix-libraries", "--python", str(stand.venv.python)]
    subprocess.run([find_uv(), "pip", *wanted], check=True, env=clean_environment())
    assert not package.exists()


class Failing:
    """An engine that does a part of its work and then fails as it is told to."""

    name = "failing 1"

    def __init__(self, inner: Engine, action: Callable[[], None]) -> None:
        self.inner, self.action = inner, action

    def resolve(
        self, requires: object, target: Target, sources: IndexConfig, folder: Path
    ) -> tuple[Pinned, ...]:
        return self.inner.resolve(requires, target, sources, folder)  # type: ignore[arg-type]

    def fetch(self, *_: object) -> bool:
        return False

    def install(self, staged: Sequence[StagedFile], target: Target, into: Prefix) -> None:
        self.inner.install(staged[:2], target, into)
        self.action()


def raiser(error: BaseException) -> Callable[[], Any]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "values"),
    [
        (
            OSError(errno.EIO, "Input/output error", "/x"),
            "apply-failed",
            {"cause": "Input/output error (/x)"},
        ),
        (OSError("odd"), "apply-failed", {"cause": "OSError"}),
        (RuntimeError("odd"), "apply-failed", {"cause": "odd"}),
        (RuntimeError(), "apply-failed", {"cause": "RuntimeError"}),
        (KeyboardInterrupt(), "apply-interrupted", {}),
    ],
)
def test_a_change_that_fails(
    quick: Stand, error: BaseException, code: str, values: dict[str, str]
) -> None:
    quick.have("onnxruntime 1.22.1", "nvidia-cudnn-cu13 9.28.0.42")
    plan = quick.plan(*CUDA, uninstall=("onnxruntime", "nvidia-cudnn-cu13"))

    failure = code_of(quick, plan, verify=raiser(error))

    assert (failure.code, failure.values) == (code, values)
    assert quick.unchanged()
    assert not quick.state.exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Error("install-failed", said="no"), "install-failed"),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), "disk-full"),
    ],
)
def test_an_engine_that_fails(stand: Stand, error: BaseException, code: str) -> None:
    stand.have("onnxruntime 1.22.1", "nvidia-cudnn-cu13 9.28.0.42")
    plan = stand.plan(*CUDA, uninstall=("onnxruntime", "nvidia-cudnn-cu13"))

    failure = code_of(stand, plan, engine=Failing(stand.engine(), raiser(error)))

    assert failure.code == code
    assert stand.unchanged()
    assert not stand.state.exists()


@pytest.mark.parametrize(
    ("number", "code", "values"),
    [
        (errno.ENOSPC, "disk-full", {"folder"}),
        (errno.EDQUOT, "disk-full", {"folder"}),
        (errno.EIO, "disk-failed", {"path", "reason"}),
    ],
)
def test_a_disk_that_fails_before_anything_is_changed(
    quick: Stand, monkeypatch: pytest.MonkeyPatch, number: int, code: str, values: set[str]
) -> None:
    """While what comes is flushed: nothing was moved, and it is the disk that is to be named."""

    def refused(_: int) -> None:
        raise OSError(number, os.strerror(number))

    quick.have("onnxruntime 1.22.1")
    monkeypatch.setattr(os, "fsync", refused)
    failure = code_of(quick, quick.plan(*CUDA, uninstall=("onnxruntime",)))

    assert (failure.code, {*failure.values}) == (code, values)
    assert quick.unchanged()


def test_who_interrupts_an_engine_keeps_the_downloads_and_nothing_else(quick: Stand) -> None:
    engine = Failing(quick.engine(), raiser(KeyboardInterrupt()))

    with pytest.raises(KeyboardInterrupt):
        quick.apply(quick.plan(*CUDA), engine=engine)

    assert quick.unchanged()
    assert len(list(quick.state.glob("stage/wheels/*.whl"))) == 3
    assert not (quick.state / "stage" / "tree").exists()


def test_an_engine_that_says_it_is_done_and_is_not(quick: Stand) -> None:
    quick.have("onnxruntime 1.22.1")

    plan = quick.plan(*CUDA, uninstall=("onnxruntime",))
    error = code_of(quick, plan, engine=Failing(quick.engine(), lambda: None))

    assert error.code == "install-failed"
    assert "nvidia-cublas-cu12" in str(error.values["said"])
    assert quick.unchanged()


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, HANG_UP])
def test_a_signal(quick: Stand, number: signal.Signals) -> None:
    quick.have("onnxruntime 1.22.1")
    handler = signal.getsignal(number)

    def verify() -> tuple[bool, str]:
        signal.raise_signal(number)
        return True, ""

    plan = quick.plan(*CUDA, uninstall=("onnxruntime",))

    assert code_of(quick, plan, verify=verify).code == "apply-interrupted"
    assert quick.unchanged()
    assert signal.getsignal(number) is handler


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, HANG_UP])
def test_a_signal_that_is_ignored_already_ends_nothing(
    quick: Stand, number: signal.Signals
) -> None:
    """So it is under `nohup`, and in a job in the background."""
    signal.signal(number, signal.SIG_IGN)

    def verify() -> tuple[bool, str]:
        signal.raise_signal(number)
        return True, ""

    quick.apply(quick.plan(GOOD), verify=verify)

    assert quick.names()["onnxruntime-gpu"] == "1.26.0"
    assert signal.getsignal(number) is signal.SIG_IGN


def test_a_verification_that_says_no(stand: Stand) -> None:
    stand.have("onnxruntime 1.22.1")
    plan = stand.plan(*CUDA, uninstall=("onnxruntime",))

    error = code_of(stand, plan, verify=lambda: (False, "the GPU is not used"))

    assert (error.code, error.values["reason"]) == ("verify-failed", "the GPU is not used")
    assert stand.unchanged()


def test_in_another_thread_than_the_main_one(quick: Stand) -> None:
    done: list[Applied] = []
    worker = threading.Thread(target=lambda: done.append(quick.apply(quick.plan(GOOD))))
    worker.start()
    worker.join()

    assert done


def test_a_former_change_is_forgotten_by_the_next_and_only_by_a_good_one(quick: Stand) -> None:
    quick.apply(quick.plan("onnxruntime-gpu 1.31.1"))
    first = state_of(quick.venv.folder)
    code_of(quick, quick.plan(GOOD), verify=lambda: (False, "no"))
    assert state_of(quick.venv.folder) == first
    assert [one.number for one in recorded_changes(Site.of(quick.venv.target()))] == [1]

    quick.apply(quick.plan(GOOD))
    (left,) = recorded_changes(Site.of(quick.venv.target()))
    assert (left.number, left.state) == (2, "committed")
    assert size_of(quick.state / "2") > 200_000

    quick.undo()
    assert state_of(quick.venv.folder) == first
    with pytest.raises(Error, match="nothing-to-undo"):
        quick.undo()


def test_forget(quick: Stand) -> None:
    site = Site.of(quick.venv.target())
    quick.have("onnxruntime 1.22.1")
    quick.apply(quick.plan(GOOD, uninstall=("onnxruntime",)))

    assert discard_undo_data(site) == 0
    assert recorded_changes(site) == ()
    with pytest.raises(Error, match="nothing-to-undo"):
        quick.undo()


@pytest.mark.parametrize("what", ["upgrade", "back", "gone"])
def test_undo_after_somebody_else_changed_the_same_things(quick: Stand, what: str) -> None:
    quick.have("onnxruntime 1.22.1")
    quick.apply(quick.plan(GOOD, uninstall=("onnxruntime",)))
    if what == "upgrade":
        quick.venv.install(quick.wheels["onnxruntime-gpu 1.31.1"])
    elif what == "back":
        quick.venv.install(quick.wheels["onnxruntime 1.22.1"])
    else:
        shutil.rmtree(next(quick.venv.site.glob("onnxruntime_gpu*.dist-info")))
    state = state_of(quick.venv.folder)

    with pytest.raises(Error, match="undo-changed"):
        quick.undo()
    assert state_of(quick.venv.folder) == state


def test_undo_leaves_what_came_later(quick: Stand) -> None:
    quick.have("onnxruntime 1.22.1")
    quick.apply(quick.plan(*CUDA, uninstall=("onnxruntime",)))
    quick.venv.install(quick.wheels["nvidia-curand-cu12 12.9.2.10"])
    later = state_of(quick.venv.site / "nvidia" / "curand")

    quick.undo()

    assert quick.names() == {"onnxruntime": "1.22.1", "nvidia-curand-cu12": "12.9.2.10"}
    assert state_of(quick.venv.site / "nvidia" / "curand") == later


def test_a_second_run_says_who_is_first(quick: Stand) -> None:
    target = quick.venv.target()
    site = Site.of(target)
    site.state.mkdir()
    with hold_environment_lock(site):
        error = code_of(quick, quick.plan(GOOD), target=target)
        with pytest.raises(Error, match="environment-locked"):
            undo_last(site, ())

    assert error.code == "environment-locked"
    assert error.values["pid"] == os.getpid()
    assert quick.unchanged()
    quick.apply(quick.plan(GOOD))


def test_the_lock_of_a_dead_holder_is_none(quick: Stand) -> None:
    quick.state.mkdir()
    (quick.state / "lock").write_text(json.dumps({"pid": 1, "command": "x"}))

    quick.apply(quick.plan(GOOD))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"externally_managed": True}, "externally-managed"),
        ({"kind": "conda"}, "conda-environment"),
        ({"kind": "user"}, "user-environment"),
    ],
)
def test_environments_that_are_left_alone(
    quick: Stand, change: dict[str, object], code: str
) -> None:
    target = quick.venv.target()._replace(**change)  # type: ignore[arg-type]

    assert code_of(quick, quick.plan(GOOD), target=target).code == code
    assert quick.unchanged()
    if code != "user-environment":
        allowed = Allowed(conflicts=True, externally_managed=True, conda=True)
        quick.apply(quick.plan(GOOD), target=target, allowed=allowed)


def test_distributions_that_cannot_be_taken_out(quick: Stand) -> None:
    quick.have("onnxruntime 1.22.1")
    target = quick.venv.target()
    (own,) = target.installed
    plan = quick.plan(GOOD, uninstall=("onnxruntime",))

    def code(plan: Plan = plan, **change: object) -> str:
        changed = target._replace(installed=(own._replace(**change),))  # type: ignore[arg-type]
        return code_of(quick, plan, target=changed, confirm=asked.append).code

    asked: list[object] = []
    assert code(editable=True) == "installed-editable"
    assert code(installer="conda") == "installed-conda"
    assert code(metadata_path=str(Path(os.__file__).parent)) == "installed-outside"
    assert code(quick.plan(GOOD), name="onnxruntime_GPU", editable=True) == "installed-editable"
    assert asked == []  # so nothing was downloaded
    record = Path(own.metadata_path, "RECORD")
    text = record.read_text()
    record.unlink()
    system = Allowed(conflicts=True, externally_managed=True)
    theirs = target._replace(kind="system")  # a package manager of the system takes RECORD away
    assert code_of(quick, plan, target=theirs, allowed=system).code == "no-record"
    record.write_text(text)


def test_lists_of_files_that_are_lost(quick: Stand) -> None:
    cudnn = "nvidia-cudnn-cu13 9.28.0.42"
    quick.have("onnxruntime 1.22.1", GOOD, "nvidia-cudnn-cu12 9.28.0.42", cudnn)
    for record in quick.venv.site.glob("*.dist-info/RECORD"):
        record.unlink()
    (quick.venv.site / "onnxruntime" / "__init__.py").unlink()
    quick.before = state_of(quick.venv.folder)

    assert quick.fails(quick.plan(uninstall=("nvidia-cudnn-cu13",))).code == "no-record"

    quick.apply(quick.plan(*CUDA, uninstall=("onnxruntime",)))

    target = quick.venv.target()
    assert target.build is not None
    assert target.build.intact
    assert "onnxruntime" not in quick.names()
    quick.undo()
    assert quick.unchanged()


def test_a_plan_that_is_out_of_date(quick: Stand) -> None:
    quick.have("onnxruntime 1.22.1")
    target = quick.venv.target()
    gone = next(quick.venv.site.glob("onnxruntime-*.dist-info"))
    gone.rename(quick.venv.folder / "elsewhere")
    plan = quick.plan(GOOD, uninstall=("onnxruntime",))
    assert code_of(quick, plan, target=target).code == "environment-changed"

    (quick.venv.folder / "elsewhere").rename(gone)
    quick.venv.install(quick.wheels[GOOD])
    assert code_of(quick, plan, target=target).code == "environment-changed"


def test_a_link_that_leads_out_of_the_environment(quick: Stand, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (quick.venv.site / "nvidia").symlink_to(tmp_path / "outside")
    quick.before = state_of(quick.venv.folder)

    assert code_of(quick, quick.plan(*CUDA)).code == "path-outside"
    assert quick.unchanged()
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_folder_where_a_file_must_be(quick: Stand) -> None:
    (quick.venv.site / "nvidia" / "__init__.py").mkdir(parents=True)

    assert code_of(quick, quick.plan(*CUDA)).code == "path-outside"


def test_a_symbolic_link_to_the_environment(quick: Stand, tmp_path: Path) -> None:
    quick.have("onnxruntime 1.22.1")
    (tmp_path / "link").symlink_to(quick.venv.folder)
    through = Venv(folder=tmp_path / "link")

    quick.apply(quick.plan(*CUDA, uninstall=("onnxruntime",)), target=through.target())
    quick.undo()

    assert quick.unchanged()


def test_what_the_python_below_has_is_not_of_the_change(quick: Stand, tmp_path: Path) -> None:
    below = tmp_path / "below"
    with zipfile.ZipFile(quick.wheels["onnxruntime 1.22.1"]) as file:
        file.extractall(below)
    (quick.venv.site / "below.pth").write_text(f"{below}\n")
    quick.before = state_of(quick.venv.folder)
    plan = quick.plan(GOOD, uninstall=("onnxruntime",))

    quick.apply(plan, companions=[stand_in_wheel("1.26.0")])

    target = quick.venv.target()
    assert [one.version for one in target.installed if one.key == "onnxruntime"] == [
        "1.26.0",
        "1.22.1",
    ]
    site = Site.of(target)
    assert history_summary(site, distributions_here(target, site))[0] == "kept"
    quick.undo()
    assert quick.unchanged()


def test_an_environment_that_moved_in_between(quick: Stand) -> None:
    quick.have("onnxruntime 1.22.1")
    quick.apply(quick.plan(*CUDA, uninstall=("onnxruntime",)))
    quick.venv.folder.rename(quick.venv.folder.with_name("moved"))
    quick.venv = Venv(folder=quick.venv.folder.with_name("moved"))

    quick.undo()

    assert quick.unchanged()


FAULTS = {
    "missing": ("index-refused", "404"),
    "busy": ("index-refused", "503"),
    "truncated": ("index-unreachable", "broke off"),
    "reset": ("index-unreachable", "Connection reset by peer"),
    "other-bytes": ("download-hash-mismatch", "SHA-256 mismatch"),
    "trickle": ("download-too-slow", "bytes a second"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_index_that_fails_half_way(quick: Stand, fault: Fault) -> None:
    """One file of the set has it; the other two are served well."""
    quick.have("onnxruntime 1.22.1")
    file = quick.wheels["nvidia-cublas-cu12 12.9.2.10"].name
    quick.server.behaviour.faults[file] = fault
    quick.server.behaviour.no_ranges = True
    plan = quick.plan(*CUDA, uninstall=("onnxruntime",))
    sources = IndexConfig(index_url=quick.server.url, origin="flag")

    engine = Failing(quick.engine(), lambda: None)  # which fetches nothing
    limits = Limits(read=2, window=0.5, pauses=(0.01,))
    error = quick.fails(plan, index=Index(sources, limits), engine=engine)

    code, cause = FAULTS[fault]
    assert error.code == code
    message = load_texts("en").error(error)
    assert message.exit_code == 7
    assert cause in message.text
    # What a network brought is kept for the next run; what is wrong leaves nothing behind. An
    # answer without content may come before the others have brought anything.
    left = {path.name for path in quick.state.glob("stage/wheels/*")}
    kept = {name for name in left if name.endswith(".whl")}
    assert quick.state.exists() == bool(left)
    assert bool(left) == (code != "download-hash-mismatch") or fault in {"missing", "busy", "reset"}

    quick.server.behaviour.faults.clear()
    quick.server.behaviour.requests.clear()
    quick.apply(plan)
    fetched = [line for line in quick.server.behaviour.requests if "/files/" in line]
    assert kept.isdisjoint(line.rpartition("/")[2].partition(" ")[0] for line in fetched)


def test_an_index_that_is_not_there(quick: Stand) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        sources = IndexConfig(index_url=f"http://127.0.0.1:{taken.getsockname()[1]}/simple")
        error = quick.fails(quick.plan(*CUDA), index=Index(sources, Limits(pauses=(0.01,))))

    assert error.code == "index-unreachable"
    assert error.values["reason"] == "Connection refused"


def test_an_index_that_answers_with_a_page_for_people(quick: Stand) -> None:
    quick.server.behaviour.page = ("text/html", "<html><h1>Please sign in</h1></html>")

    error = quick.fails(quick.plan(*CUDA))

    assert error.code == "index-page-unreadable"
    assert not quick.state.exists()


def test_an_index_that_is_busy_for_a_while(quick: Stand) -> None:
    """503 twice, for a page and for a file: tried again after a pause, and then it is fine."""
    for name in (GOOD.split()[0], quick.wheels[GOOD].name):
        quick.server.behaviour.faults[name] = "busy"
        quick.server.behaviour.times[name] = 2
    pauses = (0.2, 0.4)
    sources = IndexConfig(index_url=quick.server.url, origin="flag")
    began = time.monotonic()

    quick.apply(quick.plan(*CUDA), index=Index(sources, Limits(pauses=pauses)))

    assert time.monotonic() - began > 2 * sum(pauses)
    assert quick.names()["onnxruntime-gpu"] == "1.26.0"


def test_a_mirror_with_an_incomplete_set(quick: Stand, tmp_path: Path) -> None:
    """The page is there, and does not list the release; what is there is not installed alone."""
    for name in CUDA[:2]:
        shutil.copy(quick.wheels[name], tmp_path)
    make_wheel(tmp_path, "nvidia-cublas-cu12", "12.0.1", files={"x.py": ""})
    with LocalIndex(tmp_path) as mirror:
        sources = IndexConfig(index_url=mirror.url, origin="flag")
        error = quick.fails(quick.plan(*CUDA), index=Index(sources))

    assert error.code == "file-not-on-index"
    assert error.values["file"] == quick.wheels[CUDA[2]].name


def test_ordinary_requirements_that_do_not_exist(stand: Stand) -> None:
    error = code_of(stand, stand.plan(GOOD, requires=("no-such-thing>=1",)))

    assert error.code == "requirements-impossible"
    assert "no-such-thing" in str(error.values["said"])
    assert stand.unchanged()


def test_a_wheel_that_is_hostile(quick: Stand, tmp_path: Path) -> None:
    evil = make_wheel(tmp_path, "evil", "1.0", files={"../../../../evil.py": "x"})

    assert code_of(quick, quick.plan(GOOD, evil)).code == "wheel-escapes"
    assert quick.unchanged()


def test_no_room(quick: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil._ntuple_diskusage
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10**6))

    refused = code_of(quick, quick.plan(*CUDA))

    assert refused.code == "no-space"
    assert refused.values["free"] == "0.0 GB"
    assert refused.values["needed"] == "0.1 GB"  # the margin, for the wheels here are tiny
    assert quick.unchanged()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root")
def test_folders_of_somebody_else(quick: Stand) -> None:
    """A child that gives up its rights tries to apply."""
    quick.have("onnxruntime 1.22.1")
    target, plan, engine = quick.venv.target(), quick.plan(GOOD), quick.engine()
    index = Index(IndexConfig(index_url=quick.server.url))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setuid(65534)
            apply(
                plan,
                target,
                index=index,
                engine=engine,
                verify=lambda: (True, ""),
                progress=silent,
            )
        except Error as error:
            status = 0 if error.code == "environment-read-only" else 2
        finally:
            os._exit(status)

    assert os.waitpid(child, 0)[1] == 0
    assert quick.unchanged()


@pytest.mark.parametrize("room", [100, 400, 700, 900])
def test_a_disk_that_is_full(
    quick: Stand,
    mounted: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    room: int,
) -> None:
    """So many KiB are left: too few for the download, or for the installation, or enough."""
    disk = mounted("-t", "tmpfs", "-o", "size=64m", "tmpfs")
    shutil.copytree(quick.venv.folder, disk / "venv", symlinks=True)
    quick.venv = Venv(folder=disk / "venv")
    quick.have("onnxruntime 1.22.1")
    plan = quick.plan(*CUDA, uninstall=("onnxruntime",))

    assert code_of(quick, plan).code == "no-space"  # the margin alone is more than that
    assert quick.unchanged()

    monkeypatch.setattr("ortgpu_fix.apply.staging._need", lambda *_: None)
    free = shutil.disk_usage(disk).free
    (disk / "ballast").write_bytes(b"x" * (free - room * 1024))
    try:
        quick.apply(plan)
    except Error as error:
        assert error.code in {"disk-full", "install-failed", "apply-failed"}  # noqa: PT017
        assert quick.unchanged()
    else:
        assert room >= 700


def test_a_read_only_filesystem(quick: Stand, mounted: Callable[..., Path]) -> None:
    quick.have("onnxruntime 1.22.1")
    point = mounted("--bind", str(quick.venv.folder))
    subprocess.run(["mount", "-o", "remount,ro,bind", point], check=True)
    through = Venv(folder=point)

    error = code_of(quick, quick.plan(GOOD), target=through.target())

    assert error.code == "environment-read-only"
    assert error.values["reason"] == "Read-only file system"
    assert quick.unchanged()


def test_an_unfinished_change_comes_first(quick: Stand) -> None:
    quick.have("onnxruntime 1.22.1")
    site = Site.of(quick.venv.target())
    prepare_state_folder(site)
    present = tuple(map(site.relative, metadata_folders(site)))
    change = JournaledChange(site)
    change.begin(Begin(plan="x", removed=(), installed=(), present=present))
    change.set_aside([str(quick.venv.site / "onnxruntime" / "__init__.py")])

    assert code_of(quick, quick.plan(GOOD)).code == "unfinished-change"
    assert len(recover_interrupted(site)) == 1
    assert quick.unchanged()


@pytest.mark.slow
def test_of_two_at_once_one_wins(quick: Stand) -> None:
    quick.have("onnxruntime 1.22.1")
    plan = quick.plan(*CUDA, uninstall=("onnxruntime",))
    for _ in range(10):
        target = quick.venv.target()
        ends: list[str] = []
        together = threading.Barrier(2)

        def one(target: Target, ends: list[str], together: threading.Barrier) -> None:
            together.wait()
            try:
                quick.apply(plan, target=target)
                ends.append("done")
            except Error as error:
                ends.append(error.code)

        workers = [threading.Thread(target=one, args=(target, ends, together)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

        assert sorted(ends) == ["done", "environment-locked"]
        quick.undo()
        assert quick.unchanged()


def test_nothing_unfinished_is_nothing_to_recover(quick: Stand) -> None:
    assert recover_interrupted(Site.of(quick.venv.target())) == ()
    assert not quick.state.exists()
