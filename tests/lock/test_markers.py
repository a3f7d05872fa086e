"""Markers that tell the machines of a lock apart, in as few words as it takes."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker

from ortgpu_fix.lock.markers import MarkerPlace, marker_for


def place(text: str) -> MarkerPlace:
    system, machine, python = text.split()
    return MarkerPlace(sys_platform=system, platform_machine=machine, python_version=python)


A, B, C, D = (
    place(text)
    for text in ("linux x86_64 3.11", "linux x86_64 3.12", "linux aarch64 3.11", "win32 AMD64 3.11")
)


@pytest.mark.parametrize(
    ("chosen", "everywhere", "expected"),
    [
        ([A, B, C, D], [A, B, C, D], ""),
        ([D], [A, B, C, D], "sys_platform == 'win32'"),
        ([C], [A, B, C, D], "platform_machine == 'aarch64'"),
        ([C, D], [A, C, D], "platform_machine == 'AMD64' or platform_machine == 'aarch64'"),
        ([A], [A, B, C], "platform_machine == 'x86_64' and python_version == '3.11'"),
        (
            [A, D],
            [A, B, C, D],
            (
                "(platform_machine == 'AMD64' and python_version == '3.11')"
                " or (platform_machine == 'x86_64' and python_version == '3.11')"
            ),
        ),
    ],
)
def test_as_few_words_as_it_takes(
    chosen: list[MarkerPlace], everywhere: list[MarkerPlace], expected: str
) -> None:
    assert marker_for(chosen, everywhere) == expected


PLACES = [
    MarkerPlace(sys_platform=system, platform_machine=machine, python_version=python)
    for system, machine, python in product(("linux", "win32"), ("AMD64", "x86_64"), ("3.9", "3.13"))
]


@given(st.sets(st.sampled_from(PLACES), min_size=1), st.data())
def test_it_holds_where_it_should_and_nowhere_else(
    everywhere: set[MarkerPlace], data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(sorted(everywhere)), min_size=1))

    text = marker_for(chosen, everywhere)

    for one in everywhere:
        environment = {axis: getattr(one, axis) for axis in MarkerPlace.__slots__}
        holds = not text or Marker(text).evaluate(environment)
        assert holds == (one in chosen)
