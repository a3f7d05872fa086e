"""Find CUDA toolkits, and the libraries that the loader would find.

Nothing is loaded, and only ldconfig is run. `root` is `/` except in tests.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..facts.parsers import is_library, is_runtime, parse_dll_version, parse_ldconfig
from ..utils.child_environment import child_environment
from ..utils.files import is_file
from ..utils.process import Runner
from ..utils.programs import find_program

_HEADERS = ("include/cuda.h", "targets/x86_64-linux/include/cuda.h", "Library/include/cuda.h")


def find_text(path: Path, limit: int = 256 * 1024) -> str | None:
    """Return the first `limit` bytes of a text file; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(limit).decode(errors="replace")
    except (OSError, ValueError):
        return None


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - three times as fast in /usr/lib
    except (OSError, ValueError):
        return []


def find_toolkits(
    environ: Mapping[str, str], conda: str | None, root: Path, *, windows: bool
) -> dict[str, dict[str, str]]:
    """Return the files with the version, by the real folder of each CUDA toolkit."""
    toolkits: dict[str, dict[str, str]] = {}
    folders = _toolkit_folders(environ, conda, root, windows=windows)
    for folder in dict.fromkeys(map(os.path.realpath, folders)):
        files = {name: find_text(Path(folder, name)) for name in ("version.json", "version.txt")}
        if not any(files.values()):
            texts = (find_text(Path(folder, header)) for header in _HEADERS)
            lines = next((text.splitlines() for text in texts if text), [])
            defines = (f"{line}\n" for line in lines if "define CUDA_VERSION" in line)
            files["cuda.h"] = "".join(defines)
        if any(files.values()):
            toolkits[folder] = {name: text for name, text in files.items() if text}
    return toolkits


def _toolkit_folders(
    environ: Mapping[str, str], conda: str | None, root: Path, *, windows: bool
) -> Iterator[Path]:
    versioned = sorted(name for name in environ if name.startswith("CUDA_PATH_V"))
    for name in ("CUDA_HOME", "CUDA_PATH", *versioned):
        if environ.get(name):
            yield Path(environ[name])
    nvcc = find_program("nvcc", environ)
    if nvcc:
        yield Path(os.path.realpath(nvcc)).parent.parent
    if conda:
        yield Path(conda)
    if windows:
        home = Path(environ.get("ProgramFiles", "C:\\Program Files"))
        home = home / "NVIDIA GPU Computing Toolkit" / "CUDA"
        yield from (home / name for name in names_in(home) if name.startswith("v"))
        return
    local = root / "usr/local"
    yield from (local / name for name in names_in(local) if name.startswith("cuda"))
    yield root / "opt/cuda"


def find_libraries(
    environ: Mapping[str, str], conda: str | None, machine: str, root: Path, runner: Runner
) -> tuple[tuple[str, str], ...]:
    """Return path and real path of each library of interest, in the order of the Linux loader.

    conda's folder comes first: it is the DT_RPATH of its Python, which the loader reads before
    LD_LIBRARY_PATH (ld.so(8)). Then the loader's cache, then its default folders.
    """
    path = environ.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":")
    multiarch = f"{machine}-linux-gnu"
    default = (f"lib/{multiarch}", f"usr/lib/{multiarch}", "lib64", "usr/lib64", "lib", "usr/lib")
    return _existing(
        [
            *_in_folders(f"{conda}/lib" if conda else "", *path),
            *(file for name, file in _cached(machine, root, runner) if is_library(name)),
            *_in_folders(*(str(root / folder) for folder in (*default, "usr/local/lib"))),
        ]
    )


def find_dlls(
    environ: Mapping[str, str], base: str, conda: str | None
) -> tuple[tuple[str, str], ...]:
    """Return path and real path of each DLL of interest, in the search order of Windows.

    The folder `base` of the base interpreter (which a venv's python.exe starts), the system's
    folder, PATH, and the toolkit of CUDA_PATH, which onnxruntime adds itself.
    """
    cuda = environ.get("CUDA_PATH", "")
    folders = [
        base,
        str(Path(environ.get("SystemRoot", "C:\\Windows"), "System32")),
        str(Path(conda, "Library", "bin")) if conda else "",
        *environ.get("PATH", "").split(";"),
        *((str(Path(cuda, "bin")), str(Path(cuda, "bin", "x64"))) if cuda else ()),
    ]
    return _existing(_in_folders(*folders))


def dll_versions(libraries: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the version of each DLL of the Visual C++ runtime, by its path."""
    versions: dict[str, str] = {}
    for path, real in libraries:
        if is_runtime(path.replace("\\", "/").rpartition("/")[2]):
            with contextlib.suppress(OSError):
                version = parse_dll_version(Path(real).read_bytes())
                versions |= {path: version} if version else {}
    return versions


def _existing(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return each path once with its real path, without dangling links."""
    real = ((path, os.path.realpath(path)) for path in dict.fromkeys(paths))
    return tuple((path, target) for path, target in real if is_file(Path(target)))


def _in_folders(*folders: str) -> list[str]:
    """Return the libraries; an empty entry, the current folder for a loader, is skipped."""
    return [
        str(Path(folder, name))
        for folder in folders
        if folder
        for name in names_in(Path(folder))
        if is_library(name)
    ]


def _cached(machine: str, root: Path, runner: Runner) -> tuple[tuple[str, str], ...]:
    """Return the loader's cache; empty on musl, whose ldconfig has no such list."""
    for program in (root / "sbin/ldconfig", root / "usr/sbin/ldconfig"):
        if program.is_file():
            with contextlib.suppress(OSError):
                listing = runner([str(program), "-p"], timeout=5, env=child_environment({}, "tool"))
                return parse_ldconfig(listing.stdout, machine)
            break
    return ()
