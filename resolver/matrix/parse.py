"""Parse the tables of `data/` into the rows of the matrix.

A row that does not fit is a defect of the installation: Error `matrix-invalid` names file and key.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import Error
from . import torch as torch_builds
from .model import (
    DEFAULT_INDEX,
    Build,
    BuildWheel,
    Code,
    ConsumerRow,
    Distribution,
    DriverFloor,
    ForwardCompatibility,
    LastBranch,
    LibraryNeed,
    Limit,
    Matrix,
    Release,
    ToolkitRelease,
    WheelLibraries,
)
from .torch import TomlTable


def parse(
    tables: Mapping[str, TomlTable], digest: str, modules: Mapping[str, str] | None = None
) -> Matrix:
    """Return the matrix of the parsed TOML files, keyed by their name without suffix.

    Raises Error `matrix-invalid` with the file and the key where a row does not fit.
    """
    place = "onnxruntime"
    try:
        date = tables["onnxruntime"]["date"]
        builds = tuple(_build(row) for row in tables["onnxruntime"]["build"])
        gone = {row["version"]: row["source"] for row in tables["onnxruntime"]["gone"]}
        place = "nvidia"
        distributions = {
            row["name"]: _distribution(row) for row in tables["nvidia"]["distribution"]
        }
        providers = {
            (distribution.cuda, library): distribution.name
            for distribution in distributions.values()
            for contents in distribution.contents
            for library in contents.libraries
        }
        place = "toolkits"
        toolkits = tuple(
            ToolkitRelease(row["version"], row["components"], row.get("ranges", {}))
            for row in tables["toolkits"]["toolkit"]
        )
        place = "numpy"
        numpy = tuple(_release("numpy", row) for row in tables["numpy"]["wheel"])
        place = "msvc"
        msvc = tuple(_release("msvc-runtime", row) for row in tables["msvc"]["wheel"])
        place = "drivers"
        drivers = tables["drivers"]
        floors = tuple(_floor(row) for row in drivers["floor"])
        toolkit_drivers = tuple(_floor(row) for row in drivers["toolkit"])
        branches = {row["branch"]: row["cuda"] for row in drivers["branch"]}
        last_branches = tuple(LastBranch(row["below"], row["branch"]) for row in drivers["last"])
        forward = tuple(
            ForwardCompatibility(row["package"], row["cuda"], tuple(row["branches"]))
            for row in drivers["forward"]
        )
        data_center = frozenset(name for row in drivers["data_center"] for name in row["names"])
        place = "distributions"
        owners = frozenset(row["name"] for row in tables["distributions"]["owner"])
        own_providers = {
            row["name"]: row["provider"]
            for row in tables["distributions"]["owner"]
            if "provider" in row
        }
        shared = {
            row["folder"]: tuple(row["distributions"])
            for row in tables["distributions"]["shared"]
            if row["files"]  # else only unused files collide, such as headers
        }
        feeds = {row["cuda"]: row["url"] for row in tables["distributions"]["feed"]}
        place = "limits"
        limits = tuple(
            Limit._make(row[field] for field in Limit._fields) for row in tables["limits"]["limit"]
        )
        place = "consumers"
        consumers: dict[str, tuple[ConsumerRow, ...]] = {}
        for row in tables["consumers"]["consumer"]:
            consumers[row["name"]] = (*consumers.get(row["name"], ()), _consumer(row))
    except (KeyError, TypeError) as error:
        raise Error("matrix-invalid", file=f"{place}.toml", problem=repr(error)) from error
    return Matrix(
        date=date,
        digest=digest,
        builds=builds,
        gone=gone,
        distributions=distributions,
        toolkits=toolkits,
        floors=floors,
        toolkit_drivers=toolkit_drivers,
        branches=branches,
        numpy=numpy,
        owners=owners,
        shared=shared,
        limits=limits,
        msvc=msvc,
        modules=modules or {},
        last_branches=last_branches,
        forward=forward,
        data_center=data_center,
        own_providers=own_providers,
        feeds=feeds,
        consumers=consumers,
        providers=providers,
    )


def with_torch(matrix: Matrix, table: TomlTable) -> Matrix:
    """Return `matrix` with the parsed `torch.toml`. Raises Error `matrix-invalid`."""
    toolkits = {row.version: (row.components, row.ranges) for row in matrix.toolkits}
    try:
        return matrix._replace(torch=torch_builds.parse(table, toolkits))
    except (KeyError, TypeError, AttributeError) as error:
        raise Error("matrix-invalid", file="torch.toml", problem=repr(error)) from error


def _build(row: TomlTable) -> Build:
    requires = tuple(row["requires"])
    return Build(
        version=row["version"],
        platform=row["platform"],
        cuda=row["cuda"],
        cudnn=row["cudnn"],
        needs=tuple(
            LibraryNeed(
                library=need["library"],
                how=need["how"],
                distribution=need.get("distribution"),
                since=need.get("since"),
            )
            for need in row["needs"]
        ),
        sass=tuple(row["sass"]),
        ptx=tuple(row["ptx"]),
        glibc=row.get("glibc"),
        preload_dlls=row["preload_dlls"],
        toolset=row.get("toolset"),
        index_url=row.get("index_url", DEFAULT_INDEX),
        wheels=tuple(
            BuildWheel(
                python=wheel["python"],
                size=wheel["size"],
                sha256=wheel["sha256"],
                file=wheel["file"],
                requires=tuple(wheel.get("requires", requires)),
            )
            for wheel in row["wheels"]
        ),
    )


def _release(name: str, row: TomlTable) -> Release:
    return Release(
        name=name,
        version=row["version"],
        platform=row["platform"],
        python=row.get("python"),
        glibc=row.get("glibc"),
        size=row["size"],
        sha256=row["sha256"],
        file=row["file"],
        requires=tuple(row.get("requires", ())),
    )


def _distribution(row: TomlTable) -> Distribution:
    return Distribution(
        name=row["name"],
        cuda=row["cuda"],
        releases=tuple(_release(row["name"], release) for release in row["releases"]),
        contents=tuple(
            WheelLibraries(
                platform=block["platform"],
                versions=frozenset(block["versions"]),
                libraries=block["libraries"],
                links=tuple(block.get("links", ())),
                loads=tuple(block.get("loads", ())),
            )
            for block in row.get("files", ())
        ),
        code=tuple(
            Code(
                platform=block["platform"],
                first=block["first"],
                last=block["last"],
                sass=tuple(block["sass"]),
                ptx=tuple(block["ptx"]),
            )
            for block in row.get("code", ())
        ),
    )


def _consumer(row: TomlTable) -> ConsumerRow:
    return ConsumerRow(
        name=row["name"],
        platform=row["platform"],
        first=row["first"],
        last=row["last"],
        cuda=row.get("cuda"),
        cudnn=row.get("cudnn"),
        needs=tuple(row["needs"]),
    )


def _floor(row: TomlTable) -> DriverFloor:
    return DriverFloor(cuda=row["cuda"], linux=row.get("linux"), windows=row.get("windows"))
