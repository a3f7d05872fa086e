"""Reading ELF files, DLLs, GPU code and names of libraries."""

from __future__ import annotations

import sysconfig
from contextlib import suppress
from pathlib import Path

import evidence_samples as samples
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.binaries import elf, fatbin, library_names, pe, ptx
from ortgpu_fix.binaries.native import BinaryError
from ortgpu_fix.guests.update.library import read_library

TARGETS = {
    (75, 0x11): "7.5",
    (90, 0x11): "9.0",
    (90, 0x100011): "9.0a",
    (100, 0x1200011): "10.0f",
    (103, 0x1100011): "10.3a",
    (120, 0x1000011): "12.0",
    (120, 0x1100011): "12.0a",
    (120, 0x1200011): "12.0f",
    (121, 0x1108011): "12.1a",
}
"""Architecture and flags to target, as NVIDIA's `fatbinary` 13.5 wrote them."""


@pytest.mark.parametrize(("header", "target"), TARGETS.items(), ids=str)
def test_flags_name_the_target(header: tuple[int, int], target: str) -> None:
    """Plain, architecture-specific and family targets are told apart."""
    data = samples.fatbin(samples.fatbin_entry(header[0], flags=header[1]))

    assert [target] == [entry.target for entry in fatbin.entries(data)]


def test_fatbins_are_found_wherever_they_lie() -> None:
    """Two fatbins between other bytes, one of them with PTX, are both counted."""
    cubin, text = samples.fatbin_entry(80), samples.fatbin_entry(90, kind=1, flags=0x8011)
    data = b"x" * 13 + samples.fatbin(cubin, text) + b"y" * 5 + samples.fatbin(cubin)

    assert fatbin.count_groups(fatbin.entries(data)) == {"8.0 ptx9.0": 1, "8.0": 1}


def test_a_stray_magic_number_is_passed_over() -> None:
    """The magic number inside other data hides nothing."""
    data = fatbin.MAGIC + b"\xff" * 40 + samples.fatbin(samples.fatbin_entry(75))

    assert [entry.target for entry in fatbin.entries(data)] == ["7.5"]


def test_a_magic_number_in_a_payload_is_no_fatbin() -> None:
    """What lies inside a payload belongs to it."""
    data = samples.fatbin(
        samples.fatbin_entry(75, payload=samples.fatbin(samples.fatbin_entry(35)))
    )

    assert [entry.target for entry in fatbin.entries(data)] == ["7.5"]


@given(st.binary(max_size=400))
def test_any_bytes_are_searched_for_gpu_code(data: bytes) -> None:
    """No bytes make the search fail."""
    fatbin.count_groups(fatbin.entries(data))
    fatbin.count_groups(fatbin.entries(samples.fatbin(samples.fatbin_entry(80))[:90] + data))


def test_what_is_read_of_the_gpu_code_of_a_library() -> None:
    """Its machine code by target, its fatbins by what they hold, and the newest PTX they need."""
    text = samples.fatbin_entry(90, kind=1, payload=b"//\n.version 8.7\n.target sm_90\n")
    cubin = samples.fatbin_entry(80, payload=b"//\n.version 9.9\n.target sm_80\n")
    fatbins = samples.fatbin(cubin, text) + samples.fatbin(text)

    found = read_library(samples.elf(links=["libc.so.6"], exports=["GetProvider"], extra=fatbins))

    assert (found["links"], found["exports"]) == (("libc.so.6",), ["GetProvider"])
    assert found["sass"] == {"8.0": 1}
    assert found["groups"] == {"8.0 ptx9.0": 1, "ptx9.0": 1}
    assert found["isa"] == ["8.7"]


@given(st.binary(max_size=200))
def test_any_bytes_are_tried_as_lz4(data: bytes) -> None:
    """A damaged block gives what there is, or nothing."""
    ptx.version(data, "lz4")


def test_elf_links_search_paths_and_symbols() -> None:
    """All that is read of an ELF file, from one made for the purpose."""
    data = samples.elf(
        name="libonnxruntime_providers_cuda.so",
        links=["libcublas.so.12", "libc.so.6"],
        search="$ORIGIN:/usr/local/cuda-12.2/lib",
        imports={"libcublas.so.12": ["cublasCreate_v2"], "": ["plain"]},
        exports=["GetProvider"],
        local=["helper"],
    )

    native = elf.read(data)

    assert native.name == "libonnxruntime_providers_cuda.so"
    assert native.links == ("libcublas.so.12", "libc.so.6")
    assert native.search == ("$ORIGIN", "/usr/local/cuda-12.2/lib")
    assert native.imports == {"": ("plain",), "libcublas.so.12": ("cublasCreate_v2",)}
    assert native.exports == {"GetProvider"}


def test_exports_from_the_front_of_an_elf_file() -> None:
    """The first part gives the same exports as the whole; too little gives None."""
    exports = [f"cublas{number}" for number in range(50)]
    data = samples.elf(
        links=["libm.so.6"],
        imports={"libc.so.6": ["malloc"]},
        exports=exports,
        extra=bytes(range(256)) * 64,
    )

    assert elf.read(data).exports == set(exports)
    assert elf.exports_at_front(data[:4096]) == frozenset(exports)
    assert elf.exports_at_front(data[:700]) is None
    strings = {*exports, "malloc", "libc.so.6", "libm.so.6", "v1"}
    assert elf.strings_at_front(data[:4096]) == frozenset(strings)
    assert elf.strings_at_front(data[:700]) is None


def test_a_symbol_whose_name_is_the_end_of_another() -> None:
    """Linkers share the ends of names; where too many begin within another it is no such table."""
    exports = [f"cublasGemm{number}" for number in range(20)]
    data = bytearray(samples.elf(exports=exports, extra=bytes(2048)))
    first = data.index(samples.elf_symbol(name_at=1))
    for number in range(5):
        data[first + 24 * number] += len("cublas")
    told = elf.exports_at_front(data[:2048])
    data[first + 24 * 5] += len("cublas")

    assert told == frozenset({*exports[5:], *(f"Gemm{number}" for number in range(5))})
    assert elf.exports_at_front(data[:2048]) is None


@pytest.mark.parametrize(
    ("text", "major", "made"),
    [
        ("libnvrtc.so.%d", "12", "libnvrtc.so.12"),
        ("libnvrtc.so.%d.%d", "11", "libnvrtc.so.11.2"),
        ("nvrtc64_%d_0.dll", "12", "nvrtc64_120_0.dll"),
        ("nvrtc64_%d_0.dll", "11", "nvrtc64_112_0.dll"),
    ],
)
def test_a_name_that_is_made_while_it_runs(text: str, major: str, made: str) -> None:
    """The format is found in either kind of file; the CUDA major decides what it makes."""
    held = b"\0" + text.encode() + b"\0"
    found = library_names.sonames_in(samples.elf(extra=held))
    in_dll = library_names.dll_names_in(samples.dll(extra=held))

    assert found == in_dll == {text}
    assert library_names.named({text, "libcudart.so.12"}, major) == {made, "libcudart.so.12"}
    assert library_names.named({text}, None) == frozenset()


def _real_libraries() -> list[Path]:
    folder = sysconfig.get_config_var("DESTSHARED")
    return sorted(Path(folder).glob("*.so"))[:12] if folder else []


@pytest.mark.parametrize("path", _real_libraries(), ids=lambda path: path.name)
def test_real_elf_files_read_as_pyelftools_reads_them(path: Path) -> None:
    """An independent reader sees the same in Python's own extension modules."""
    elffile = pytest.importorskip("elftools.elf.elffile")
    with path.open("rb") as file:
        other = elffile.ELFFile(file)
        tags = list(other.get_section_by_name(".dynamic").iter_tags())
        needed = tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED")
        symbols = [
            symbol
            for symbol in other.get_section_by_name(".dynsym").iter_symbols()
            if symbol.name and symbol.entry.st_info.bind != "STB_LOCAL"
        ]
    data = path.read_bytes()

    native = elf.read(data)

    assert native.links == needed
    assert native.exports == {s.name for s in symbols if s.entry.st_shndx != "SHN_UNDEF"}
    assert {name for names in native.imports.values() for name in names} == {
        s.name for s in symbols if s.entry.st_shndx == "SHN_UNDEF"
    }
    assert elf.exports_at_front(data) in {None, native.exports}


@given(st.binary(max_size=300), st.integers(0, 700))
def test_any_elf_like_bytes_give_facts_or_the_one_error(data: bytes, cut: int) -> None:
    """Damage anywhere is an `BinaryError`, nothing else."""
    whole = samples.elf(name="x", links=["y"], imports={"y": ["z"]}, exports=["w"])
    for sample in (b"\x7fELF\x02\x01" + data, whole[:cut] + data + whole[cut + len(data) :]):
        elf.exports_at_front(sample)
        with suppress(BinaryError):
            elf.read(sample)


def test_dll_imports_delayed_imports_and_exports() -> None:
    """All that is read of a DLL, from one made for the purpose."""
    data = samples.dll(
        name="cublas64_12.dll",
        imports={"cublasLt64_12.dll": ["cublasLtCreate"], "MSVCP140.dll": ["??0"]},
        delayed={"cudnn64_9.dll": ["cudnnCreate"]},
        exports=["cublasCreate_v2", "cublasDestroy_v2"],
    )

    native = pe.read(data)

    assert native.name == "cublas64_12.dll"
    assert native.links == ("cublasLt64_12.dll", "MSVCP140.dll")
    assert native.delayed == ("cudnn64_9.dll",)
    assert native.imports["cudnn64_9.dll"] == ("cudnnCreate",)
    assert native.exports == {"cublasCreate_v2", "cublasDestroy_v2"}


def test_imports_in_the_address_table_alone_are_read() -> None:
    data = samples.dll(imports={"cublasLt64_12.dll": ["cublasLtCreate"]}, lookup=False)

    assert pe.read(data).imports == {"cublasLt64_12.dll": ("cublasLtCreate",)}


def test_a_dll_for_arm64_is_read_and_one_of_32_bits_is_not() -> None:
    arm, old = (samples.dll(name="a.dll", exports=["e"], machine=at) for at in (0xAA64, 0x14C))

    assert pe.read(arm).exports == {"e"}
    with pytest.raises(BinaryError, match="not a 64-bit DLL"):
        pe.read(old)


def test_the_sample_dll_reads_as_pefile_reads_it() -> None:
    """An independent reader sees the same."""
    pefile = pytest.importorskip("pefile")
    data = samples.dll(name="a.dll", imports={"b.dll": ["c", "d"]}, exports=["e"])
    other = pefile.PE(data=data)

    native = pe.read(data)

    assert native.imports == {
        entry.dll.decode(): tuple(sorted(item.name.decode() for item in entry.imports))
        for entry in other.DIRECTORY_ENTRY_IMPORT
    }
    assert native.exports == {
        symbol.name.decode() for symbol in other.DIRECTORY_ENTRY_EXPORT.symbols
    }
    linker = other.OPTIONAL_HEADER
    assert pe.toolset(data[:4096]) == f"{linker.MajorLinkerVersion}.{linker.MinorLinkerVersion}"


@pytest.mark.parametrize("data", [b"", b"MZ" + bytes(80), b"ELF", samples.dll()[:90]])
def test_the_toolset_of_what_is_no_dll(data: bytes) -> None:
    """Nothing is guessed."""
    with pytest.raises(BinaryError):
        pe.toolset(data)


@given(st.binary(max_size=300), st.integers(0, 1500))
def test_any_dll_like_bytes_give_facts_or_the_one_error(data: bytes, cut: int) -> None:
    """Damage anywhere is an `BinaryError`, nothing else."""
    whole = samples.dll(name="x", imports={"y": ["z"]}, delayed={"v": ["u"]}, exports=["w"])
    for sample in (b"MZ" + data, whole[:cut] + data + whole[cut + len(data) :]):
        with suppress(BinaryError):
            pe.read(sample)


def test_names_as_text_and_in_machine_code() -> None:
    """`libcudnn.so.9` is found in one piece, and as two immediate values."""
    code = b"\x48\xb8libcufft\x48\x89\x44\x24\x30\x48\xb8ft.so.12\x48\x89"
    data = b"..\0libcudnn.so.9\0libnvrtc.so\0notlibcuda\0" + code + b"libcuda.so.1\0"

    found = library_names.sonames_in(data)

    assert found == {"libcudnn.so.9", "libnvrtc.so", "libcufft.so.12", "libcuda.so.1"}


def test_symbols_are_named_by_those_who_link_and_by_those_who_ask() -> None:
    held = b"x\0cublasLtCreate\0__nvrtcCPEx\0_cudnnA\0 nvJitLinkVersion\0cufft_\0curandX!\0nvrtc\0"
    assert library_names.symbols_in(held) == {
        *("cublasLtCreate", "__nvrtcCPEx", "cudnnA", "nvJitLinkVersion")
    }


def test_dll_names_in_both_encodings() -> None:
    """ASCII and UTF-16 names are found; a longer word is not cut into one."""
    data = b"\0cudnn64_9.dll\0" + b"\1\0" + "cufft64_12.dll\0".encode("utf-16-le")
    data += b"xnvcuda.dll\0" + b"\0nvrtc64_130_0.alt.dll\0"

    assert library_names.dll_names_in(data) == {
        "cudnn64_9.dll",
        "cufft64_12.dll",
        "nvrtc64_130_0.alt.dll",
    }
