"""What comes of uv's cache, of the network, of a folder; and what is written meanwhile."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from packaging import tags
from stand import CUDA, GOOD, REQUIRES, Stand

from ortgpu_fix.apply import staging
from ortgpu_fix.apply.staging import written_early
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from support.local_index import make_wheel


def offline(stand: Stand, folder: Path | None = None) -> Index:
    sources = IndexConfig(index_url=stand.server.url, origin="flag", offline=True)
    return Index(replace(sources, find_links=folder), Limits(pauses=(0.01,)))


def files_asked(stand: Stand) -> set[str]:
    """Return the wheels that were sent whole since this was asked last."""
    lines = [line.split() for line in stand.server.behaviour.requests]
    stand.server.behaviour.requests.clear()
    return {line[1].rpartition("/")[2] for line in lines if line[0] == "GET" and len(line) == 2} - {
        ""
    }


def test_the_second_environment_asks_for_no_file_again(stand: Stand) -> None:
    plan = stand.plan(*CUDA, requires=REQUIRES)
    stand.apply(plan)
    assert {stand.wheels[name].name for name in CUDA} <= files_asked(stand)
    stand.undo()

    stand.apply(plan)
    assert files_asked(stand) == set()
    stand.undo()

    stand.apply(plan, index=offline(stand))
    assert stand.server.behaviour.requests == []


def test_without_a_network_what_is_nowhere_is_named(stand: Stand, tmp_path: Path) -> None:
    nowhere = stand.fails(stand.plan(*CUDA), index=offline(stand))
    assert nowhere.code == "files-not-kept"
    assert stand.wheels[GOOD].name in str(nowhere.values["files"])

    shutil.copy(stand.wheels[GOOD], tmp_path)
    beside = stand.fails(stand.plan(*CUDA), index=offline(stand, tmp_path))
    assert (beside.code, beside.values["folder"]) == ("files-not-here", str(tmp_path))
    assert stand.wheels[GOOD].name not in str(beside.values["files"])
    assert stand.wheels[CUDA[1]].name in str(beside.values["files"])


def test_without_a_network_a_folder_with_everything_is_enough(stand: Stand) -> None:
    folder = stand.server.folder

    stand.apply(stand.plan(*CUDA, requires=REQUIRES), index=offline(stand, folder))

    assert stand.names().keys() >= {"onnxruntime-gpu", "protobuf"}
    assert stand.server.behaviour.requests == []


def test_another_file_under_the_name_of_one_of_the_plan_is_not_taken(
    stand: Stand, tmp_path: Path
) -> None:
    """An index that has it, and a folder: the hash of the plan is the matrix's."""
    plan = stand.plan(GOOD)
    wheel = plan.install[0]
    other = hashlib.sha256(b"other").hexdigest()
    lying = plan._replace(install=(wheel._replace(sha256=other),))

    said = stand.fails(lying)
    assert (said.code, said.values["file"]) == ("download-hash-mismatch", wheel.file)
    assert files_asked(stand) == set()  # nothing was downloaded for it

    make_wheel(tmp_path, "onnxruntime-gpu", "1.26.0", files={"x.py": ""})
    stand.folder = tmp_path
    assert stand.fails(plan).code == "download-hash-mismatch"


def test_an_index_without_hashes_is_held_against_the_plan(stand: Stand) -> None:
    stand.server.behaviour.hashes = False
    plan = stand.plan(*CUDA)

    stand.apply(plan)
    assert stand.names()["onnxruntime-gpu"] == "1.26.0"
    stand.undo()

    other = hashlib.sha256(b"other").hexdigest()
    wheel = plan.install[0]._replace(sha256=other)
    assert stand.fails(plan._replace(install=(wheel,))).code == "download-hash-mismatch"


def test_a_requirement_that_must_not_be_unpacked_is_not_downloaded(
    stand: Stand, tmp_path: Path
) -> None:
    """Its list of files is read, without the rest."""
    for path in stand.server.folder.glob("*.whl"):
        shutil.copy(path, tmp_path)
    evil = make_wheel(tmp_path, "flatbuffers", "99.0", files={"../../evil.py": "x"})
    stand.server.folder = tmp_path

    error = stand.fails(stand.plan(GOOD, requires=("flatbuffers",)))

    assert (error.code, error.values["file"]) == ("wheel-escapes", evil.name)
    assert evil.name not in files_asked(stand)


def test_of_the_wheels_of_a_requirement_the_one_that_fits_best_is_installed(
    stand: Stand, tmp_path: Path
) -> None:
    """protobuf has one for each system, and one for all of them."""
    for path in stand.server.folder.glob("*.whl"):
        shutil.copy(path, tmp_path)
    make_wheel(tmp_path, "several", "1.0", files={"several.py": "FOR = 'all'"})
    here = str(next(iter(tags.sys_tags())))
    make_wheel(tmp_path, "several", "1.0", files={"several.py": "FOR = 'this'"}, tag=here)
    stand.server.folder = tmp_path

    stand.apply(stand.plan(GOOD, requires=("several",)))

    assert (stand.venv.site / "several.py").read_text() == "FOR = 'this'"


def test_room_is_looked_for_before_the_download(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil._ntuple_diskusage
    plan = stand.plan(*CUDA)
    size = sum(wheel.size for wheel in plan.install)
    needed = int(size * 1.7) + (64 << 20)

    def room(free: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, free))

    room(needed - 1)
    error = stand.fails(plan)
    assert (error.code, error.values["needed"]) == ("no-space", "0.1 GB")
    assert files_asked(stand) == set()
    room(needed)
    stand.apply(plan)
    stand.undo()
    room(64 << 20)
    stand.apply(plan)  # all of it is in the cache


def test_files_of_their_own_are_for_tools_that_write_into_them(stand: Stand) -> None:
    """A cache of uv whose files they changed would bring the wrong ones from then on."""
    stand.have("bystander 1.0")
    (stand.venv.site / "bystander-1.0.dist-info" / "INSTALLER").write_text("Poetry 2.5.1\n")

    stand.apply(stand.plan(*CUDA))

    module = stand.venv.site / "onnxruntime" / "__init__.py"
    provider = stand.venv.site / "onnxruntime" / "capi" / "libonnxruntime_providers_cuda.so"
    assert module.stat().st_nlink == 1
    assert provider.stat().st_nlink == 2


def test_without_a_place_for_a_cache(stand: Stand) -> None:
    """A service has no home that it may write to."""
    uv = stand.uv()
    environ = {**uv.environ, "UV_CACHE_DIR": "/dev/null/cache"}

    stand.apply(stand.plan(*CUDA, requires=REQUIRES), uv=replace(uv, environ=environ))

    assert stand.names()["onnxruntime-gpu"] == "1.26.0"
    stand.undo()
    assert stand.unchanged()


def test_a_python_that_prints_when_it_starts_is_named(stand: Stand) -> None:
    (stand.venv.site / "loud.pth").write_text("import sys; print('welcome')\n")
    stand.have()
    target = stand.venv.target()

    error = stand.fails(stand.plan(*CUDA), target=target)

    assert (error.code, error.values["printed"]) == ("python-prints", "welcome")
    assert error.values["path"] == target.executable


linux = pytest.mark.skipif(sys.platform != "linux", reason="syncfs is Linux's")


class CLibrary:
    """Stands for the C library: notes which filesystem it is to write."""

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.twice = threading.Event()

    def syncfs(self, descriptor: int) -> int:
        self.folders.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        if len(self.folders) > 1:
            self.twice.set()
        return 0


def writers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "(_write_each_second)" in thread.name]


@linux
def test_it_is_written_again_and_again_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = CLibrary()
    monkeypatch.setattr(staging, "_SECONDS", 0.001)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    with written_early(tmp_path):
        assert library.twice.wait(20)
        running = writers()
    for thread in running:
        thread.join(20)
    assert running
    assert not any(thread.is_alive() for thread in running)
    assert set(library.folders) == {str(tmp_path)}
