"""Make the three small models that `verify` runs: a Conv, a MatMul and an FFT.

    python scripts/matrix/make_models.py    # writes conv.onnx, matmul.onnx and fft.onnx into data/

And start.onnx, of a few hundred bytes, which a Dockerfile carries: a Conv and a MatMul.

Each is one node, with its input and the output that must come of it in the file's metadata, so
that a check needs neither a second provider (the FFT has no CPU kernel) nor a second file. Opset 12
and IR 6 are read by every release from 1.11 on. Inputs and weights are multiples of 1/8 that
fit into the ten bits of TF32, and the sums fit into a float: on every GPU, with TF32 or without,
Conv and MatMul have one right answer, computed here with whole numbers and not by onnxruntime.
Running it again makes the same bytes.
"""

from __future__ import annotations

import cmath
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from onnx import (  # type: ignore[import-not-found,unused-ignore]
    ModelProto,
    NodeProto,
    TensorProto,
    checker,
    helper,
)

OPSET = 12
IR_VERSION = 6
EIGHTH = 8
"""Every value is a whole number of eighths."""


def numbers(count: int, step: int) -> list[int]:
    """Return `count` whole numbers from -8 to 8 that do not repeat soon."""
    return [(index * step + index // 17) % 17 - 8 for index in range(count)]


def conv() -> ModelProto:
    """Return a 3x3 convolution of 4 channels of 16x16 to 8 channels."""
    channels, size, filters, kernel = 4, 16, 8, 3
    image = numbers(channels * size * size, 5)
    weights = numbers(filters * channels * kernel * kernel, 7)
    out = size - kernel + 1
    result = [
        sum(
            image[(channel * size + row + down) * size + column + right]
            * weights[((number * channels + channel) * kernel + down) * kernel + right]
            for channel in range(channels)
            for down in range(kernel)
            for right in range(kernel)
        )
        for number in range(filters)
        for row in range(out)
        for column in range(out)
    ]
    return model(
        "conv",
        helper.make_node("Conv", ["input", "weights"], ["output"], name="conv"),
        ((1, channels, size, size), eighths(image)),
        ((1, filters, out, out), [value / EIGHTH**2 for value in result]),
        ((filters, channels, kernel, kernel), eighths(weights)),
    )


def matmul() -> ModelProto:
    """Return a product of a 32x64 and a 64x48 matrix."""
    rows, inner, columns = 32, 64, 48
    left, right = numbers(rows * inner, 3), numbers(inner * columns, 11)
    result = [
        sum(left[row * inner + at] * right[at * columns + column] for at in range(inner))
        for row in range(rows)
        for column in range(columns)
    ]
    return model(
        "matmul",
        helper.make_node("MatMul", ["input", "weights"], ["output"], name="matmul"),
        ((rows, inner), eighths(left)),
        ((rows, columns), [value / EIGHTH**2 for value in result]),
        ((inner, columns), eighths(right)),
    )


def fft() -> ModelProto:
    """Return a real-to-complex Fourier transform of four rows of 32."""
    rows, size = 4, 32
    signal = numbers(rows * size, 5)
    result: list[float] = []
    for row in range(rows):
        for frequency in range(size // 2 + 1):
            total = sum(
                signal[row * size + at] / EIGHTH * cmath.exp(-2j * cmath.pi * frequency * at / size)
                for at in range(size)
            )
            result += [round(total.real, 5) + 0.0, round(total.imag, 5) + 0.0]
    node = helper.make_node(
        "Rfft",
        ["input"],
        ["output"],
        name="fft",
        domain="com.microsoft",
        onesided=1,
        normalized=0,
        signal_ndim=1,
    )
    return model(
        "fft", node, ((rows, size), eighths(signal)), ((rows, size // 2 + 1, 2), result), None
    )


def start() -> ModelProto:
    """Return a 2x2 convolution of ones, and the product of what it gives with a column of ones.

    The image is 0 to 8, row by row; so [[8, 12], [20, 24]], and of that [[20], [44]].
    """
    ones = helper.make_tensor("ones", TensorProto.FLOAT, (1, 1, 2, 2), [1.0] * 4)
    column = helper.make_tensor("column", TensorProto.FLOAT, (2, 1), [1.0] * 2)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["input", "ones"], ["sums"]),
            helper.make_node("MatMul", ["sums", "column"], ["output"]),
        ],
        "start",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, (1, 1, 3, 3))],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, (1, 1, 2, 1))],
        [ones, column],
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    checker.check_model(made)
    return made


def eighths(values: Sequence[int]) -> list[float]:
    """Return the values that the whole numbers stand for."""
    return [value / EIGHTH for value in values]


Array = tuple[tuple[int, ...], list[float]]


def model(
    name: str, node: NodeProto, given: Array, expected: Array, weights: Array | None
) -> ModelProto:
    """Return the model of one node, with what goes in and what must come out in its metadata."""
    graph = helper.make_graph(
        [node],
        name,
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, given[0])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, expected[0])],
        [helper.make_tensor("weights", TensorProto.FLOAT, *weights)] if weights else [],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(
        graph, opset_imports=opsets, producer_name="ortgpu-fix", ir_version=IR_VERSION
    )
    for key, (shape, values) in (("input", given), ("expected", expected)):
        text = json.dumps({"shape": shape, "values": values}, separators=(",", ":"))
        made.metadata_props.add(key=key, value=text)
    checker.check_model(made)
    return made


def main(folder: Path) -> None:
    """Write the models into `folder`."""
    for made in (conv(), matmul(), fft(), start()):
        path = folder / f"{made.graph.name}.onnx"
        path.write_bytes(made.SerializeToString(deterministic=True))
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "data")
