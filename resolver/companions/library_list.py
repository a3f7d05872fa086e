"""The list of the library files that are loaded for an onnxruntime-gpu, in their order.

It was decided by measurement (onnxruntime-gpu 1.26.0, CUDA 12.8, cuDNN 9.28, files in the page
cache; from a disk the first load takes about five times as long):

- The libraries that the provider links or opens by name take 160 ms and 165 MB of memory, nine
  tenths of it for the relocations of libcublasLt.
- NVRTC and nvJitLink take 25 ms and 55 MB. cuDNN up to 9.10 searches a folder that does not exist
  for NVRTC, cuFFT before 11.3 its own folder for nvJitLink, so they are loaded.
- The nine parts of cuDNN take 80 ms and 75 MB, with CUDA 13 twice that. cuDNN opens them from its
  own folder when it needs them, so they are not loaded, except where a folder of LD_LIBRARY_PATH
  would come before that one.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from ..facts.model import is_onnxruntime
from ..matrix import model
from ..matrix.model import Build, Matrix, WheelLibraries, libraries_of
from ..plan.wheels import Wheel

_MSVC_FILES = (
    "vcruntime140.dll",
    "vcruntime140_1.dll",
    "msvcp140.dll",
    "msvcp140_1.dll",
    "msvcp140_2.dll",
    "msvcp140_atomic_wait.dll",
    "concrt140.dll",
)
_MSVC_FOLDER = "../../Scripts"
"""The folder of msvc-runtime's DLLs, seen from site-packages; most are beside python.exe too."""

_ORDER = (
    *("cudart", "nvJitLink", "nvrtc-builtins", "nvrtc", "cublasLt", "cublas", "curand", "cufft"),
    *("cudnn_graph", "cudnn_ops", "cudnn_ops_infer", "cudnn_ops_train"),
    *("cudnn_cnn", "cudnn_cnn_infer", "cudnn_cnn_train", "cudnn_adv_infer", "cudnn_adv"),
)
"""No library links one that comes after it. Others follow, and `cudnn` itself is the last."""
_STEM = re.compile(r"(?:lib)?([A-Za-z_-]+?)(?:64)?(?:_[\d_]+)?\.(?:so|dll)\b")

_OPENED_BY = {"nvrtc": "cudnn", "nvJitLink": "cufft"}
"""The library that opens one which most providers neither link nor open."""

When = Literal["always", "shadowed", "newer"]


class Entry(NamedTuple):
    """A library file to load."""

    when: When
    """`shadowed`: only where LD_LIBRARY_PATH has another one of this name; `newer`: only where
    Windows itself has an older one, or none."""
    distribution: str
    path: str
    """From site-packages, with slashes."""


def libraries(selection: Sequence[Wheel], matrix: Matrix, platform: str) -> tuple[Entry, ...]:
    """Return the libraries of `selection` to load for its onnxruntime, in their order.

    `platform` is `linux_x86_64`.
    """
    versions = {wheel.name: wheel.version for wheel in selection}
    chosen = {(wheel.version, wheel.index_url) for wheel in selection if is_onnxruntime(wheel.name)}
    builds = (build for build in matrix.builds if build.platform == platform)
    builds = (build for build in builds if build.plugin is None or build.plugin.name in versions)
    build = next((build for build in builds if (build.version, build.index_url) in chosen), None)
    if build is None:
        return ()
    in_torch = {wheel.name for wheel in selection if wheel.index_url == model.IN_TORCH}
    held = _held(versions, in_torch, matrix, platform)
    windows = platform.startswith("windows")
    wanted = _wanted(build, held, windows=windows)
    entries = load_order(
        Entry("always" if windows else when, held[library][0], _path(library, held))
        for library, when in wanted.items()
    )
    if model.MSVC_RUNTIME in versions:  # on Windows
        # Each is a group of its own: Python comes with vcruntime140.dll, and none of the others.
        runtime = (Entry("newer", name, f"{_MSVC_FOLDER}/{name}") for name in _MSVC_FILES)
        return (*runtime, *entries)
    return entries


_Held = Mapping[str, tuple[str, WheelLibraries]]


def _held(
    versions: Mapping[str, str], in_torch: Collection[str], matrix: Matrix, platform: str
) -> _Held:
    """Return each library in the selection, with its distribution and all libraries of that.

    Those of the distributions `in_torch` are in torch's directory.
    """
    held: dict[str, tuple[str, WheelLibraries]] = {}
    for name, distribution in matrix.distributions.items():
        for release in distribution.releases:
            if release.version == versions.get(name) and release.platform == platform:
                contents = libraries_of(distribution, release)
                if contents is not None and name in in_torch:
                    paths = {library: f"torch/lib/{library}" for library in contents.libraries}
                    contents = contents._replace(libraries=paths)
                if contents is not None:
                    held |= dict.fromkeys(contents.libraries, (name, contents))
    return held


def _wanted(build: Build, held: _Held, *, windows: bool) -> dict[str, When]:
    """Return the libraries that the provider links or opens, and those that these open by name.

    The latter are `shadowed` where they are beside the library that opens them: NVIDIA's libraries
    search their own folder.
    """
    wanted: dict[str, When] = {
        need.library: "always" for need in build.needs if need.library in held
    }
    folders = {_stem(name): _folder(name, held) for name in wanted}
    parts = {name for library in wanted for name in held[library][1].libraries}
    for name in sorted(held.keys() - wanted.keys()):
        stem = _stem(name)
        if stem in _OPENED_BY:
            beside = _folder(name, held) == folders.get(_OPENED_BY[stem])
            wanted[name] = "shadowed" if beside else "always"
        elif (stem.startswith("cudnn_") and name in parts) or (
            windows and stem == "nvrtc-builtins"
        ):
            wanted[name] = "shadowed"
    return wanted


def _path(name: str, held: _Held) -> str:
    return held[name][1].libraries[name]


def _folder(name: str, held: _Held) -> str:
    return _path(name, held).rpartition("/")[0]


def _stem(path: str) -> str:
    """Return a library's name without prefix, version and suffix: `cublasLt`, `cudnn_ops`.

    A variant, such as `libnvrtc.alt.so.12`, keeps its whole name.
    """
    name = path.rpartition("/")[2]
    match = _STEM.match(name)
    return match[1] if match else name


def load_order(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return `entries` sorted so that each comes after the libraries that it links (`_ORDER`)."""

    def rank(entry: Entry) -> tuple[int, str]:
        stem = _stem(entry.path)
        position = _ORDER.index(stem) if stem in _ORDER else len(_ORDER) + (stem == "cudnn")
        return position, entry.path

    return tuple(sorted(entries, key=rank))
