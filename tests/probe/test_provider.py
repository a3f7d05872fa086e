"""What an installed CUDA provider says of itself, read without loading it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import evidence_samples as samples
import pytest

from ortgpu_fix.facts.model import Provider
from ortgpu_fix.probe.provider import read_plugin, read_provider

CODE = b"".join(
    samples.fatbin(
        samples.fatbin_entry(80),
        samples.fatbin_entry(90, flags=0x10_0011),
        samples.fatbin_entry(90, kind=1),
    )
    for _ in range(3)
)
SOURCE = """
extern void cublasCreate_v2(void);
extern const char *names[];
const char *names[] = {"libcudnn.so.9", "libnvrtc.so.13", "libother.so.1"};
void GetProvider(void) { cublasCreate_v2(); }
asm(".section .nv_fatbin, \\"a\\"\\n.incbin \\"code\\"\\n.previous");
"""


def folder_with(tmp_path: Path, name: str, content: bytes, init: str = "") -> Path:
    (tmp_path / "capi").mkdir()
    (tmp_path / "capi" / name).write_bytes(content)
    (tmp_path / "__init__.py").write_text(init)
    return tmp_path


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None,
    reason="needs gcc, on Linux",
)
def test_a_shared_object_says_what_it_links_names_and_carries(tmp_path: Path) -> None:
    (tmp_path / "code").write_bytes(CODE)
    (tmp_path / "cublas.c").write_text("void cublasCreate_v2(void) {}")
    (tmp_path / "provider.c").write_text(SOURCE)
    gcc = ["gcc", "-shared", "-fPIC", "-o"]
    soname = "-Wl,-soname,libcublas.so.13"
    for argv in (
        [*gcc, "libcublas.so.13", soname, "cublas.c"],
        [*gcc, "provider.so", "provider.c", "-L.", "-l:libcublas.so.13"],
    ):
        subprocess.run(argv, cwd=tmp_path, check=True)
    built = (tmp_path / "provider.so").read_bytes()
    folder = tmp_path / "onnxruntime"
    folder.mkdir()

    name, init = "libonnxruntime_providers_cuda.so", "def preload_dlls(): ..."
    assert read_provider(folder_with(folder, name, built, init)) == Provider(
        links=("libcublas.so.13",),
        names=("libcudnn.so.9", "libnvrtc.so.13"),
        sass=("8.0", "9.0a"),
        ptx=("9.0",),
        preload_dlls=True,
    )


def test_a_dll_says_what_it_imports_names_and_carries(tmp_path: Path) -> None:
    dll = samples.dll(
        imports={"cublas64_13.dll": ["cublasCreate_v2"], "KERNEL32.dll": ["Sleep"]},
        extra=b"\0cudnn64_9.dll\0",
        code=CODE,
    )

    name = "onnxruntime_providers_cuda.dll"
    assert read_provider(folder_with(tmp_path, name, dll)) == Provider(
        links=("cublas64_13.dll",),
        names=("cudnn64_9.dll",),
        sass=("8.0", "9.0a"),
        ptx=("9.0",),
        toolset="14.40",
    )


@pytest.mark.parametrize("content", [b"", b"no ELF file", samples.elf(links=["a"])[:90]])
def test_a_provider_that_cannot_be_read_is_not_known(content: bytes, tmp_path: Path) -> None:
    name = "libonnxruntime_providers_cuda.so"

    assert read_provider(folder_with(tmp_path, name, content)) is None


def test_a_dll_without_texts(tmp_path: Path) -> None:
    bare = samples.dll(imports={"cublas64_12.dll": ["x"]}).replace(b".rdata", b".other")
    name = "onnxruntime_providers_cuda.dll"

    assert read_provider(folder_with(tmp_path, name, bare)) == Provider(
        links=("cublas64_12.dll",), toolset="14.40"
    )


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None,
    reason="needs gcc, on Linux",
)
def test_a_plugin_needs_what_it_links_and_does_not_bring(tmp_path: Path) -> None:
    (tmp_path / "ep").mkdir()
    for name in ("libcudart.so.13", "libcublas.so.13"):
        soname = f"-Wl,-soname,{name}"
        subprocess.run(
            ["gcc", "-shared", "-x", "c", "/dev/null", soname, "-o", tmp_path / name], check=True
        )
    library = tmp_path / "ep" / "libonnxruntime_providers_nv.so"
    links = [f"-L{tmp_path}", "-l:libcudart.so.13", "-l:libcublas.so.13"]
    empty = ["-Wl,--no-as-needed", "-x", "c", "/dev/null", "-x", "none"]
    subprocess.run(["gcc", "-shared", *empty, *links, "-o", library], check=True)
    own = "ep/libcudart.so.13"

    def links_of(*libraries: str) -> tuple[str, ...] | None:
        provider = read_plugin(tmp_path, libraries)
        return provider and provider.links

    assert links_of("ep/libonnxruntime_providers_nv.so") == ("libcublas.so.13", "libcudart.so.13")
    assert links_of(own, "ep/libonnxruntime_providers_nv.so") == ("libcublas.so.13",)
    assert links_of("ep/libcudart.so.13.4.36", "ep/libonnxruntime_providers_nv.so") == (
        *("libcublas.so.13", "libcudart.so.13"),
    )
    assert links_of(own) is None
    assert links_of("ep/libonnxruntime_providers_gone.so") is None
