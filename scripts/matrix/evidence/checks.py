"""Checks of the finished data against itself: each can fail, and says where."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.version import Version

from ortgpu_fix.binaries.library_names import DRIVER
from ortgpu_fix.guests.update.nvidia import JUDGED, component

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from packaging.specifiers import SpecifierSet

    from ortgpu_fix.guests.update.reader import Reader

_version = cache(Version)
Data = dict[str, Any]
"""File name without suffix to its content."""

FIRST_TOOLKIT = {
    (3, 7): "6.5",
    (5, 0): "6.5",
    (5, 2): "7.0",
    (5, 3): "7.0",
    (6, 0): "8.0",
    (6, 1): "8.0",
    (6, 2): "8.0",
    (7, 0): "9.0",
    (7, 2): "9.2",
    (7, 5): "10.0",
    (8, 0): "11.0",
    (8, 6): "11.1",
    (8, 7): "11.4",
    (8, 9): "11.8",
    (9, 0): "11.8",
    (10, 0): "12.8",
    (10, 1): "12.8",
    (10, 3): "12.9",
    (11, 0): "13.0",
    (12, 0): "12.8",
    (12, 1): "12.9",
}
"""Compute capability to the first toolkit release that compiles for it.

Source: https://docs.nvidia.com/cuda/parallel-thread-execution/#release-notes ("Target ISA").
"""
OLDEST_GPU = {"11": (3, 5), "12": (5, 0), "13": (7, 5)}
"""CUDA major to the oldest compute capability that it compiles for."""


def problems(data: Data) -> list[str]:
    """Return what is wrong with the data, one line each; empty where nothing is."""
    return [line for check in CHECKS for line in check(data)]


def order(data: Data) -> Iterator[str]:
    """Rows are sorted and there is one for each place."""
    for name, key in (("onnxruntime", "build"), ("torch", "torch")):
        yield from _unsorted(f"{name}.toml", data[name][key])
    for distribution in data["nvidia"]["distribution"]:
        yield from _unsorted(distribution["name"], distribution["releases"], by_platform=False)


def _unsorted(what: str, rows: list[Any], *, by_platform: bool = True) -> Iterator[str]:
    places = [(_version(row["version"]), row["platform"]) for row in rows]
    keys: list[Any] = places if by_platform else [version for version, _ in places]
    if keys != sorted(keys):
        yield f"{what}: rows are not sorted"
    if len(set(places)) < len(places):
        yield f"{what}: a release and platform stands there twice"


def hashes(data: Data) -> Iterator[str]:
    """No two wheels have the same hash, and no wheel has none."""
    seen: dict[str, str] = {}
    for wheel in _wheels(data):
        if len(wheel["sha256"]) != len("0" * 64):
            yield f"{wheel['file']}: no SHA-256"
        if seen.setdefault(wheel["sha256"], wheel["file"]) != wheel["file"]:
            yield f"{wheel['file']} has the hash of {seen[wheel['sha256']]}"


def _wheels(data: Data) -> Iterator[Any]:
    for row in [*data["onnxruntime"]["build"], *data["torch"]["torch"]]:
        yield from row["wheels"]
    for distribution in data["nvidia"]["distribution"]:
        yield from distribution["releases"]
    yield from data["numpy"]["wheel"]
    yield from data["msvc"]["wheel"]
    yield from (*data["plugins"]["plugin"], *data["plugins"]["wheel"])


def files(data: Data) -> Iterator[str]:
    """Every release of a component is in one block of files."""
    for distribution in data["nvidia"]["distribution"]:
        released = sorted((row["platform"], row["version"]) for row in distribution["releases"])
        described = sorted(
            (block["platform"], version)
            for block in distribution["files"]
            for version in block["versions"]
        )
        if released != described:
            different = sorted(set(released) ^ set(described))[:3]
            yield f"{distribution['name']}: releases and files disagree: {different}"


def code(data: Data) -> Iterator[str]:
    """GPU code is known of every release, once, where it is judged."""
    for distribution in data["nvidia"]["distribution"]:
        name = distribution["name"]
        if component(name) not in JUDGED:
            continue
        for row in distribution["releases"]:
            version = _version(row["version"])
            ranges = [
                block
                for block in distribution.get("code", ())
                if block["platform"] == row["platform"]
                and _version(block["first"]) <= version <= _version(block["last"])
            ]
            if len(ranges) != 1:
                yield f"{name} {version} {row['platform']}: {len(ranges)} ranges of GPU code"
            elif not ranges[0]["sass"]:
                yield f"{name} {version} {row['platform']}: no machine code"


def libraries(data: Data) -> Iterator[str]:
    """Every library that a build links is in the wheel that `since` names, on its platform."""
    held = _held(data)
    for build in data["onnxruntime"]["build"]:
        for need in build["needs"]:
            if "distribution" not in need:
                if need["library"] not in DRIVER:
                    yield f"{_place(build)}: {need['library']} has no distribution"
                continue
            place = (need["distribution"], need["since"], build["platform"])
            if need["library"] not in held.get(place, {}):
                yield f"{_place(build)}: {need['library']} is not in {' '.join(place)}"


def _held(data: Data) -> dict[tuple[str, str, str], Mapping[str, str]]:
    return {
        (distribution["name"], version, block["platform"]): block["libraries"]
        for distribution in data["nvidia"]["distribution"]
        for block in distribution["files"]
        for version in block["versions"]
    }


def symbols(data: Data) -> Iterator[str]:
    """Every symbol that a build takes is in all releases from the one on that `since` names."""
    offers = {
        (row["distribution"], row["platform"], row["library"]): row
        for row in data["symbols"]["offer"]
    }
    uses: dict[tuple[str, str], dict[str, set[str]]] = {}
    for row in data["symbols"]["use"]:
        for version in row["builds"]:
            of_build = uses.setdefault((version, row["platform"]), {})
            of_build.setdefault(row["library"], set()).update(row["symbols"])
    for build in data["onnxruntime"]["build"]:
        needs = {need["library"]: need for need in build["needs"]}
        for library, taken in uses.get((build["version"], build["platform"]), {}).items():
            need = needs.get(library)
            if need is None:
                yield f"{_place(build)} takes symbols from {library} and does not need it"
            elif "distribution" in need:
                offer = offers.get((need["distribution"], build["platform"], library))
                for line in _lacking(need, offer, taken):
                    yield f"{_place(build)}: {line}"


def _lacking(need: Any, offer: Any, taken: set[str]) -> Iterator[str]:  # noqa: ANN401 - rows of TOML
    if offer is None:
        yield f"nothing is known of the symbols of {need['library']}"
        return
    since, partial = _version(need["since"]), offer.get("partial", {})
    for symbol in sorted(taken & partial.keys()):
        first, last = _version(partial[symbol]["first"]), _version(partial[symbol]["last"])
        if not first <= since <= last:
            yield f"{symbol} is not in {need['library']} of {since}"
        elif last < _version(offer["last"]):
            yield f"{symbol} is not in {need['library']} after {last}"


def toolkits(data: Data) -> Iterator[str]:
    """Each component of a toolkit is a release there is."""
    released = {
        (distribution["name"], row["version"])
        for distribution in data["nvidia"]["distribution"]
        for row in distribution["releases"]
    }
    for toolkit in data["toolkits"]["toolkit"]:
        for place in toolkit["components"].items():
            if place not in released:
                yield f"toolkit {toolkit['version']}: there is no {' '.join(place)}"


def compilers(data: Data) -> Iterator[str]:
    """No build holds code for a GPU that its toolkit cannot compile for."""
    rows = [*data["onnxruntime"]["build"], *data["torch"]["torch"]]
    for row in rows:
        if "cuda" not in row:
            continue
        oldest = OLDEST_GPU.get(row["cuda"].partition(".")[0], (0, 0))
        for target in [*row.get("sass", ()), *row.get("ptx", ())]:
            major, _, minor = target.rstrip("af").partition(".")
            gpu = (int(major), int(minor))
            first = FIRST_TOOLKIT.get(gpu)
            if first is None or _version(first) > _version(row["cuda"]) or gpu < oldest:
                yield f"{_place(row)}: CUDA {row['cuda']} does not compile for {target}"


def toolsets(data: Data) -> Iterator[str]:
    """Every build for Windows says which build tools linked it, and no other does."""
    for row in data["onnxruntime"]["build"]:
        if ("toolset" in row) != row["platform"].startswith("windows"):
            yield f"{_place(row)}: the MSVC build tools are not known, or should not be"


def documents(data: Data) -> Iterator[str]:
    """Documents say of torch's builds what the wheels on PyPI say of the same builds.

    Up to 2.1 the wheels on PyPI were made apart: without the libraries that the others carry.
    """
    parts = {row["version"]: row["components"] for row in data["toolkits"]["toolkit"]}
    said = {
        (version, row["local"], row["platform"]): row
        for row in data["torch"]["variant"]
        for version in row["versions"]
    }
    for wheel in data["torch"]["torch"]:
        if wheel.get("cuda", "10").partition(".")[0] == "10":
            continue
        place = wheel["version"], wheel["local"], wheel["platform"]
        row = said.get(place)
        if row is None:
            yield f"torch {' '.join(place)} is on PyPI and in no document"
            continue
        for key in ("sass", "ptx"):
            if row[key] != wheel[key]:
                yield f"torch {' '.join(place)}: {key} is {wheel[key]}, documents say {row[key]}"
        alike = _version(wheel["version"]) >= _version("2.2")
        if alike and row.get("libraries") != "required":
            yield f"torch {' '.join(place)} requires NVIDIA's wheels, documents do not say so"
        pins = _pins(wheel["requires"])
        known = {**parts.get(row["toolkit"], {}), **row.get("parts", {})}
        known[f"nvidia-cudnn-cu{row['toolkit'][:2]}"] = row["cudnn"]
        for name in sorted(pins.keys() & known.keys()):
            if not pins[name].contains(known[name]):
                yield f"torch {' '.join(place)}: {name}{pins[name]}, documents say {known[name]}"
        toolkit = pins.get("cuda-toolkit")
        if toolkit is not None and not toolkit.contains(row["toolkit"]):
            yield f"torch {' '.join(place)}: CUDA {toolkit}, documents say {row['toolkit']}"


def _pins(requires: list[str]) -> dict[str, SpecifierSet]:
    return {wanted.name: wanted.specifier for wanted in map(Requirement, requires)}


def _place(row: Any) -> str:  # noqa: ANN401 - a row of TOML
    return f"{row['version']} {row['platform']}"


def missing_on(reader: Reader, data: Data) -> Iterator[str]:
    """Yield the wheels in the data that the index has not, or has with another hash."""
    pages: dict[str, dict[str, str]] = {}
    for wheel in _wheels(data):
        distribution = wheel["file"].partition("-")[0].replace("_", "-")
        if distribution not in pages:
            there = reader.wheels(distribution)
            pages[distribution] = {one.file: one.sha256 for one in there}
        if pages[distribution].get(wheel["file"]) != wheel["sha256"]:
            yield f"{wheel['file']} is not on the index with this hash"


CHECKS: tuple[Callable[[Data], Iterator[str]], ...] = (
    order,
    hashes,
    files,
    code,
    libraries,
    symbols,
    toolkits,
    compilers,
    toolsets,
    documents,
)
