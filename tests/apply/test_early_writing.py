"""Waiting data is written while an engine unpacks more."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path

import pytest

from ortgpu_fix.apply import staging
from ortgpu_fix.apply.staging import written_early

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="syncfs is Linux's")


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
    return [thread for thread in threading.enumerate() if "(_write)" in thread.name]


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


def test_the_real_library_takes_it(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        assert ctypes.CDLL(None).syncfs(descriptor) == 0
    finally:
        os.close(descriptor)
