"""The two wheels that make a plan stick: one loads CUDA's libraries, one stands in for onnxruntime.

Core: values in, the bytes of wheels out, the same bytes every time. Nothing ever looks their names
up on an index; a stranger may own them there.

`ortgpu-fix-libraries` holds the list of the library files that the plan has, and two modules
(`autostart.py`, `autoload.py`) that load them when, and only when, onnxruntime is imported. Why so:

- A search path edited into the provider (patchelf) changes a file of another distribution, which
  then is damaged for everyone who compares it with its RECORD, and lost when it is installed again.
  Windows has no such thing.
- `LD_LIBRARY_PATH` is read when a process starts: it needs a wrapper around every command, reaches
  every child, and puts these libraries before the system's for all of them.
- `sitecustomize` and `usercustomize` exist once for an environment; distributions and users have
  theirs already. A `.pth` line (from Python 3.15 a `.start` file, PEP 829) is every package's own.

`onnxruntime` is an empty distribution of the version of the GPU build, which it requires: pip, uv
and others see that dependents are satisfied, and leave the GPU build alone.
"""

from __future__ import annotations

import base64
import hashlib
import io
import stat
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .facts import CPU_BUILD, GPU_BUILD
from .library_list import Entry, libraries
from .matrix import Matrix
from .plan import Wheel

LIBRARIES = "ortgpu-fix-libraries"
STAND_IN = CPU_BUILD
MARKER = "ORTGPU_FIX_PROVIDED"
"""The file in the stand-in's dist-info folder that tells it from the real CPU build."""
PACKAGE = "_ortgpu_fix_libraries"
LINE = f"import {PACKAGE}; {PACKAGE}.start()"
"""What an application needs before its import of onnxruntime where no .pth file is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalWheel:
    """A wheel that was made here."""

    name: str
    """Canonical."""
    version: str
    file: str
    content: bytes

    @property
    def sha256(self) -> str:
        """Return the hash of its content, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()


def for_plan(
    selection: Sequence[Wheel], matrix: Matrix, platform: str, modules: Mapping[str, str]
) -> tuple[LocalWheel, ...]:
    """Return the companions of a plan's whole selection on `platform` (`linux_x86_64`).

    `modules` are the texts of the modules that travel (`data_files.companion_modules`). There is no
    wheel for the libraries where the selection has none: then the system's own are in use.
    """
    version = next((row.version for row in selection if row.name == GPU_BUILD), None)
    if version is None:
        return ()
    entries = libraries(selection, matrix, platform)
    stand_in = stand_in_wheel(version)
    return (library_wheel(version, entries, modules), stand_in) if entries else (stand_in,)


def expected(
    selection: Sequence[Wheel], matrix: Matrix, platform: str, modules: Mapping[str, str]
) -> dict[str, str]:
    """Return name and version of each companion that belongs to `selection`.

    The version of the libraries' wheel covers everything in it, so an installed one of another
    version is to be replaced, and one of this version never.
    """
    made = for_plan(selection, matrix, platform, modules)
    return {wheel.name: wheel.version for wheel in made}


def library_wheel(release: str, entries: Sequence[Entry], modules: Mapping[str, str]) -> LocalWheel:
    """Return the wheel that loads `entries` when onnxruntime (`release`) is imported.

    Its version is the release and a digest of all that is in it.
    """
    guarded = f"try:\\n    {LINE}\\nexcept ImportError:\\n    pass"
    listed = "".join(f"{entry.when} {entry.distribution} {entry.path}\n" for entry in entries)
    files = {
        "ortgpu_fix_libraries.pth": f'import sys; exec("{guarded}")\n',
        "ortgpu_fix_libraries.start": f"{PACKAGE}:start\n",
        f"{PACKAGE}/libraries.txt": listed,
        **{f"{PACKAGE}/{name}": text for name, text in modules.items()},
    }
    digest = hashlib.sha256(repr((release, sorted(files.items()))).encode()).hexdigest()
    return _wheel(
        LIBRARIES,
        f"{release}{'.' if '+' in release else '+'}set{digest[:12]}",
        "Loads the CUDA libraries of this environment when onnxruntime is imported"
        " (made here by ortgpu-fix)",
        files=files,
    )


def stand_in_wheel(release: str) -> LocalWheel:
    """Return the empty distribution `onnxruntime` that onnxruntime-gpu `release` provides."""
    return _wheel(
        STAND_IN,
        release,
        "Not the CPU build: an empty stand-in, made here by ortgpu-fix, for those who require"
        " onnxruntime; onnxruntime-gpu provides the module",
        requires=f"{GPU_BUILD}=={release}",
        marks={MARKER: f"{GPU_BUILD}=={release} provides the module onnxruntime.\n"},
    )


def _wheel(
    name: str,
    version: str,
    summary: str,
    *,
    requires: str | None = None,
    files: Mapping[str, str] | None = None,
    marks: Mapping[str, str] | None = None,
) -> LocalWheel:
    """Return a wheel of these text files, and of `marks` in its dist-info folder."""
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Summary: {summary}", "Requires-Python: >=3.8"]
    metadata += [f"Requires-Dist: {requires}"] if requires else []
    wheel = ("Wheel-Version: 1.0", "Generator: ortgpu-fix", "Root-Is-Purelib: true")
    members = dict(files or {})
    members |= {f"{stem}.dist-info/{mark}": text for mark, text in (marks or {}).items()}
    members[f"{stem}.dist-info/METADATA"] = "\n".join(metadata) + "\n"
    members[f"{stem}.dist-info/WHEEL"] = "\n".join((*wheel, "Tag: py3-none-any")) + "\n"
    return LocalWheel(
        name=name,
        version=version,
        file=f"{stem}-py3-none-any.whl",
        content=_zip(members, f"{stem}.dist-info/RECORD"),
    )


def _zip(members: Mapping[str, str], record: str) -> bytes:
    """Return the zip of `members`, and of the RECORD that lists them."""
    lines = []
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as file:
        for member, text in sorted(members.items()):
            content = text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            lines.append(f"{member},sha256={digest.decode()},{len(content)}\n")
            file.writestr(_member(member), content)
        file.writestr(_member(record), "".join([*lines, f"{record},,\n"]).encode())
    return memory.getvalue()


def _member(name: str) -> zipfile.ZipInfo:
    """Return the head of a member that is the same whenever and wherever it is made."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3  # Unix
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info
