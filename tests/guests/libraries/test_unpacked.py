"""Wheels unpacked flat into a directory, with licences and a manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.guests.libraries.unpacked import MANIFEST, UnpackedFile, unpack, write_manifest
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.progress import silent
from support.local_index import make_wheel
from support.standin_wheels import as_wheel

LICENCE = "nvidia_cublas_cu12-12.8.4.dist-info/licenses/License.txt"


def cublas(folder: Path, **more: bytes) -> dict[Wheel, Path]:
    """Write a wheel of cuBLAS, and return it as `unpack` takes it."""
    files: dict[str, str | bytes] = {
        "nvidia/cublas/lib/libcublas.so.12": b"one",
        "nvidia/cublas/lib/libcublasLt.so.12": b"two",
        "nvidia/cublas/lib/libnvblas.alt.so.12": b"not this",
        "nvidia/cublas/include/cublas.h": b"nor this",
        LICENCE: b"terms",
        **more,
    }
    path = make_wheel(folder, "nvidia-cublas-cu12", "12.8.4", files=files)
    return {as_wheel(path): path}


def row(name: str, content: bytes, wheel: str) -> UnpackedFile:
    return UnpackedFile(name, len(content), hashlib.sha256(content).hexdigest(), wheel)


def test_libraries_lie_flat_with_their_licences(tmp_path: Path) -> None:
    wheels = cublas(tmp_path / "wheels")
    [file] = [wheel.file for wheel in wheels]
    into = tmp_path / "libraries"

    written = unpack(wheels, into, silent)

    assert written == (
        row("libcublas.so.12", b"one", file),
        row("libcublasLt.so.12", b"two", file),
        row("licenses/nvidia-cublas-cu12-License.txt", b"terms", file),
    )
    assert (into / "libcublas.so.12").read_bytes() == b"one"
    assert (into / "libcublas.so.12").stat().st_nlink == 1
    assert sorted(path.name for path in into.rglob("*") if path.is_file()) == [
        "libcublas.so.12",
        "libcublasLt.so.12",
        "nvidia-cublas-cu12-License.txt",
    ]


def again(tmp_path: Path) -> tuple[dict[Wheel, Path], Path]:
    """Return what was unpacked, and the directory with its manifest."""
    wheels, into = cublas(tmp_path / "wheels"), tmp_path / "libraries"
    written = unpack(wheels, into, silent)
    write_manifest(into, {"files": [file._asdict() for file in written]})
    return wheels, into


def test_what_an_earlier_run_wrote_is_replaced_and_what_is_not_needed_goes(tmp_path: Path) -> None:
    _, into = again(tmp_path)
    path = make_wheel(
        tmp_path, "nvidia-cublas", "13.0.2", files={"nvidia/cu13/lib/libcublas.so.13": b"new"}
    )

    unpack({as_wheel(path): path}, into, silent)

    assert sorted(each.name for each in into.glob("*.so*")) == ["libcublas.so.13"]


def test_a_file_that_was_changed_is_left_and_named(tmp_path: Path) -> None:
    wheels, into = again(tmp_path)
    (into / "libcublas.so.12").write_bytes(b"of somebody else")

    with pytest.raises(Error) as refused:
        unpack(wheels, into, silent)

    assert (refused.value.code, refused.value.values["files"]) == (
        "libraries-in-the-way",
        "libcublas.so.12",
    )
    assert (into / "libcublas.so.12").read_bytes() == b"of somebody else"


@pytest.mark.parametrize(
    "manifest",
    ["no JSON", '{"files": 1}', '{"files": [{}]}', '{"files": [{"name": "../x", "sha256": "0"}]}'],
)
def test_a_manifest_that_is_not_ours_removes_nothing(tmp_path: Path, manifest: str) -> None:
    into = tmp_path / "libraries"
    into.mkdir()
    (tmp_path / "x").write_bytes(b"kept")
    (into / MANIFEST).write_text(manifest)

    assert len(unpack(cublas(tmp_path / "wheels"), into, silent)) == 3
    assert (tmp_path / "x").read_bytes() == b"kept"


def test_two_libraries_of_one_name_are_refused(tmp_path: Path) -> None:
    wheels = cublas(tmp_path, **{"nvidia/other/lib/libcublas.so.12": b"three"})

    with pytest.raises(Error) as refused:
        unpack(wheels, tmp_path / "libraries", silent)
    assert refused.value.code == "wheel-odd"


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(Error) as refused:
        unpack(cublas(tmp_path), tmp_path / "file", silent)
    assert refused.value.code in {"disk-failed", "file-unwritable"}
