"""Inputs that are guessed from what a session says of its model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from ortgpu_fix.guests.bench.children import measure_inputs as guess


class Row(NamedTuple):
    """An input as `get_inputs` tells it."""

    name: str
    shape: list[int | str | None]
    type: str = "tensor(float)"


def first(*rows: Row, **given: list[int]) -> dict[str, list[int]]:
    return next(guess.candidates(list(rows), given))


def tried(*rows: Row, **given: list[int]) -> list[dict[str, list[int]]]:
    return list(guess.candidates(list(rows), given))


IMAGE = Row("images", ["batch", 3, "height", "width"])


def test_the_sizes_of_an_image_that_models_are_most_often_made_for_are_tried_first() -> None:
    found = tried(IMAGE)

    assert [each["images"][2:] for each in found[:2]] == [[224, 224], [640, 640]]
    assert all(len(each["images"]) == len(IMAGE.shape) for each in found)


def test_a_decoder_with_a_cache() -> None:
    """As exporters name it: the mask is as long as what came before and what is new."""
    past = [Row(f"past.{at}", ["batch", 8, "past_length", 64]) for at in ("key", "value")]
    rows = [
        Row("input_ids", ["batch", "sequence_length"], "tensor(int64)"),
        Row("attention_mask", ["batch", "past_length + sequence_length"], "tensor(int64)"),
        Row("position_ids", ["batch", "sequence_length"], "tensor(int64)"),
        *past,
    ]

    for shapes in tried(*rows):
        [_, new], [_, whole] = shapes["input_ids"], shapes["attention_mask"]
        assert shapes["past.key"] == shapes["past.value"]
        batch, heads, before, width = shapes["past.key"]
        assert (batch, heads, width) == (1, 8, 64)
        assert whole == before + new
    assert first(*rows, input_ids=[2, 1])["attention_mask"] == [2, 129]
    assert first(Row("mask", ["batch", "total_sequence_length"])) == {"mask": [1, 256]}
    assert first(Row("mask", ["batch", "past_length + 1"])) == {"mask": [1, 129]}


def test_the_state_of_a_voice_detector() -> None:
    rows = [
        Row("input", [None, None]),
        Row("state", [2, None, 128]),
        Row("sr", [], "tensor(int64)"),
    ]
    assert {"input": [1, 512], "state": [2, 1, 128], "sr": []} in tried(*rows)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"other": [1]}, "input-unknown"),
        ({"images": [1, 3, 8]}, "shape-unfit"),
        ({"images": [1, 4, 8, 8]}, "shape-unfit"),
    ],
)
def test_given_shapes_that_do_not_fit(given: dict[str, list[int]], code: str) -> None:
    with pytest.raises(guess.Refused) as caught:
        guess.check_given([IMAGE], given)
    assert caught.value.code == code


def made(row: Row, shape: list[int], **others: list[int]) -> Any:
    rows = [row, *(Row(name, list(sizes)) for name, sizes in others.items())]
    return guess.values(np, rows, {row.name: shape, **others})[row.name]


@pytest.mark.parametrize(
    ("name", "kind", "shape", "wanted"),
    [
        ("sr", "int64", [], 16000),
        ("sample_rate", "int32", [1], [16000]),
        ("attention_mask", "int64", [1, 3], [[1, 1, 1]]),
        ("token_type_ids", "int64", [1, 3], [[0, 0, 0]]),
        ("position_ids", "int64", [2, 3], [[0, 1, 2], [0, 1, 2]]),
        ("use_cache_branch", "bool", [1], [True]),
        ("text", "string", [2], ["text", "text"]),
    ],
)
def test_values_by_name_and_type(name: str, kind: str, shape: list[int], wanted: object) -> None:
    array = made(Row(name, list(shape), f"tensor({kind})"), shape)

    assert array.tolist() == wanted
    assert array.dtype == (object if kind == "string" else kind)


@pytest.mark.parametrize("kind", ["float", "float16", "double", "uint8", "int8", "int64", "uint16"])
def test_values_are_in_a_range_that_models_take_and_always_the_same(kind: str) -> None:
    row = Row("x", [3, 500], f"tensor({kind})")
    array = made(row, [3, 500])

    assert array.shape == (3, 500)
    assert array.dtype == guess.NUMPY_TYPES[row.type]
    assert array.min() >= 0
    assert array.max() <= (255 if kind in {"uint8", "uint16"} else 1)
    assert (array == made(row, [3, 500])).all()


@pytest.mark.parametrize(
    ("row", "shape", "code"),
    [
        (Row("x", [1], "seq(tensor(float))"), [1], "input-type"),
        (Row("x", [1 << 30, 4]), [1 << 30, 4], "shape-large"),
    ],
)
def test_what_no_values_are_made_of(row: Row, shape: list[int], code: str) -> None:
    with pytest.raises(guess.Refused) as caught:
        made(row, shape)
    assert caught.value.code == code
