"""The wheels made here: one loads CUDA's libraries, one stands in for onnxruntime.

This module has their content and version, `build` builds them. Nothing ever looks their names up
on an index; somebody else may own them there.

`ortgpu-fix-libraries` contains the list of the library files of the plan, and the modules of
`loader/`, which load them when, and only when, CUDA is asked for. The alternatives fail:

- A search path edited into the provider (patchelf) changes a file of another distribution: it no
  longer agrees with its RECORD, and the next installation overwrites it. Windows has no such thing.
- `LD_LIBRARY_PATH` is read when a process starts: it needs a wrapper around every command, affects
  every child, and puts these libraries before the system's for all of them.
- `sitecustomize` and `usercustomize` exist once for an environment; distributions and users have
  theirs already. A `.pth` line (from Python 3.15 a `.start` file, PEP 829) is every package's own.

`onnxruntime` is an empty distribution with the version of the GPU build, which it requires: pip, uv
and others find the requirement of dependents satisfied, and do not replace the GPU build.
"""

import hashlib
from collections.abc import Mapping, Sequence

from ..facts.model import CPU_BUILD, GPU_BUILD, is_onnxruntime
from ..facts.own_projects import LOADER
from ..matrix.model import Matrix
from ..plan.wheels import Wheel
from .library_list import Entry, libraries

LIBRARIES = LOADER
PLACEHOLDER = CPU_BUILD
LABEL = "+ortgpu"
"""Of the placeholder's version in a project, and where packages pin one: no index has it."""
PACKAGE = "_ortgpu_fix_libraries"
LINE = f"import {PACKAGE}; {PACKAGE}.start()"
"""An application needs it before its import of onnxruntime where .pth files are not read."""


def expected_companions(
    selection: Sequence[Wheel],
    matrix: Matrix,
    platform: str,
    modules: Mapping[str, str],
    placeholder: str = "",
) -> dict[str, str]:
    """Return name and version of each companion of a plan's whole selection.

    `placeholder` is the version of the placeholder where that is not the release of the build.

    `platform` is `linux_x86_64`; `modules` are the texts of the loader (`companion_modules`). A
    selection without wheels of CUDA's libraries needs no loader: the system's own are in use.
    Nothing stands in for onnxruntime where a plugin beside it has the GPU.
    """
    build = onnxruntime_of(selection)
    if build is None:
        return {}
    entries, release = libraries(selection, matrix, platform), build.version
    files = library_files(release, entries, modules, build.name)
    loader = {LIBRARIES: library_version(release, files)} if entries else {}
    return loader | ({} if build.name == PLACEHOLDER else {PLACEHOLDER: placeholder or release})


def onnxruntime_of(selection: Sequence[Wheel]) -> Wheel | None:
    """Return the onnxruntime of a selection: onnxruntime-gpu, or what has its place."""
    return next((wheel for wheel in selection if is_onnxruntime(wheel.name)), None)


def library_files(
    release: str, entries: Sequence[Entry], modules: Mapping[str, str], build: str = GPU_BUILD
) -> dict[str, str]:
    """Return the files, by path, that load `entries` when CUDA is asked for.

    `release` is that of the distribution `build`, which they are for.
    """
    guarded = f"try:\\n    {LINE}\\nexcept ImportError:\\n    pass"
    listed = "".join(f"{entry.when} {entry.distribution} {entry.path}\n" for entry in entries)
    return {
        "ortgpu_fix_libraries.pth": f'import sys; exec("{guarded}")\n',
        "ortgpu_fix_libraries.start": f"{PACKAGE}:start\n",
        f"{PACKAGE}/libraries.txt": listed,
        f"{PACKAGE}/release.txt": f"{build} {release}\n",
        **{f"{PACKAGE}/{name}": text for name, text in modules.items()},
    }


def library_version(release: str, files: Mapping[str, str]) -> str:
    """Return the version of the wheel of `files` for onnxruntime-gpu `release`.

    It depends on every file, so only an installed wheel of this version has the same content.
    """
    digest = hashlib.sha256(repr((release, sorted(files.items()))).encode()).hexdigest()
    return f"{release}{'.' if '+' in release else '+'}set{digest[:12]}"


def version_with_requires(version: str, requires: Sequence[str]) -> str:
    """Return the version of the loader's wheel that also has these requirements, in a project."""
    if not requires:
        return version
    return f"{version}.{hashlib.sha256(repr(sorted(requires)).encode()).hexdigest()[:8]}"


def is_version_of(installed: str, version: str) -> bool:
    """Return whether an installed companion is that of `version`, or the same one of a project."""
    return installed == version or installed.startswith((f"{version}+", f"{version}."))


def wheel_file(name: str, version: str) -> str:
    """Return the file name of a companion's wheel."""
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
