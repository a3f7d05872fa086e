"""Toolkits and libraries, in folders made for the test."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from other_user import closed, with_others

from ortgpu_fix.probe.libraries import (
    dll_versions,
    find_dlls,
    find_libraries,
    find_text,
    find_toolkits,
    names_in,
)
from ortgpu_fix.utils.process import Finished


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def silent(argv: Sequence[str], **_: Any) -> Finished:
    return Finished(argv=tuple(argv), returncode=1, stdout="", stderr="")


def names(found: Sequence[tuple[str, str]], root: Path) -> list[str]:
    return [str(Path(path).relative_to(root)) for path, _ in found]


def test_toolkits_are_found_once_wherever_they_are_named(tmp_path: Path) -> None:
    local = tmp_path / "usr/local"
    put(local / "cuda-12.4/version.json", '{"cuda": {"version": "12.4.0"}}')
    put(local / "cuda-11.0/version.txt", "CUDA Version 11.0.228\n")
    put(local / "cuda-empty/readme")
    (local / "cuda").symlink_to(local / "cuda-12.4")
    nvcc = put(local / "cuda-12.4/bin/nvcc")
    nvcc.chmod(0o755)
    put(tmp_path / "opt/cuda/include/cuda.h", "/* */\n#define CUDA_VERSION 13000\n")
    put(tmp_path / "conda/targets/x86_64-linux/include/cuda.h", "#define CUDA_VERSION 11080\n")
    environ = {"CUDA_HOME": str(local / "cuda"), "PATH": str(nvcc.parent)}
    found = find_toolkits(environ, str(tmp_path / "conda"), tmp_path, windows=False)

    assert {Path(path).name: files for path, files in found.items()} == {
        "cuda-12.4": {"version.json": '{"cuda": {"version": "12.4.0"}}'},
        "conda": {"cuda.h": "#define CUDA_VERSION 11080\n"},
        "cuda-11.0": {"version.txt": "CUDA Version 11.0.228\n"},
        "cuda": {"cuda.h": "#define CUDA_VERSION 13000\n"},
    }


def test_toolkits_on_windows(tmp_path: Path) -> None:
    home = tmp_path / "NVIDIA GPU Computing Toolkit" / "CUDA"
    for version in ("12.1", "13.1"):
        put(home / f"v{version}" / "version.json", version)
    put(home / "old" / "version.json", "10.2")
    put(tmp_path / "elsewhere" / "version.json", "11.8")
    environ = {"ProgramFiles": str(tmp_path), "CUDA_PATH_V11_8": str(tmp_path / "elsewhere")}
    found = find_toolkits(environ, None, tmp_path, windows=True)

    assert [Path(path).name for path in found] == ["elsewhere", "v12.1", "v13.1"]


def test_libraries_in_the_order_of_the_loader(tmp_path: Path) -> None:
    real = put(tmp_path / "first/libcudnn.so.9.1.0")
    (tmp_path / "first/libcudnn.so.9").symlink_to(real)
    for place in ("conda/lib", "second", "cached", "usr/lib64"):
        put(tmp_path / place / "libcudnn.so.9")
    put(tmp_path / "second/libz.so.1")
    put(tmp_path / "sbin/ldconfig")

    def runner(argv: Sequence[str], **_: Any) -> Finished:
        text = f"\tlibcudnn.so.9 (libc6,x86-64) => {tmp_path}/cached/libcudnn.so.9\n"
        return Finished(argv=tuple(argv), returncode=0, stdout=text, stderr="")

    environ = {"LD_LIBRARY_PATH": f"{tmp_path}/first::{tmp_path}/second:/nowhere"}
    found = find_libraries(environ, str(tmp_path / "conda"), "x86_64", tmp_path, runner)

    assert names(found, tmp_path) == [
        "conda/lib/libcudnn.so.9",
        "first/libcudnn.so.9",
        "second/libcudnn.so.9",
        "cached/libcudnn.so.9",
        "usr/lib64/libcudnn.so.9",
    ]
    assert found[1][1] == str(real)


def test_a_loader_without_a_cache(tmp_path: Path) -> None:
    put(tmp_path / "lib/x86_64-linux-gnu/libcublas.so.12")
    put(tmp_path / "usr/sbin/ldconfig")

    def broken(argv: Sequence[str], **_: Any) -> Finished:
        raise PermissionError(argv)

    for runner in (silent, broken):
        found = find_libraries({}, None, "x86_64", tmp_path, runner)
        assert names(found, tmp_path) == ["lib/x86_64-linux-gnu/libcublas.so.12"]


def test_libraries_on_windows(tmp_path: Path) -> None:
    put(tmp_path / "base" / "vcruntime140.dll")
    put(tmp_path / "System32" / "msvcp140.dll")
    put(tmp_path / "one" / "cudnn64_9.dll")
    put(tmp_path / "cuda" / "bin" / "cublas64_12.dll")
    put(tmp_path / "cuda" / "bin" / "x64" / "cublas64_13.dll")
    put(tmp_path / "conda" / "Library" / "bin" / "cudart64_12.dll")
    environ = {
        "SystemRoot": str(tmp_path),
        "PATH": f"{tmp_path / 'one'};{tmp_path / 'nowhere'};",
        "CUDA_PATH": str(tmp_path / "cuda"),
    }

    found = find_dlls(environ, str(tmp_path / "base"), str(tmp_path / "conda"))

    assert [Path(path).name for path, _ in found] == [
        "vcruntime140.dll",
        "msvcp140.dll",
        "cudart64_12.dll",
        "cudnn64_9.dll",
        "cublas64_12.dll",
        "cublas64_13.dll",
    ]


def test_versions_of_the_visual_cpp_runtime(tmp_path: Path) -> None:
    version = b"\xbd\x04\xef\xfe\0\0\1\0" + bytes([42, 0, 14, 0, 0, 0, 0x81, 0x86])
    for name in ("MSVCP140.dll", "cudnn64_9.dll"):
        (tmp_path / name).write_bytes(version)
    put(tmp_path / "vcruntime140.dll")
    names = ("MSVCP140.dll", "cudnn64_9.dll", "vcruntime140.dll", "vcruntime140_1.dll")
    found = dll_versions((f"C:\\app\\{name}", str(tmp_path / name)) for name in names)

    assert found == {"C:\\app\\MSVCP140.dll": "14.42.34433.0"}


def test_what_cannot_be_read_is_nothing(tmp_path: Path) -> None:
    assert names_in(tmp_path / "nowhere") == []
    assert find_text(tmp_path) is None
    assert find_text(Path("\0")) is None


@with_others
def test_a_link_to_where_this_user_may_not_look_is_no_library(tmp_path: Path) -> None:
    real = put(tmp_path / "libcudnn.so.9")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "libcudnn.so.9").symlink_to(real)
        environ = {"LD_LIBRARY_PATH": folder}
        assert find_libraries(environ, None, "x86_64", Path("/nowhere"), silent)
        with closed(tmp_path):
            assert find_libraries(environ, None, "x86_64", Path("/nowhere"), silent) == ()
