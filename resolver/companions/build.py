"""Build the wheels of the companions: the same bytes every time."""

import base64
import hashlib
import io
import stat
import zipfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..facts.model import GPU_BUILD
from ..matrix.model import Matrix
from ..plan.wheels import HERE, PYPI, Wheel
from .contents import (
    LABEL,
    LIBRARIES,
    PLACEHOLDER,
    expected_companions,
    library_files,
    library_version,
    onnxruntime_of,
    version_with_requires,
    wheel_file,
)
from .library_list import Entry, libraries

MARKER = "ORTGPU_FIX_PROVIDED"
"""The file in the placeholder's dist-info folder that distinguishes it from the real CPU build."""


class LocalWheel(NamedTuple):
    """A wheel that this program built."""

    name: str
    """Canonical."""
    version: str
    file: str
    content: bytes

    @property
    def wheel(self) -> Wheel:
        """Return it as a wheel of a plan, or of a lock."""
        return Wheel(
            name=self.name,
            version=self.version,
            index_url=HERE,
            file=self.file,
            size=len(self.content),
            sha256=hashlib.sha256(self.content).hexdigest(),
        )


def build_companions(
    selection: Sequence[Wheel],
    matrix: Matrix,
    platform: str,
    modules: Mapping[str, str],
    placeholder: str = "",
) -> tuple[LocalWheel, ...]:
    """Return the companions of a plan's whole selection, as `expected_companions` names them."""
    expected = expected_companions(selection, matrix, platform, modules, placeholder)
    build = onnxruntime_of(selection)
    wheels = []
    if build and LIBRARIES in expected:
        entries = libraries(selection, matrix, platform)
        wheels.append(library_wheel(build.version, entries, modules, build.name))
    if build and PLACEHOLDER in expected:
        wheels.append(placeholder_wheel(build.version, build.name, expected[PLACEHOLDER]))
    return tuple(wheels)


def project_companions(
    selection: Sequence[Wheel],
    matrix: Matrix,
    platform: str,
    modules: Mapping[str, str],
    placeholder: str,
) -> tuple[LocalWheel, ...]:
    """Return the two companions as the files of a project name them; none where it needs no loader.

    There they are all that is named: the loader requires onnxruntime-gpu and NVIDIA's wheels at the
    versions of `selection`, and the placeholder has a version that no index can have.
    """
    build, entries = onnxruntime_of(selection), libraries(selection, matrix, platform)
    if build is None or build.name != GPU_BUILD or not entries:
        return ()
    others = sorted(wheel for wheel in selection if wheel.name.startswith("nvidia-"))
    requires = [
        f"{wheel.name}=={wheel.version}" for wheel in (build, *others) if wheel.index_url == PYPI
    ]
    return (
        library_wheel(build.version, entries, modules, requires=requires),
        placeholder_wheel(build.version, version=placeholder.removesuffix(LABEL) + LABEL),
    )


def library_wheel(
    release: str,
    entries: Sequence[Entry],
    modules: Mapping[str, str],
    build: str = GPU_BUILD,
    *,
    requires: Sequence[str] = (),
) -> LocalWheel:
    """Return the wheel that loads `entries` when `build` (`release`) is asked for CUDA."""
    files = library_files(release, entries, modules, build)
    summary = (
        "Loads the CUDA libraries of this environment when onnxruntime is asked for CUDA"
        " (built locally by ortgpu-fix)"
    )
    version = version_with_requires(library_version(release, files), requires)
    return make_wheel(LIBRARIES, version, summary, files, requires)


def placeholder_wheel(release: str, build: str = GPU_BUILD, version: str = "") -> LocalWheel:
    """Return the empty distribution `onnxruntime` that `build` (`release`) provides.

    Its `version` is another one where packages pin that.
    """
    version = version or release
    summary = (
        "Placeholder without files, built locally by ortgpu-fix: keeps the CPU-only package out;"
        f" {build} provides the module"
    )
    requires = f"{build}=={release}"
    marker = f"{PLACEHOLDER}-{version}.dist-info/{MARKER}"
    files = {marker: f"{requires} provides the module onnxruntime.\n"}
    return make_wheel(PLACEHOLDER, version, summary, files, [requires])


def make_wheel(
    name: str,
    version: str,
    summary: str,
    files: Mapping[str, str],
    requires: Sequence[str] = (),
) -> LocalWheel:
    """Return the wheel of `files`, the same bytes every time."""
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Summary: {summary}", "Requires-Python: >=3.8"]
    metadata += [f"Requires-Dist: {line}" for line in requires]
    wheel = ("Wheel-Version: 1.0", "Generator: ortgpu-fix", "Root-Is-Purelib: true")
    members = dict(files)
    members[f"{stem}.dist-info/METADATA"] = "\n".join(metadata) + "\n"
    members[f"{stem}.dist-info/WHEEL"] = "\n".join((*wheel, "Tag: py3-none-any")) + "\n"
    return LocalWheel(
        name=name,
        version=version,
        file=wheel_file(name, version),
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
    """Return a member's header, which is the same at every time and on every system."""
    info = zipfile.ZipInfo(name)  # of 1980-01-01
    info.create_system = 3  # Unix
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info
