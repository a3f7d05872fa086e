"""Names of CUDA libraries that a binary holds: what it loads by name at run time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .native import Content

PROVIDER = re.compile(r".*/(?:lib)?onnxruntime_providers_cuda\.(?:so|dll)\Z")
"""The path of the library of CUDA's execution provider, in a wheel of onnxruntime-gpu."""
KNOWN = frozenset(
    f"lib{stem}.so.{version}"
    for stem, versions in {
        "cublas": ("11", "12", "13"),
        "cublasLt": ("11", "12", "13"),
        "cudart": ("11.0", "12", "13"),
        "cudnn": ("8", "9"),
        "cufft": ("10", "11", "12"),
        "curand": ("10",),
        "nvrtc": ("11.2", "12", "13"),
        "nvJitLink": ("12", "13"),
    }.items()
    for version in versions
)
"""Names looked for in machine code, where they are not in one piece."""

FORMATS = {
    "libnvrtc.so.%d": {"12": "libnvrtc.so.12", "13": "libnvrtc.so.13"},
    "libnvrtc.so.%d.%d": {"11": "libnvrtc.so.11.2"},
    "nvrtc64_%d_0.dll": {
        "11": "nvrtc64_112_0.dll",
        "12": "nvrtc64_120_0.dll",
        "13": "nvrtc64_130_0.dll",
    },
}
"""Texts of which a library makes the name of NVRTC, by the CUDA major that it is built for: cuDNN
9.0 to 9.6, and all of cuDNN 9 for CUDA 11, hold no whole name."""
DRIVER = frozenset({"libcuda.so.1", "nvcuda.dll"})
"""The driver's own library: no wheel holds it."""
_LIBRARY = re.compile(r"(?:lib)?([A-Za-z_]+?)(?:\.so\.[0-9.]+|(?:64)?_[0-9_]+\.dll)\Z")
_CUDA = re.compile(r"cu(blas|blasLt|dart|dnn\w*|fft|rand)|nvrtc|nvJitLink")
_STEMS = (b"cublas", b"cudnn", b"cufft", b"curand", b"nvrtc", b"nvJitLink")
_SYMBOL = re.compile(rb"[A-Za-z]\w*(?=\0)")
_SONAME = re.compile(rb"lib(?:cu|nv)[A-Za-z_.\-]{2,40}?\.so(?:\.[0-9]+)*(?=\0)")
_DLL_TAIL = re.compile(rb"(?:cu|nv)[A-Za-z_\-]{2,40}[0-9_]{0,12}(?:\.alt)?\.dll\Z")
_WINDOW = 192
"""Bytes from the first half of a name built in code within which the other half is too."""
_LONGEST = 64
_MOV_IMMEDIATE = re.compile(rb"[\x48\x49][\xb8-\xbf]")
"""x86-64 `mov r64, imm64` up to the value: a prefix, and an opcode that names the register."""


def stem(name: str) -> str:
    """Return `cublasLt` for `libcublasLt.so.12` and `cublasLt64_12.dll`; empty for others."""
    match = _LIBRARY.fullmatch(name)
    return match[1] if match else ""


def is_cuda_library(name: str) -> bool:
    """Say whether a library name is one of CUDA's, with its version, or the driver's."""
    return name in DRIVER or _CUDA.fullmatch(stem(name)) is not None


def sonames_in(data: Content) -> frozenset[str]:
    """Return the names of CUDA libraries (`libcudnn.so.9`) in an ELF file.

    Compilers build short strings from immediate values: `libcudnn.so.9` is then nowhere in one
    piece. Such names are recognised only where they are in `KNOWN`: the first eight bytes as an
    immediate, the last eight a few instructions further on.
    """
    found = {bytes(match[0]).decode("ascii") for match in _SONAME.finditer(data)}
    return frozenset({*found, *_built_in_code(data), *_formats_in(data)})


def dll_names_in(data: Content) -> frozenset[str]:
    """Return the names of CUDA libraries (`cudnn64_9.dll`) in a DLL, as ASCII or UTF-16 text."""
    tails = {*_tails(data, b".dll\0", 1), *_tails(data, b".\0d\0l\0l\0\0\0", 2)}
    return frozenset({*tails, *_formats_in(data)})


def symbols_in(data: Content) -> frozenset[str]:
    """Return the names of symbols of CUDA's libraries, its runtime's excepted, that stand there.

    What is linked and what is asked for by name (`dlsym`) stands there alike.
    """
    found: set[str] = set()
    for stem in _STEMS:
        position = data.find(stem)
        while position >= 0:
            rest = _SYMBOL.match(data, position + len(stem))
            if rest:
                start = position - 2 if data[position - 2 : position] == b"__" else position
                found.add(bytes(data[start : rest.end()]).decode("ascii"))
            position = data.find(stem, position + len(stem))
    return frozenset(found)


def named(mentions: Iterable[str], major: str | None) -> frozenset[str]:
    """Return names of libraries, those of `FORMATS` as a library for a CUDA major makes them."""
    made = ({text} if text not in FORMATS else _made(text, major) for text in mentions)
    return frozenset(name for names in made for name in names)


def _made(text: str, major: str | None) -> set[str]:
    name = FORMATS[text].get(major or "")
    return {name} if name else set()


def _formats_in(data: Content) -> Iterator[str]:
    yield from (text for text in FORMATS if data.find(text.encode() + b"\0") >= 0)


def _tails(data: Content, ending: bytes, width: int) -> Iterator[str]:
    position = data.find(ending)
    while position >= 0:
        stop = position + len(ending) - width
        text = bytes(data[max(0, stop - _LONGEST * width) : stop])
        if width > 1:
            # The high byte of each character is zero; stop at the first one that is not.
            characters = text[::-1]
            usable = next(
                (at for at in range(0, len(characters), 2) if characters[at]), len(characters)
            )
            text = characters[:usable][1::2][::-1]
        match = _DLL_TAIL.search(text)
        if match:
            before = text[: match.start()][-1:]
            if not before.isalnum():
                yield match[0].decode("ascii")
        position = data.find(ending, position + 1)


def _built_in_code(data: Content) -> Iterator[str]:
    by_front: dict[bytes, list[str]] = {}
    for name in KNOWN:
        by_front.setdefault(name.encode()[:8], []).append(name)
    for stem in (b"libcu", b"libnv"):
        position = data.find(stem)
        while position >= 0:
            if _MOV_IMMEDIATE.fullmatch(data, max(0, position - 2), position):
                window = bytes(data[position : position + _WINDOW])
                for name in by_front.get(window[:8], ()):
                    if name.encode()[-8:] in window:
                        yield name
            position = data.find(stem, position + 1)
