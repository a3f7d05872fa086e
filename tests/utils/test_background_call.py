"""A call that is waited for with a limit, and what comes when nobody waits any more."""

from __future__ import annotations

import threading
import time

import pytest

from ortgpu_fix.utils.background_call import BackgroundCall


def test_an_answer_that_comes_late_is_closed_and_can_still_be_had() -> None:
    come, closed = threading.Event(), list[bool]()
    for close in (None, closed.append):
        come.clear()
        call = BackgroundCall(lambda: come.wait(20), close)
        began = time.monotonic()

        with pytest.raises(TimeoutError):
            call.result(0.2)

        assert 0.2 <= time.monotonic() - began < 5
        come.set()
        assert call.result(20) is True
    assert closed == [True]


def test_a_wait_ends_soon_where_it_is_stopped() -> None:
    stop, come = threading.Event(), threading.Event()
    stop.set()
    began = time.monotonic()

    with pytest.raises(TimeoutError):
        BackgroundCall(lambda: come.wait(20)).result(20, stop)

    come.set()
    assert time.monotonic() - began < 5
