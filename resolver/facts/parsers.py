"""Parse the texts of a machine, one function a text; its docstring quotes the text.

Any text is accepted; what cannot be parsed is absent, never an exception.
"""

from __future__ import annotations

import json
import mmap
import re
import struct
from collections.abc import Mapping

from .driver_replies import compute_capability, cuda_version, release
from .model import Gpu

SMI_FIELDS = "name,compute_cap,memory.total,driver_version"
"""The columns that nvidia-smi is asked for, in their order."""
SMI_OLD_FIELDS = "name,memory.total,driver_version"
"""The same for drivers before 510, whose nvidia-smi knows no compute_cap."""


def parse_smi(text: str) -> tuple[tuple[Gpu, str | None], ...]:
    """Read the rows of `nvidia-smi --query-gpu=… --format=csv,noheader,nounits`.

    `NVIDIA A100-SXM4-80GB, 8.0, 81920, 535.104.12`; an unknown value is `[N/A]` or
    `[Not Supported]`; the old form has no capability; failures and tables are no rows.
    """
    rows: list[tuple[Gpu, str | None]] = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.rsplit(",", 3)]
        if len(fields) < 3 or "|" in line:  # noqa: PLR2004 - name, memory, release
            continue
        if len(fields) == 4 and not re.fullmatch(r"[0-9]+\.[0-9]|\[.*\]", fields[1]):  # noqa: PLR2004
            fields[:2] = [f"{fields[0]}, {fields[1]}"]  # a comma in the name
        memory = fields[-2]
        if not re.fullmatch(r"[0-9]{1,9}|\[.*\]", memory):
            continue
        gpu = Gpu(
            name=fields[0] or None,
            compute_capability=compute_capability(fields[1]),
            memory_mib=int(memory) if memory.isdecimal() else None,
        )
        rows.append((gpu, release(fields[-1])))
    return tuple(rows)


def parse_proc_version(text: str) -> str | None:
    """Read /proc/driver/nvidia/version, of the closed or the open kernel module.

    `NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.12  Wed Sep 20 …` or
    `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build …`.
    """
    line = re.search(r"^NVRM version:.*?Kernel Module(.*)$", text, re.MULTILINE)
    return release(line[1]) if line else None


def parse_proc_gpu(text: str) -> Gpu:
    r"""Read /proc/driver/nvidia/gpus/…/information: `Model: \t\t NVIDIA A100-SXM4-80GB`."""
    model = re.search(r"^Model:[ \t]*(.*?)[ \t]*$", text, re.MULTILINE)
    return Gpu(name=model[1] if model and model[1] not in {"", "Unknown"} else None)


def parse_pci(text: str) -> tuple[Gpu, ...]:
    """Read the NVIDIA display controllers of the bus: `0x10de 0x20b2 0x030200` a line."""
    rows = re.findall(r"^0x10de 0x([0-9a-f]{4}) 0x03", text, re.MULTILINE)
    return tuple(Gpu(name=f"NVIDIA GPU (PCI 10de:{device})") for device in rows)


def parse_os_release(text: str) -> str | None:
    """Read /etc/os-release: `NAME="Ubuntu"` and `VERSION_ID="22.04"` give `Ubuntu 22.04`."""
    row = r"^(NAME|VERSION_ID)=[\"']?(.*?)[\"']?[ \t]*$"
    fields = dict(re.findall(row, text, re.MULTILINE))
    return f"{fields.get('NAME', '')} {fields.get('VERSION_ID', '')}".strip() or None


def parse_toolkit(files: Mapping[str, str]) -> str | None:
    """Return the version (`12.4`) of a CUDA toolkit from the first of its files that has it.

    version.json: `{"cuda": {"name": "CUDA SDK", "version": "12.4.0"}, …}`;
    version.txt (up to 11.0): `CUDA Version 10.2.89`; cuda.h: `#define CUDA_VERSION 12040`.
    """
    try:
        version = re.match(_TOOLKIT, json.loads(files["version.json"])["cuda"]["version"])
    except (ValueError, LookupError, TypeError, RecursionError):
        version = None
    version = version or re.search(_TOOLKIT, files.get("version.txt", ""))
    if version:
        return version[0]
    define = r"^#define\s+CUDA_VERSION\s+([0-9]{4,6})\s*$"
    number = re.search(define, files.get("cuda.h", ""), re.MULTILINE)
    return cuda_version(int(number[1])) if number else None


def parse_ldconfig(text: str, machine: str) -> tuple[tuple[str, str], ...]:
    r"""Read `ldconfig -p`: name and path of each library for `machine`, in the loader's order.

    `\tlibcudnn.so.9 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcudnn.so.9`
    """
    flag = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(machine, machine)
    rows = re.findall(r"^\s+(\S+) \(([^)]*)\) => (/\S.*)$", text, re.MULTILINE)
    return tuple((name, path) for name, flags, path in rows if flag in flags)


_TOOLKIT = r"[0-9]+\.[0-9]+"
_RUNTIME = re.compile(r"(?i:msvcp140\.dll|vcruntime140(?:_1)?\.dll)")
_LIBRARY = re.compile(
    r"lib(?:cublas|cublasLt|cufft|cufftw|curand|nvJitLink|cudnn(?:_\w+)?)\.so\.\d+"
    r"|lib(?:cudart|nvrtc)\.so\.\d+(?:\.\d)?|libnvinfer\.so\.\d+"
    r"|(?i:"
    r"(?:cublas|cublasLt|cudart|cufft|cufftw|curand|nvrtc|cudnn(?:_[a-z_]+)?)64_\d+(?:_\d)?\.dll"
    r"|nvjitlink_\d+_\d\.dll|nvinfer(?:_\d+)?\.dll|zlibwapi\.dll)"
    rf"|{_RUNTIME.pattern}"
)
"""One pattern for all: a system has thousands of libraries."""


def is_library(name: str) -> bool:
    """Return whether a program would load this name: `libcudnn.so.9`, `cublas64_12.dll`.

    cudart and nvrtc had two numbers up to CUDA 11 (`libcudart.so.11.0`). The libraries that cuDNN 8
    (zlibwapi) and onnxruntime (the MSVC runtime) need on Windows count too, and TensorRT's own.
    """
    return bool(_LIBRARY.fullmatch(name))


def is_runtime(name: str) -> bool:
    """Return whether this is one of the Visual C++ runtime's main libraries."""
    return bool(_RUNTIME.fullmatch(name))


_FIXED_FILE_INFO = b"\xbd\x04\xef\xfe\x00\x00\x01\x00"
"""How VS_FIXEDFILEINFO begins: its signature, and the version of the structure.

Source: https://learn.microsoft.com/windows/win32/api/verrsrc/ns-verrsrc-vs_fixedfileinfo
"""


def parse_dll_version(content: bytes | mmap.mmap) -> str | None:
    """Return the file version (`14.42.34433.0`) of a DLL, or None."""
    at = content.find(_FIXED_FILE_INFO)
    if at < 0 or len(content) < at + 16:
        return None
    high, low = struct.unpack_from("<II", content, at + 8)
    return f"{high >> 16}.{high & 0xFFFF}.{low >> 16}.{low & 0xFFFF}"


def parse_file_version(name: str, real: str) -> str | None:
    """Return the version in the real file's name where it says more than `name`, else None.

    `libcudnn.so.9` that is `libcudnn.so.9.1.0` has 9.1.0; `cudnn64_9.dll` has none.
    """
    version = re.search(r"\.so\.([0-9]+(?:\.[0-9]+)+)$", real)
    return version[1] if version and not real.endswith("/" + name) else None
