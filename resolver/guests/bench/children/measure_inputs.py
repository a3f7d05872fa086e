"""Inputs for a model that is known only by what its session says of it.

Part of the script `measure`: run by the target's interpreter (3.8 or newer), with the standard
library and the target's numpy. A free dimension takes the size that a given shape binds it to,
or one that models of its kind take; which of those the model accepts is tried by running it.
Values are drawn once, from a fixed seed, in the range that the type and the name suggest.
"""

from __future__ import annotations

import math
import re
from typing import Any, Dict, Iterator, List, Union

Dimension = Union[int, str, None]
Shape = List[int]
Shapes = Dict[str, Shape]

NUMPY_TYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(bool)": "bool",
    "tensor(string)": "object",
    **{
        f"tensor({kind})": kind
        for size in (8, 16, 32, 64)
        for kind in (f"int{size}", f"uint{size}")
    },
}
TRIED = (
    *(((224, 224), 128), ((640, 640), 512), ((48, 320), 576), ((512, 512), 256), ((256, 256), 64)),
    *(((128, 128), 16), ((64, 64), 1024), ((32, 32), 16000), ((32, 32), 1)),
)
"""Heights and widths, and lengths of sequences, to try in this order. 48 x 320 is what text
recognisers take, 512 and 576 what voice detectors do."""
SAMPLE_RATE = 16000
IMAGE_RANK = 4
LARGE = 1 << 31
"""Bytes of one input beyond which no size is tried."""


class Refused(Exception):  # noqa: N818 - it is an answer
    """What was given does not fit the model; `code` and `values` say why."""

    def __init__(self, code: str, **values: object) -> None:
        super().__init__(code)
        self.code, self.values = code, values


def check_given(inputs: list[Any], given: Shapes) -> None:
    """Raise Refused where a given shape is not one that the model's input declares."""
    declared = {tensor.name: list(tensor.shape) for tensor in inputs}
    for name, shape in given.items():
        if name not in declared:
            raise Refused("input-unknown", name=name, inputs=", ".join(declared))
        wanted = declared[name]
        fits = len(shape) == len(wanted) and all(
            not isinstance(size, int) or size in {-1, actual} for size, actual in zip(wanted, shape)
        )
        if not fits:
            text = "x".join("?" if size is None else str(size) for size in wanted) or "scalar"
            raise Refused("shape-unfit", name=name, shape="x".join(map(str, shape)), declared=text)


def candidates(inputs: list[Any], given: Shapes) -> Iterator[Shapes]:
    """Yield the shapes to try, the likeliest first, each only once; `given` is in all of them."""
    seen = []
    for image, length in TRIED:
        for everywhere in (True, False):
            shapes = fill(inputs, given, image, length, everywhere=everywhere)
            if shapes not in seen:
                seen.append(shapes)
                yield shapes


def fill(
    inputs: list[Any], given: Shapes, image: tuple[int, int], length: int, *, everywhere: bool
) -> Shapes:
    """Return shapes in which every free dimension has a size.

    Dimensions of one name have one size. Unless `everywhere`, a sequence's length goes only into
    the last dimension: what is free in the middle is then a number of items, one.
    """
    bound = {
        name: size
        for tensor in inputs
        for name, size in zip(tensor.shape, given.get(tensor.name, ()))
        if is_named(name)
    }
    batches = {tensor.shape[0] for tensor in inputs if len(tensor.shape) > 1}

    def size_of(name: Dimension, at: int, rank: int) -> int:
        if isinstance(name, int) and name >= 0:
            return name
        if not is_named(name):
            return likely("", at, rank)
        if "+" in str(name):  # `past_sequence_length + sequence_length`
            parts = str(name).replace(" ", "").split("+")
            return sum(int(part) if part.isdigit() else size_of(part, at, rank) for part in parts)
        if name not in bound:
            bound[name] = likely(str(name), at, rank)
        return bound[name]

    def likely(name: str, at: int, rank: int) -> int:
        first = (at == 0 and rank > 1) or (name and name in batches)
        low, last = name.lower(), at == rank - 1
        if first or re.search(r"batch|^bs$|^n$|heads|beams|layers", low):
            return 1
        if "total" in low:
            return 2 * length
        sequence = re.search(r"past|seq|len|time|frame|token", low)
        if rank == IMAGE_RANK and not sequence:
            return image[1] if last or re.search(r"width|^w$", low) else image[0]
        return length if everywhere or last or sequence else 1

    return {
        tensor.name: list(given[tensor.name])
        if tensor.name in given
        else [size_of(name, at, len(tensor.shape)) for at, name in enumerate(tensor.shape)]
        for tensor in inputs
    }


def is_named(name: Dimension) -> bool:
    """Return whether a free dimension has a name, which others may have, too."""
    return isinstance(name, str) and name not in {"", "?"}


def batched(inputs: list[Any], shapes: Shapes, batch: int, *, anonymous: bool) -> Shapes:
    """Return the shapes with `batch` items instead of one, where the first dimension is free.

    A dimension of the same name elsewhere is a number of items, too; `anonymous`: so is every
    other free one that is one, for not every model names them.
    """
    names = {tensor.shape[0] for tensor in inputs if tensor.shape and is_named(tensor.shape[0])}

    def size_of(name: Dimension, at: int, size: int) -> int:
        items = at == 0 or name in names or (anonymous and size == 1)
        return batch if items and not isinstance(name, int) else size

    return {
        tensor.name: [
            size_of(name, at, size)
            for at, (name, size) in enumerate(zip(tensor.shape, shapes[tensor.name]))
        ]
        for tensor in inputs
    }


def values(np: Any, inputs: list[Any], shapes: Shapes) -> dict[str, Any]:
    """Return an array for each input, always the same ones; raise Refused for an unknown type."""
    chance = np.random.RandomState(20)
    longest = max((shape[-1] for shape in shapes.values() if len(shape) > 1), default=1)
    arrays = {}
    for tensor in inputs:
        kind, shape = NUMPY_TYPES.get(tensor.type), shapes[tensor.name]
        if kind is None:
            raise Refused("input-type", name=tensor.name, type=tensor.type)
        if math.prod(shape) * max(np.dtype(kind).itemsize, 1) > LARGE:
            raise Refused("shape-large", name=tensor.name, shape="x".join(map(str, shape)))
        if kind.startswith("float"):
            arrays[tensor.name] = np.asarray(chance.random_sample(shape)).astype(kind)
            continue
        meanings = (
            ("", "text" if kind == "object" else None),
            ("", True if kind == "bool" else None),
            (r"^sr$|sampl\w*_?rate", SAMPLE_RATE),
            (r"mask", 1),
            (r"type_id|segment", 0),
            (r"_?len(gth)?s?$", longest),
            (r"position", np.arange(shape[-1]) if shape else None),
        )
        name, above = tensor.name.lower(), 256 if kind in {"uint8", "int16", "uint16"} else 2
        meant = (value for form, value in meanings if value is not None and re.search(form, name))
        value = next(meant, None)
        if value is None:
            value = np.asarray(chance.randint(0, above, shape))
        arrays[tensor.name] = np.broadcast_to(value, shape).astype(kind)
    return arrays
