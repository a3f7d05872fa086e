"""How far an output is from the CPU's, of every kind that onnxruntime returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ortgpu_fix.guests.bench.children.measure_session import compare

NAN, INF = float("nan"), float("inf")


def floats(*values: float, kind: str = "float32") -> Any:
    return np.array(values, kind)


def compared(found: Any, expected: Any) -> tuple[Any, Any]:
    row = compare(np, found, expected)
    return row["deviation"], row["problem"]


@pytest.mark.parametrize("kind", ["float16", "float32"])
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((NAN, 1), (INF, 1)),
        ((INF, 1), (NAN, 1)),
        ((-INF, 1), (INF, 1)),
        ((1, 2), (NAN, 2)),
        ((1, 2), (1, INF)),
    ],
)
def test_what_is_no_number_is_right_only_where_the_cpu_has_the_same(
    found: tuple[float, ...], expected: tuple[float, ...], kind: str
) -> None:
    one, two = floats(*found, kind=kind), floats(*expected, kind=kind)

    assert compared(one, two) == (None, "nan")
    assert compared([one], [two]) == (None, "nan")


def test_numpy_before_1_19_compares_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numpy that Python 3.8 may have: `array_equal` had no `equal_nan`."""
    equal = np.array_equal

    def of_two(one: Any, two: Any) -> bool:
        return equal(one, two)

    monkeypatch.setattr(np, "array_equal", of_two)
    assert compared(floats(NAN, INF), floats(NAN, INF)) == (0.0, None)


TENSORS = [floats(1, 2), floats(4)]


@pytest.mark.parametrize(
    ("found", "expected", "answer"),
    [
        (TENSORS, TENSORS, (0.0, None)),
        ([floats(1, 2), floats(3)], TENSORS, (0.25, None)),  # a part of the largest in all
        ([floats(2, 2), floats(4)], TENSORS, (0.25, None)),
        ([floats(1, 2)], TENSORS, (None, "shape")),
        ([floats(1), floats(2, 4)], TENSORS, (None, "shape")),
        (floats(1, 2, 4), TENSORS, (None, "shape")),
        ([], [], (0.0, None)),
        ([], TENSORS, (None, "shape")),
        ([{0: 0.25, 1: 0.5}], [{0: 0.25, 1: 0.5}], (0.0, None)),
        ([{0: 0.25, 1: 0.75}], [{0: 0.25, 1: 0.5}], (0.5, None)),
        ([{0: 0.25, 2: 0.5}], [{0: 0.25, 1: 0.5}], (None, "shape")),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, (0.5, None)),
        ([np.array(["a", "b"])], [np.array(["a", "c"])], (0.5, None)),
    ],
)
def test_lists_and_maps_are_compared_element_by_element(
    found: Any, expected: Any, answer: tuple[Any, Any]
) -> None:
    assert compared(found, expected) == answer


@pytest.mark.parametrize("other", [None, object()])
def test_what_has_no_numbers_is_not_compared(other: object) -> None:
    assert compared(other, other) == (None, "type")
    assert compared(floats(1), other) == (None, "type")
    assert compared(other, floats(1)) == (None, "type")


def test_shapes_and_whole_numbers() -> None:
    row = compare(np, floats(1, 2), floats(1))
    whole = np.array([1, 2, 3, 4])

    assert (row["deviation"], row["problem"], row["shape"], row["found"]) == (
        *(None, "shape"),
        *([1], [2]),
    )
    assert compared(floats(), floats()) == (0.0, None)
    assert compared(whole, np.array([1, 2, 3, 5])) == (0.25, None)
    assert compared(floats(1e-9), floats(2e-9)) == (pytest.approx(1e-3), None)
