"""Make the models that are timed: of convolutions, attention, a loop, float16, with a cache.

    python scripts/matrix/make_bench_models.py

It writes bench.onnx into data/, and the others into tests/models/.

`bench.onnx` is what `verify --bench` takes where no model is given. The weights are no numbers in
the files but computed from a range by nodes that onnxruntime folds when it loads the model: so a
file has a few kilobytes, and the same bytes each time. Opset 13 and IR 7 are read by every release
from 1.8 on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnx import (  # type: ignore[import-not-found,unused-ignore]
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    checker,
    helper,
    numpy_helper,
)

OPSET, IR_VERSION = 13, 7
ROOT = Path(__file__).parents[2]


class Graph:
    """A graph in the making; every method returns the name of what it adds."""

    def __init__(self, kind: int = TensorProto.FLOAT) -> None:
        self.kind = kind
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401 - as onnx has it
        """Add a node with one output."""
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, values: list[int] | float) -> str:
        """Add numbers, as int64 where they are whole."""
        import numpy as np  # noqa: PLC0415 - onnx brings it

        name = f"constant_{len(self.constants)}"
        array = np.array(values)
        array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape: int, scale: float) -> str:
        """Add weights of this shape: sines of 0, 1, 2, …, times `scale`."""
        count = 1
        for size in shape:
            count *= size
        numbers = self.add("Range", self.constant(0), self.constant(count), self.constant(1))
        real = self.add("Cast", numbers, to=TensorProto.FLOAT)
        waves = self.add("Mul", self.add("Sin", real), self.constant(scale))
        shaped = self.add("Reshape", waves, self.constant(list(shape)))
        return shaped if self.kind == TensorProto.FLOAT else self.add("Cast", shaped, to=self.kind)

    def model(
        self, name: str, given: list[str | int | None], output: str, shape: list[str | int | None]
    ) -> ModelProto:
        """Return the model with one input named `input`."""
        given_info = helper.make_tensor_value_info("input", self.kind, given)
        return self.whole(name, [given_info], {output: ("output", shape)})

    def whole(
        self,
        name: str,
        given: list[ValueInfoProto],
        outputs: dict[str, tuple[str, list[str | int | None]]],
    ) -> ModelProto:
        """Return the model with these inputs; `outputs`: what an output and its shape is called."""
        last = [
            helper.make_node("Identity", [value], [called], name=f"last_{at}" if at else "last")
            for at, (value, (called, _)) in enumerate(outputs.items())
        ]
        infos = [
            helper.make_tensor_value_info(called, self.kind, shape)
            for called, shape in outputs.values()
        ]
        made = helper.make_model(
            helper.make_graph([*self.nodes, *last], name, given, infos, self.constants),
            opset_imports=[helper.make_opsetid("", OPSET)],
            producer_name="ortgpu-fix",
            ir_version=IR_VERSION,
        )
        checker.check_model(made)
        return made


def convolutions(name: str, kind: int = TensorProto.FLOAT) -> ModelProto:
    """Return a small convolutional net for images of any size and number."""
    graph = Graph(kind)
    value, channels = "input", 3
    for filters, stride in ((32, 2), (64, 1), (64, 2), (128, 1), (128, 2)):
        weights = graph.weights(filters, channels, 3, 3, scale=(2 / (9 * channels)) ** 0.5)
        value = graph.add("Conv", value, weights, strides=[stride] * 2, pads=[1] * 4)
        value, channels = graph.add("Relu", value), filters
    pooled = graph.add("Flatten", graph.add("GlobalAveragePool", value))
    output = graph.add("MatMul", pooled, graph.weights(channels, 100, scale=0.1))
    return graph.model(name, ["batch", 3, "height", "width"], output, ["batch", 100])


def transformer() -> ModelProto:
    """Return one block of a transformer: attention of four heads, and two dense layers."""
    graph = Graph()
    width, heads = 128, 4
    each = width // heads
    projected = []
    for _ in range(3):
        dense = graph.add("MatMul", "input", graph.weights(width, width, scale=0.1))
        split = graph.add("Reshape", dense, graph.constant([0, 0, heads, each]))
        projected.append(split)
    query, value = (graph.add("Transpose", projected[at], perm=[0, 2, 1, 3]) for at in (0, 2))
    key = graph.add("Transpose", projected[1], perm=[0, 2, 3, 1])
    scores = graph.add("Mul", graph.add("MatMul", query, key), graph.constant(each**-0.5))
    mixed = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), value)
    joined = graph.add("Transpose", mixed, perm=[0, 2, 1, 3])
    joined = graph.add("Reshape", joined, graph.constant([0, 0, width]))
    summed = graph.add("Add", joined, "input")
    inner = graph.add(
        "Relu", graph.add("MatMul", summed, graph.weights(width, 4 * width, scale=0.1))
    )
    output = graph.add("MatMul", inner, graph.weights(4 * width, width, scale=0.05))
    shape: list[str | int | None] = ["batch", "sequence", width]
    return graph.model("transformer", shape, graph.add("Add", output, summed), shape)


def decoder() -> ModelProto:
    """Return a layer of a decoder that is given the keys and values of what came before."""
    graph = Graph()
    width, heads = 128, 4
    each = width // heads
    embedded = graph.add("Gather", graph.weights(64, width, scale=0.5), "input_ids")
    projected = []
    for _ in range(3):
        dense = graph.add("MatMul", embedded, graph.weights(width, width, scale=0.1))
        split = graph.add("Reshape", dense, graph.constant([0, 0, heads, each]))
        projected.append(graph.add("Transpose", split, perm=[0, 2, 1, 3]))
    key, value = (
        graph.add("Concat", f"past_key_values.0.{name}", new, axis=2)
        for name, new in zip(("key", "value"), projected[1:], strict=True)
    )
    turned = graph.add("Transpose", key, perm=[0, 1, 3, 2])
    scores = graph.add("Mul", graph.add("MatMul", projected[0], turned), graph.constant(each**-0.5))
    kept = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    left_out = graph.add("Mul", graph.add("Sub", graph.constant(1.0), kept), graph.constant(-1e4))
    hidden = graph.add("Unsqueeze", left_out, graph.constant([1, 2]))
    weights = graph.add("Softmax", graph.add("Add", scores, hidden), axis=-1)
    mixed = graph.add("Transpose", graph.add("MatMul", weights, value), perm=[0, 2, 1, 3])
    joined = graph.add("Reshape", mixed, graph.constant([0, 0, width]))
    logits = graph.add("MatMul", joined, graph.weights(width, 64, scale=0.1))
    batch, length, past = "batch_size", "sequence_length", "past_sequence_length"
    total = f"{past} + {length}"
    info = helper.make_tensor_value_info
    given = [
        info("input_ids", TensorProto.INT64, [batch, length]),
        info("attention_mask", TensorProto.INT64, [batch, total]),
        *(
            info(f"past_key_values.0.{name}", TensorProto.FLOAT, [batch, heads, past, each])
            for name in ("key", "value")
        ),
    ]
    outputs: dict[str, tuple[str, list[str | int | None]]] = {
        logits: ("logits", [batch, length, 64]),
        key: ("present.0.key", [batch, heads, total, each]),
        value: ("present.0.value", [batch, heads, total, each]),
    }
    return graph.whole("decoder", given, outputs)


def loop() -> ModelProto:
    """Return ten turns of a loop, in which a state is multiplied and bent."""
    graph = Graph()
    weights = graph.weights(64, 64, scale=0.2)
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["state", weights], ["moved"], name="turn"),
            helper.make_node("Tanh", ["moved"], ["next"], name="bend"),
            helper.make_node("Identity", ["again"], ["more"], name="more"),
        ],
        "turn",
        [
            helper.make_tensor_value_info("number", TensorProto.INT64, []),
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("more", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, None),
        ],
    )
    output = graph.add("Loop", graph.constant(10), "", "input", body=body)
    return graph.model("loop", ["batch", 64], output, ["batch", 64])


def main() -> None:
    """Write the models."""
    tests = ROOT / "tests" / "models"
    tests.mkdir(exist_ok=True)
    made = {
        ROOT / "data" / "bench.onnx": convolutions("bench"),
        tests / "half.onnx": convolutions("half", TensorProto.FLOAT16),
        tests / "transformer.onnx": transformer(),
        tests / "loop.onnx": loop(),
        tests / "decoder.onnx": decoder(),
    }
    for path, model in made.items():
        path.write_bytes(model.SerializeToString(deterministic=True))
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
