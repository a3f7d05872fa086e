"""Why a model was not run: one sentence each.

Core. The texts are onnxruntime's own, as its releases from 1.11 to 1.31 say them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...errors import Error
from .measurement import Measurement, say_shapes, shapes_of

_OPSET = re.compile(r"Opset (\d+) is under development")
_KNOWN_OPSET = re.compile(r"official support for domain \S+ is till opset (\d+)")
_IR = re.compile(r"Unsupported model IR version: (\d+), max supported IR version: (\d+)")
_OPERATOR = re.compile(r"([\w.]*:?\w+)\(-?\d+\) is not a registered function/op")
_EXTERNAL = re.compile(
    r"(?i)external (?:data|initializer)|cannot get file size|Deserialize tensor \S+ failed"
)
_MEMORY = re.compile(r"bad_alloc|Failed to allocate memory")
_NO_MODEL = re.compile(
    r"INVALID_PROTOBUF|No graph was found|NO_SUCHFILE|ModelProto does not have a graph"
)
_NO_NUMPY_TYPE = re.compile(r"No corresponding Numpy type for Tensor Type")
_PREFIX = re.compile(r"^[\w.]+: |\[ONNXRuntimeError\] : \d+ : \w+ : ")


def refusal(measured: Measurement, file: str) -> Error | None:
    """Return why the model at `file` was not run, as an Error; None where it was.

    Its code is `model-unreadable`, `model-external-data`, `model-too-new`, `model-operator`,
    `model-memory`, `model-input-type`, `model-output-type`, `shape-unknown`, `shape-unfit`,
    `shape-large` or `shapes-unfound`.
    """
    if measured.refused is None:
        return None
    code, values = measured.refused
    said = {name: str(value) for name, value in values.items()}
    if code == "memory" or _MEMORY.search(said.get("error", "")):
        return Error("model-memory", file=file)
    if code == "load":
        return _load(said.get("error", ""), file, measured.release or "?")
    if _NO_NUMPY_TYPE.search(said.get("error", "")):
        outputs = ", ".join(f"{output.name} {output.type}" for output in measured.outputs)
        return Error("model-output-type", file=file, outputs=outputs)
    if code == "shapes":
        shapes = values.get("shapes")
        tried = say_shapes(shapes_of(shapes)) if isinstance(shapes, Mapping) else ""
        return Error("shapes-unfound", file=file, tried=tried, problem=_short(said["error"]))
    if code == "input-type":
        return Error("model-input-type", file=file, name=said["name"], type=said["type"])
    if code == "input-unknown":
        return Error("shape-unknown", name=said["name"], inputs=said["inputs"])
    if code == "shape-unfit":
        shape, declared = said["shape"], said["declared"]
        return Error("shape-unfit", name=said["name"], shape=shape, declared=declared)
    return Error("shape-large", name=said.get("name", ""), shape=said.get("shape", ""))


def _load(error: str, file: str, release: str) -> Error:
    """Return what keeps onnxruntime from loading the model."""
    if opset := _OPSET.search(error):
        known = _KNOWN_OPSET.search(error)
        needs = f"opset {opset.group(1)}"
        reads = f"opset {known.group(1)}" if known else "older ones"
        return Error("model-too-new", file=file, release=release, needs=needs, reads=reads)
    if ir := _IR.search(error):
        needs, reads = f"IR version {ir.group(1)}", f"IR version {ir.group(2)}"
        return Error("model-too-new", file=file, release=release, needs=needs, reads=reads)
    if _EXTERNAL.search(error):
        return Error("model-external-data", file=file, problem=_short(error))
    if operator := _OPERATOR.search(error):
        return Error("model-operator", file=file, release=release, operator=operator.group(1))
    if _NO_MODEL.search(error):
        return Error("model-unreadable", file=file, problem=_short(error))
    return Error("model-unloadable", file=file, release=release, problem=_short(error))


def _short(error: str) -> str:
    """Return an error without the name of its class, in one line."""
    return " ".join(_PREFIX.sub("", error).split())[:300]
