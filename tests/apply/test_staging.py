"""Which wheels an engine is asked to bring, and what is written to the disk meanwhile."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ortgpu_fix.apply import staging
from ortgpu_fix.apply.staged_tree import StagedTree
from ortgpu_fix.apply.staging import StagedWheels, written_early
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.engine.choose import Engine
from ortgpu_fix.engine.common import Prefix, StagedFile
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import Installed
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.progress import silent
from support.local_index import make_wheel

EMPTY = StagedTree({}, {}, (), (), ())
MIRROR = "https://t.example/whl/cu128"


def wheel(name: str, index: str = "pypi", sha256: str = "ab") -> Wheel:
    file = f"{name}-1-py3-none-any.whl"
    return Wheel(name=name, version="1", index_url=index, file=file, size=100, sha256=sha256)


class Asked:
    """An engine that notes what it is asked to bring, and brings what it can."""

    def __init__(self, *, cached: str = "", online: str = "") -> None:
        self.calls: list[tuple[str, bool]] = []
        self._cached, self._online = cached.split(), online.split()

    def fetch(
        self, wheels: Sequence[Wheel], _target: object, sources: IndexConfig, *_: object
    ) -> bool:
        self.calls.append((" ".join(row.name for row in wheels), sources.offline))
        able = {*self._cached, *(() if sources.offline else self._online)}
        return {row.name for row in wheels} <= able


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wheels").mkdir()
    monkeypatch.setattr(staging, "spoiled_wheels", lambda *_, **__: ())
    monkeypatch.setattr(Site, "of", lambda _: None)
    return tmp_path


def fetch(
    asked: Asked,
    folder: Path,
    *wheels: Wheel,
    progress: Any = silent,
    layered: bool = False,
    **sources: Any,
) -> str:
    """Return the names of what was brought."""
    into = Prefix(folder / "tree", folder / "work", folder / "lock")
    found = staging._fetch(
        wheels,
        cast("Any", None),
        IndexConfig(**sources),
        into,
        cast("Engine", asked),
        progress,
        layered,
    )
    return " ".join(row.name for row in found)


def test_what_an_engine_can_have_is_asked_of_it(folder: Path) -> None:
    """With a hash, from a server, and not begun or near already."""
    (folder / "wheels" / "begun-1-py3-none-any.whl.part").touch()
    (folder / "near").mkdir()
    (folder / "near" / "near-1-py3-none-any.whl").touch()
    names = ("begun", "near", "plain")
    asked = Asked(cached="plain other")

    brought = fetch(
        asked,
        folder,
        *map(wheel, names),
        wheel("unknown", sha256=""),
        wheel("other", MIRROR),
        wheel("local", "file:///srv/whl"),
        find_links=folder / "near",
    )

    assert brought == "plain other"
    assert asked.calls == [("plain other", True)]


def test_beside_an_index_on_this_disk_only_the_others_are_asked_for(folder: Path) -> None:
    asked = Asked(cached="other")

    assert fetch(
        asked, folder, wheel("plain"), wheel("other", MIRROR), index_url="file:///srv/simple"
    ) == ("other")


def test_where_nothing_can_be_asked_for_nothing_is(folder: Path) -> None:
    asked = Asked()

    assert fetch(asked, folder, wheel("unknown", sha256="")) == ""
    assert asked.calls == []


def test_the_cache_is_asked_first_and_then_the_network(folder: Path) -> None:
    asked = Asked(cached="a", online="b")

    assert fetch(asked, folder, wheel("a"), wheel("b")) == "a b"
    assert asked.calls == [("a b", True), ("a b", False)]


def test_what_came_before_it_failed_is_taken_from_the_cache(folder: Path) -> None:
    asked = Asked(cached="a c")

    assert fetch(asked, folder, wheel("a"), wheel("b"), wheel("c")) == "a c"
    assert asked.calls == [
        *(("a b c", True), ("a b c", False), ("a", True), ("b", True), ("c", True)),
    ]


def test_without_a_network_only_the_cache_is_asked(folder: Path) -> None:
    asked = Asked(cached="a", online="b")

    assert fetch(asked, folder, wheel("a"), wheel("b"), offline=True) == "a"
    assert {offline for _, offline in asked.calls} == {True}


def test_room_is_looked_for_before_the_network_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil._ntuple_diskusage
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10**6))

    assert fetch(Asked(cached="a"), folder, wheel("a")) == "a"
    with pytest.raises(Error, match="no-space"):
        fetch(Asked(online="a"), folder, wheel("a"))


def test_what_somebody_changed_in_the_cache_is_named_and_not_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "spoiled_wheels", lambda *_, **__: (wheel("b"),))
    told: list[tuple[str, dict[str, object]]] = []
    asked = Asked(cached="a b")

    brought = fetch(
        asked,
        folder,
        wheel("a"),
        wheel("b"),
        progress=lambda step, **more: told.append((step, more)),
    )

    assert brought == "a"
    assert told == [("cache-spoiled", {"names": "b"})]
    assert asked.calls == [("a b", True), ("a", True)]
    assert fetch(Asked(cached="b"), folder, wheel("b")) == ""


def test_room_is_needed_for_what_is_not_there_and_for_what_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil._ntuple_diskusage
    (tmp_path / "begun").write_bytes(bytes(400))
    row = wheel("a")._replace(size=1000)
    needed = (1000 - 400) + 1700 + (64 << 20)

    def room(free: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, free))
        staging._check_space(tmp_path, [row])

    room(needed)
    with pytest.raises(Error) as caught:
        room(needed - 1)
    assert caught.value.values == {
        "folder": str(tmp_path),
        "needed": "0.1 GB",
        "free": "0.1 GB",
    }
    (tmp_path / "begun").write_bytes(bytes(4000))  # of another plan
    room(1700 + (64 << 20))


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


@linux
def test_what_cannot_be_written_early_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    monkeypatch.setattr(staging, "_SECONDS", 0.001)
    for folder, library in ((tmp_path / "none", CLibrary()), (tmp_path, object())):
        monkeypatch.setattr(ctypes, "CDLL", lambda _, library=library: library)
        with written_early(folder):
            running = writers()
        for thread in running:
            thread.join(20)
    assert failures == []


@linux
def test_the_real_library_takes_it(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        assert ctypes.CDLL(None).syncfs(descriptor) == 0
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(("installer", "owned"), [("Poetry 2.5.1", 1), ("pip", 0)])
def test_files_of_their_own_are_for_tools_that_write_into_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installer: str, owned: int
) -> None:
    made: list[object] = []
    target: Any = SimpleNamespace(installed=[Installed("app", "1", "", installer=installer)])
    site = SimpleNamespace(
        stage=tmp_path / "stage", engine_lock=tmp_path / "lock", platlib=str(tmp_path)
    )
    monkeypatch.setattr(Site, "of", lambda _: site)
    monkeypatch.setattr(staging, "choose_wheels", lambda *_: ((), {}))
    monkeypatch.setattr(staging, "_fetch", lambda *_: ())
    monkeypatch.setattr(staging, "own_shared_files", lambda *told: made.append(told))
    monkeypatch.setattr(staging, "read_staged_tree", lambda *_: EMPTY)

    staging.stage_wheels(
        cast("Any", None),
        target,
        index=Index(IndexConfig()),
        engine=cast("Engine", None),
        progress=silent,
        confirm=lambda _: None,
    )

    assert len(made) == owned


@pytest.mark.parametrize("layered", [False, True])
def test_what_was_downloaded_is_installed_into_the_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, layered: bool
) -> None:
    monkeypatch.setattr(staging, "is_layered", lambda folder: layered and folder == str(tmp_path))
    told: list[tuple[object, ...]] = []

    def install(*given: object) -> frozenset[str]:
        told.append(given)
        return frozenset({"/there"})

    site = SimpleNamespace(
        stage=tmp_path / "stage", engine_lock=tmp_path / "lock", platlib=str(tmp_path)
    )
    path = make_wheel(tmp_path, "a", "1")
    row = wheel("a")._replace(file=path.name)
    monkeypatch.setattr(Site, "of", lambda _: site)
    monkeypatch.setattr(staging, "choose_wheels", lambda *_: ([row], {}))
    monkeypatch.setattr(staging, "download_all", lambda *_: (path,))
    monkeypatch.setattr(staging, "install_lean", install)
    monkeypatch.setattr(staging, "read_staged_tree", lambda *_: EMPTY)
    target: Any = SimpleNamespace(installed=[])
    engine: Any = SimpleNamespace(name="pip 25", fetch=lambda *_: False)

    done = staging.stage_wheels(
        cast("Any", None),
        target,
        index=Index(IndexConfig()),
        engine=engine,
        progress=silent,
        confirm=lambda _: None,
    )

    in_place = frozenset({"/there"} if layered else ())
    assert done == StagedWheels((row,), EMPTY._replace(in_place=in_place))
    into = Prefix(site.stage / "tree", site.stage / "engine", site.engine_lock)
    assert told == [([StagedFile(wheel=row, path=path)], target, site, into, engine, layered)]


@pytest.mark.parametrize("layered", [False, True])
def test_a_provider_stays_in_a_layered_environment_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, layered: bool
) -> None:
    asked: list[object] = []

    def spoiled(*_: object, provider_stays: bool) -> tuple[()]:
        asked.append(provider_stays)
        return ()

    monkeypatch.setattr(staging, "spoiled_wheels", spoiled)

    fetch(Asked(cached="a"), folder, wheel("a"), layered=layered)

    assert asked == [layered]
