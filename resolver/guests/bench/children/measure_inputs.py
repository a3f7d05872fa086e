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
        f"tensor({sign}int{bits})": f"{sign}int{bits}"
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
IMAGE_SIZES = (
    (224, 224),
    (640, 640),
    (48, 320),
    (512, 512),
    (256, 256),
    (128, 128),
    (64, 64),
    (32, 32),
)
"""Heights and widths to try, in this order; 48 x 320 is what text recognisers take."""
LENGTHS = (128, 512, 576, 256, 64, 16, 1024, 16000, 1)
"""Lengths of sequences to try, in this order; 512 and 576 are what voice detectors take."""
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
    declared = {row.name: list(row.shape) for row in inputs}
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
    for number in range(max(len(IMAGE_SIZES), len(LENGTHS))):
        image = IMAGE_SIZES[min(number, len(IMAGE_SIZES) - 1)]
        length = LENGTHS[min(number, len(LENGTHS) - 1)]
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
    sizes = Sizes(inputs, given, image, length, everywhere=everywhere)
    return {
        row.name: list(given[row.name])
        if row.name in given
        else [sizes.of(name, at, len(row.shape)) for at, name in enumerate(row.shape)]
        for row in inputs
    }


class Sizes:
    """What size each free dimension takes."""

    def __init__(
        self,
        inputs: list[Any],
        given: Shapes,
        image: tuple[int, int],
        length: int,
        *,
        everywhere: bool,
    ) -> None:
        self.image, self.length, self.everywhere = image, length, everywhere
        self.bound = {
            name: size
            for row in inputs
            for name, size in zip(row.shape, given.get(row.name, ()))
            if isinstance(name, str) and name not in {"", "?"}
        }
        self.batches = {
            row.shape[0] for row in inputs if len(row.shape) > 1 and isinstance(row.shape[0], str)
        }

    def of(self, name: Dimension, at: int, rank: int) -> int:
        """Return the size of a dimension of this name, at this place of so many."""
        if isinstance(name, int) and name >= 0:
            return name
        key = name if isinstance(name, str) and name != "?" else ""
        if "+" in key:  # `past_sequence_length + sequence_length`
            parts = key.replace(" ", "").split("+")
            return sum(int(part) if part.isdigit() else self.of(part, at, rank) for part in parts)
        if not key:
            return self.likely(key, at, rank)
        if key not in self.bound:
            self.bound[key] = self.likely(key, at, rank)
        return self.bound[key]

    def likely(self, name: str, at: int, rank: int) -> int:
        """Return the size that dimensions like this one have."""
        low = name.lower()
        first = (at == 0 and rank > 1) or name in self.batches
        if first or re.search(r"batch|^bs$|^n$|heads|beams|layers", low):
            return 1
        if "total" in low:
            return 2 * self.length
        sequence = re.search(r"past|seq|len|time|frame|token", low)
        if rank == IMAGE_RANK and not sequence:
            wide = at == rank - 1 or re.search(r"width|^w$", low)
            return self.image[1] if wide else self.image[0]
        return self.length if self.everywhere or at == rank - 1 or sequence else 1


def batched(inputs: list[Any], shapes: Shapes, batch: int, *, anonymous: bool) -> Shapes:
    """Return the shapes with `batch` items instead of one, where the first dimension is free.

    A dimension of the same name elsewhere is a number of items, too; `anonymous`: so is every
    other free one that is one, for not every model names them.
    """
    names = {row.shape[0] for row in inputs if row.shape and not isinstance(row.shape[0], int)}

    def size_of(name: Dimension, at: int, size: int) -> int:
        free = not isinstance(name, int)
        named = isinstance(name, str) and name not in {"", "?"} and name in names
        return batch if free and (at == 0 or named or (anonymous and size == 1)) else size

    return {
        row.name: [
            size_of(name, at, size)
            for at, (name, size) in enumerate(zip(row.shape, shapes[row.name]))
        ]
        for row in inputs
    }


def values(np: Any, inputs: list[Any], shapes: Shapes) -> dict[str, Any]:
    """Return an array for each input, always the same ones; raise Refused for an unknown type."""
    chance = np.random.RandomState(20)
    longest = max((shape[-1] for shape in shapes.values() if len(shape) > 1), default=1)
    arrays = {}
    for row in inputs:
        kind = NUMPY_TYPES.get(row.type)
        if kind is None:
            raise Refused("input-type", name=row.name, type=row.type)
        shape = shapes[row.name]
        if math.prod(shape) * max(np.dtype(kind).itemsize, 1) > LARGE:
            raise Refused("shape-large", name=row.name, shape="x".join(map(str, shape)))
        constant = integer_for(row.name.lower(), longest)
        arrays[row.name] = array(np, chance, row.name.lower(), kind, shape, constant)
    return arrays


def array(  # noqa: PLR0917 - what an input is
    np: Any, chance: Any, name: str, kind: str, shape: Shape, constant: int | None
) -> Any:
    """Return values that an input of this name and type takes."""
    if kind == "object":
        return np.full(shape, "text", dtype=object)
    if kind == "bool":
        return np.ones(shape, dtype=bool)
    if kind.startswith("float"):
        return np.asarray(chance.random_sample(shape)).astype(kind)
    if constant is not None:
        return np.full(shape, constant, dtype=kind)
    if "position" in name and shape:
        return np.broadcast_to(np.arange(shape[-1], dtype=kind), shape).copy()
    above = 256 if kind in {"uint8", "int16", "uint16"} else 2
    return np.asarray(chance.randint(0, above, shape)).astype(kind)


def integer_for(name: str, longest: int) -> int | None:
    """Return the whole number that an input of this name stands for, where it is known."""
    if re.search(r"^sr$|sampl\w*_?rate", name):
        return SAMPLE_RATE
    if "mask" in name:
        return 1
    if "type_id" in name or "segment" in name:
        return 0
    return longest if re.search(r"_?len(gth)?s?$", name) else None
