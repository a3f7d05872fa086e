"""Parse the tables of `data/` into the rows of the matrix.

A row that does not fit is a defect of the installation: Error `matrix-invalid` names file and key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..errors import Error
from . import torch as torch_builds
from .applications import Application, read_application
from .fields import read_rows, row_reader
from .model import (
    MSVC_RUNTIME,
    Build,
    CondaBuild,
    ConsumerRow,
    Defect,
    Distribution,
    DriverFloor,
    Feed,
    FirstBranch,
    Floors,
    ForwardCompatibility,
    LastBranch,
    Limit,
    Matrix,
    OtherBuild,
    Plugin,
    PluginWheel,
    Release,
    TensorrtLibraries,
    ToolkitRelease,
)
from .torch import DomainLibrary, PypiRow, TomlTable

R = TypeVar("R")


class RowReaders:
    """What makes the rows of the tables that grow, with or without the forms of their texts."""

    def __init__(self, *, forms: bool) -> None:
        self._build = row_reader(Build, forms=forms)
        self._distribution = row_reader(Distribution, forms=forms)
        self.toolkit = row_reader(ToolkitRelease, forms=forms)
        self.torch = row_reader(PypiRow, forms=forms)
        self.companion = row_reader(DomainLibrary, forms=forms)
        self.plugin = row_reader(PluginWheel, forms=forms)
        self._release = row_reader(Release, forms=forms)

    def build(self, row: TomlTable) -> Build:
        """Return a build; what a wheel does not say of itself it requires as the others do."""
        wheels = [{"requires": row["requires"], **wheel} for wheel in row["wheels"]]
        return self._build({**row, "wheels": wheels})

    def onnxruntime(self, row: TomlTable) -> Release:
        """Return a wheel of the plain onnxruntime."""
        return self._release({**row, "name": "onnxruntime"})

    def distribution(self, row: TomlTable) -> Distribution:
        """Return an nvidia distribution."""
        releases = [{"name": row["name"], **release} for release in row["releases"]]
        return self._distribution({**row, "releases": releases, "contents": row.get("files", ())})


_SHIPPED = RowReaders(forms=False)
_RELEASE, _FLOOR = row_reader(Release), row_reader(DriverFloor)
_LAST, _FORWARD = row_reader(LastBranch), row_reader(ForwardCompatibility)
_FIRST = row_reader(FirstBranch)
_LIMIT, _CONSUMER = row_reader(Limit), row_reader(ConsumerRow)
_OTHER_BUILD = row_reader(OtherBuild)
_FEED, _CONDA = row_reader(Feed), row_reader(CondaBuild)
_TENSORRT = row_reader(TensorrtLibraries)
_DEFECT, _FLOORS = row_reader(Defect), row_reader(Floors)


def parse(
    tables: Mapping[str, TomlTable], digest: str, modules: Mapping[str, str] | None = None
) -> Matrix:
    """Return the matrix of the parsed TOML files, keyed by their name without suffix.

    Raises Error `matrix-invalid` with the file and the key where a row does not fit.
    """
    place = "onnxruntime"

    def rows(kind: str, read: Callable[[Any], R]) -> tuple[R, ...]:
        return read_rows(tables[place], kind, read)

    try:
        date, builds = tables[place]["date"], rows("build", _SHIPPED.build)
        gone = {row["version"]: row["source"] for row in tables[place]["gone"]}
        place = "nvidia"
        distributions = {row.name: row for row in rows("distribution", _SHIPPED.distribution)}
        place = "toolkits"
        toolkits = rows("toolkit", _SHIPPED.toolkit)
        place = "numpy"
        numpy = rows("wheel", lambda row: _RELEASE({"name": "numpy", **row}))
        place = "msvc"
        msvc = rows("wheel", lambda row: _RELEASE({"name": MSVC_RUNTIME, **row}))
        place = "drivers"
        floors, toolkit_drivers = rows("floor", _FLOOR), rows("toolkit", _FLOOR)
        last_branches, forward = rows("last", _LAST), rows("forward", _FORWARD)
        first_branches = rows("first", _FIRST)
        branches = {row["branch"]: row["cuda"] for row in tables[place]["branch"]}
        data_center = frozenset(
            name for row in tables[place]["data_center"] for name in row["names"]
        )
        place = "distributions"
        owners = tables[place]["owner"]
        own_providers = {row["name"]: row["provider"] for row in owners if "provider" in row}
        plugin_since = {row["name"]: row["plugin_since"] for row in owners if "plugin_since" in row}
        shared = {
            row["folder"]: tuple(row["distributions"])
            for row in tables[place]["shared"]
            if row["files"]  # else only unused files collide, such as headers
        }
        training = frozenset(row["name"] for row in owners if row.get("kind") == "training")
        plugins = {
            row["name"]: Plugin(
                provider=row["provider"],
                cuda=row["cuda"],
                sass=tuple(row.get("sass", ())),
            )
            for row in tables[place].get("plugin", ())
        }
        named = "other_build" in tables[place]
        other_builds = rows("other_build", _OTHER_BUILD) if named else ()
        tensorrt = rows("tensorrt", _TENSORRT)
        feeds = rows("feed", _FEED)
        conda_builds = rows("conda", _CONDA) if "conda" in tables[place] else ()
        owner_names = frozenset(row["name"] for row in owners)
        place = "plugins"
        plugin_wheels = rows("plugin", _SHIPPED.plugin)
        plain = rows("wheel", _SHIPPED.onnxruntime)
        place = "limits"
        limits, defects = rows("limit", _LIMIT), rows("defect", _DEFECT)
        place = "floors"
        read: dict[str, tuple[Floors, ...]] = {}
        for floors_row in rows("floor", _FLOORS):
            read[floors_row.name] = (*read.get(floors_row.name, ()), floors_row)
        place = "consumers"
        consumers: dict[str, tuple[ConsumerRow, ...]] = {}
        for row in rows("consumer", _CONSUMER):
            consumers[row.name] = (*consumers.get(row.name, ()), row)
        place = "applications"
        applications: dict[str, tuple[Application, ...]] = {}
        for known in rows("application", read_application):
            applications[known.name] = (*applications.get(known.name, ()), known)
    except (KeyError, TypeError, ValueError) as error:
        raise _invalid(place, error) from error
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
        owners=owner_names,
        shared=shared,
        limits=limits,
        defects=defects,
        read=read,
        msvc=msvc,
        modules=modules or {},
        last_branches=last_branches,
        first_branches=first_branches,
        forward=forward,
        data_center=data_center,
        own_providers=own_providers,
        plugin_since=plugin_since,
        training=training,
        other_builds=other_builds,
        plugins=plugins,
        plugin_wheels=plugin_wheels,
        onnxruntime=plain,
        tensorrt=tensorrt,
        feeds=feeds,
        conda_builds=conda_builds,
        consumers=consumers,
        applications=applications,
        providers={
            (distribution.cuda, library): distribution.name
            for distribution in distributions.values()
            for contents in distribution.contents
            for library in contents.libraries
        },
    )


def with_torch(matrix: Matrix, table: TomlTable) -> Matrix:
    """Return `matrix` with the parsed `torch.toml`. Raises Error `matrix-invalid`."""
    toolkits = {
        toolkit.version: (toolkit.components, toolkit.ranges) for toolkit in matrix.toolkits
    }
    try:
        return matrix._replace(torch=torch_builds.parse(table, toolkits))
    except (KeyError, TypeError, ValueError) as error:
        raise _invalid(torch_builds.TORCH, error) from error


def _invalid(name: str, error: Exception) -> Error:
    problem = error if isinstance(error, ValueError) else repr(error)
    return Error("matrix-invalid", file=f"{name}.toml", problem=problem)
