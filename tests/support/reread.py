"""Some rows of the matrix, read from the wheels once more and compared."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from packaging.version import Version

from matrix.evidence.checks import Data
from ortgpu_fix.binaries import gpu_targets, library_names
from ortgpu_fix.binaries.library_names import PROVIDER
from ortgpu_fix.guests.update import nvidia
from ortgpu_fix.guests.update.reader import Reader

COMPONENTS = 3
Row = dict[str, Any]


def disagreements(data: Data, reader: Reader, chance: Random) -> Iterator[str]:
    """Yield where a build and three component wheels, drawn by `chance`, say something else."""
    yield from _build(chance.choice(data["onnxruntime"]["build"]), reader)
    for _ in range(COMPONENTS):
        distribution = chance.choice(data["nvidia"]["distribution"])
        row = chance.choice(distribution["releases"])
        yield from _component(data, distribution, row, reader)


def _different(what: str, said: object, read: object) -> Iterator[str]:
    if said != read:
        yield f"{what}: the data says {said}, the wheel {read}"


def _build(row: Row, reader: Reader) -> Iterator[str]:
    file = row["wheels"][0]["file"]
    wheel = next((one for one in reader.wheels("onnxruntime-gpu") if one.file == file), None)
    if wheel is None:
        yield f"{file}: not on the index"
        return
    contents = reader.contents(wheel)
    library = reader.library(wheel, next(filter(PROVIDER.fullmatch, contents.members)))
    linked = {need["library"] for need in row["needs"] if need["how"] == "links"}
    code = [list(tokens) for tokens in gpu_targets.supported(library.groups)]
    yield from _different(f"{file}: SHA-256", row["wheels"][0]["sha256"], wheel.sha256)
    yield from _different(f"{file}: size", row["wheels"][0]["size"], contents.size)
    yield from _different(f"{file}: GPU code", [row["sass"], row["ptx"]], code)
    there = set(filter(library_names.is_cuda_library, library.links + library.delayed))
    yield from _different(f"{file}: links", linked, there)


def _component(data: Data, distribution: Row, row: Row, reader: Reader) -> Iterator[str]:
    file = row["file"]
    released = nvidia.releases(reader, distribution["name"], 4)
    release = next((one for one in released if one.wheel.file == file), None)
    if release is None:
        yield f"{file}: not on the index"
        return
    (block,) = (
        block
        for block in distribution["files"]
        if row["platform"] == block["platform"] and row["version"] in block["versions"]
    )
    yield from _different(f"{file}: SHA-256", row["sha256"], release.wheel.sha256)
    yield from _different(f"{file}: size", row["size"], release.size)
    yield from _different(f"{file}: requires", row.get("requires", []), list(release.requires))
    yield from _different(f"{file}: libraries", block["libraries"], release.libraries)
    for offer in data["symbols"]["offer"]:
        place = (offer["distribution"], offer["platform"])
        if place != (distribution["name"], row["platform"]):
            continue
        if offer["library"] not in release.libraries:
            continue
        exports = reader.exports(release.wheel, release.libraries[offer["library"]])
        for symbol, span in offer.get("partial", {}).items():
            known = Version(span["first"]) <= release.wheel.version <= Version(span["last"])
            yield from _different(f"{file}: {symbol}", known, symbol in exports)
