"""Which onnxruntime a program carries, read from the libraries beside it."""

from __future__ import annotations

from pathlib import Path

import evidence_samples as samples
import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.facts.model import Platform
from ortgpu_fix.guests.libraries.carried import find_carried

LINUX = Platform(system="linux", machine="x86_64")
WINDOWS = Platform(system="windows", machine="x86_64")
SO = "libonnxruntime_providers_cuda.so"
DLL = "onnxruntime_providers_cuda.dll"
PROVIDER = samples.elf(links=["libcublas.so.12", "libcudnn.so.9"])
PROVIDER_DLL = samples.dll(imports={"cublas64_12.dll": ["x"]})


def write(folder: Path, files: dict[str, bytes]) -> Path:
    """Write a program, and these files beside it."""
    for name, content in {"app": b"", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / "app"


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"libonnxruntime.so.1.22.0": b"\0VERS_1.22.0\0"}, "1.22.0"),
        ({"libonnxruntime.so": b"x\0001.22.1\0y\0001.2.13\0"}, "1.22.1"),
        ({"libonnxruntime.so": b""}, None),
        ({}, None),
    ],
)
def test_its_main_library_says_the_version(
    tmp_path: Path, files: dict[str, bytes], version: str | None
) -> None:
    app = write(tmp_path, {SO: PROVIDER, **files})

    for path in (app, tmp_path, tmp_path / SO):
        carried = find_carried(path, LINUX)
        assert (carried.file, carried.version) == (tmp_path / SO, version)
        assert carried.platform == LINUX
        assert "libcublas.so.12" in carried.provider.links


def test_a_dll_says_it_by_its_stamp(tmp_path: Path) -> None:
    stamp = b"\xbd\x04\xef\xfe\0\0\1\0" + b"\x16\0\1\0" + b"\0\0\2\0"  # 1.22.2.0
    write(tmp_path, {DLL: PROVIDER_DLL, "onnxruntime.dll": b"\0001.22.2\0" + stamp})

    carried = find_carried(tmp_path, WINDOWS)
    assert (carried.version, carried.platform) == ("1.22.2", WINDOWS)


def test_of_several_systems_that_of_the_machine_is_taken(tmp_path: Path) -> None:
    write(tmp_path, {f"linux/x64/{SO}": PROVIDER, f"win32/x64/{DLL}": PROVIDER_DLL})

    assert find_carried(tmp_path, LINUX).file.name == SO
    assert find_carried(tmp_path, WINDOWS).file.name == DLL


def test_of_several_versions_the_nearest_counts_and_two_are_refused(tmp_path: Path) -> None:
    old = {f"old/{SO}": samples.elf(links=["libcublas.so.11"])}
    write(tmp_path, {SO: PROVIDER, **old})
    assert find_carried(tmp_path, LINUX).file == tmp_path / SO

    (tmp_path / SO).rename(tmp_path / "old" / "away")
    write(tmp_path, {f"new/{SO}": PROVIDER})
    with pytest.raises(Error) as refused:
        find_carried(tmp_path, LINUX)
    assert refused.value.code == "program-several"
    assert str(tmp_path / "new" / SO) in str(refused.value.values["files"])


def test_a_program_in_bin_has_its_libraries_in_lib(tmp_path: Path) -> None:
    write(tmp_path, {"bin/app": b"", f"lib/{SO}": PROVIDER})

    assert find_carried(tmp_path / "bin" / "app", LINUX).file == tmp_path / "lib" / SO

    write(tmp_path, {f"bin/{SO}": PROVIDER})
    assert find_carried(tmp_path / "bin" / "app", LINUX).file == tmp_path / "bin" / SO


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({}, "program-without-onnxruntime"),
        ({"libonnxruntime.so.1": b""}, "program-without-cuda"),
        ({SO: b"no library"}, "program-unreadable"),
    ],
)
def test_what_cannot_be_told_is_an_error(
    tmp_path: Path, files: dict[str, bytes], code: str
) -> None:
    with pytest.raises(Error) as refused:
        find_carried(write(tmp_path, files), LINUX)
    assert refused.value.code == code


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Error) as refused:
        find_carried(tmp_path / "nowhere", LINUX)
    assert refused.value.code == "program-unreadable"
