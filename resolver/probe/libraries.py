"""Look for CUDA toolkits and for the libraries that the loader would find.

Files are listed and a few small ones read; nothing is loaded and nothing run but ldconfig.
`root` stands for `/` in tests.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..facts.parsers import is_library, is_runtime, parse_dll_version, parse_ldconfig
from ..utils.process import Runner

_HEADERS = ("include/cuda.h", "targets/x86_64-linux/include/cuda.h", "Library/include/cuda.h")


def find_text(path: Path, limit: int = 256 * 1024) -> str | None:
    """Return the beginning of a text file, `limit` bytes at most; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(limit).decode(errors="replace")
    except (OSError, ValueError):
        return None


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; nothing where it cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - three times as fast in /usr/lib
    except (OSError, ValueError):
        return []


def find_toolkits(
    environ: Mapping[str, str], conda: str | None, root: Path, *, windows: bool
) -> dict[str, dict[str, str]]:
    """Return the files that tell the version, by folder of each CUDA toolkit, each folder once."""
    found: dict[str, dict[str, str]] = {}
    for folder in _toolkit_folders(environ, conda, root, windows=windows):
        real = os.path.realpath(folder)
        if real in found:
            continue
        files = {name: find_text(Path(real, name)) for name in ("version.json", "version.txt")}
        if not any(files.values()):
            texts = (find_text(Path(real, header)) for header in _HEADERS)
            files["cuda.h"] = next((_version_line(text) for text in texts if text), None)
        told = {name: text for name, text in files.items() if text}
        if told:
            found[real] = told
    return found


def _version_line(text: str) -> str:
    return "".join(line + "\n" for line in text.splitlines() if "define CUDA_VERSION" in line)


def _toolkit_folders(
    environ: Mapping[str, str], conda: str | None, root: Path, *, windows: bool
) -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if environ.get(name):
            yield Path(environ[name])
    for name in sorted(environ):
        if name.startswith("CUDA_PATH_V"):
            yield Path(environ[name])
    nvcc = shutil.which("nvcc", path=environ.get("PATH", ""))
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

    conda's folder goes first: its Python has it as DT_RPATH, which the loader reads before
    LD_LIBRARY_PATH (ld.so(8)). Then the loader's cache, then its default folders.
    """
    found: list[str] = []
    for folder in [f"{conda}/lib" if conda else "", *_paths(environ.get("LD_LIBRARY_PATH", ""))]:
        found += _in_folder(folder)
    found += [path for name, path in _cached(machine, root, runner) if is_library(name)]
    for place in (f"lib/{machine}-linux-gnu", f"usr/lib/{machine}-linux-gnu", "lib64", "usr/lib64"):
        found += _in_folder(str(root / place))
    for place in ("lib", "usr/lib", "usr/local/lib"):
        found += _in_folder(str(root / place))
    return _existing(found)


def find_dlls(
    environ: Mapping[str, str], base: str, conda: str | None
) -> tuple[tuple[str, str], ...]:
    """Return path and real path of each DLL of interest, in the order in which Windows looks.

    The folder `base` of the interpreter that runs (a venv's python.exe only starts that one), the
    system's folder, PATH, and the toolkit of CUDA_PATH, which onnxruntime adds by itself.
    """
    cuda = environ.get("CUDA_PATH", "")
    folders = [
        base,
        str(Path(environ.get("SystemRoot", "C:\\Windows"), "System32")),
        str(Path(conda, "Library", "bin")) if conda else "",
        *environ.get("PATH", "").split(";"),
        *((str(Path(cuda, "bin")), str(Path(cuda, "bin", "x64"))) if cuda else ()),
    ]
    return _existing(path for folder in folders for path in _in_folder(folder))


def dll_versions(libraries: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the version of each DLL of the Visual C++ runtime, by its path.

    NVIDIA's DLLs carry versions of another kind.
    """
    found: dict[str, str] = {}
    for path, real in libraries:
        if is_runtime(path.replace("\\", "/").rpartition("/")[2]):
            with contextlib.suppress(OSError):
                version = parse_dll_version(Path(real).read_bytes())
                found |= {path: version} if version else {}
    return found


def _existing(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return each path once with its real path; links to nothing are not what a loader finds."""
    real = ((path, os.path.realpath(path)) for path in dict.fromkeys(paths))
    return tuple((path, target) for path, target in real if Path(target).is_file())


def _paths(text: str) -> list[str]:
    """Split LD_LIBRARY_PATH; an empty entry is the current folder, which is nobody's intention."""
    return [entry for entry in text.replace(";", ":").split(":") if entry]


def _in_folder(folder: str) -> list[str]:
    if not folder:
        return []
    return [str(Path(folder, name)) for name in names_in(Path(folder)) if is_library(name)]


def _cached(machine: str, root: Path, runner: Runner) -> tuple[tuple[str, str], ...]:
    """Return what the loader's cache holds; nothing on musl, whose ldconfig has no such list."""
    program = next(
        (path for path in ("sbin/ldconfig", "usr/sbin/ldconfig") if (root / path).is_file()), None
    )
    if program is None:
        return ()
    try:
        answer = runner([str(root / program), "-p"], timeout=5, env={"LC_ALL": "C"})
    except OSError:
        return ()
    return parse_ldconfig(answer.stdout, machine)
