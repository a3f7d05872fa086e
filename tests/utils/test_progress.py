"""A beat while something lasts."""

from __future__ import annotations

import threading

import pytest

from ortgpu_fix.utils.progress import beating


def test_where_no_thread_can_be_started_there_is_no_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser has none."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    beats: list[int] = []
    with beating(lambda: beats.append(1)):
        pass

    assert beats == []
