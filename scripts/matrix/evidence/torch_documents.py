"""What documents say of torch's builds on its own index, which no wheel on PyPI can tell.

A build is a release of torch for one CUDA (`2.7.1+cu128`) on one platform. `checks.py` holds these
rows against the wheels on PyPI wherever the same build is there. What is not known is left out.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from packaging.version import Version

from ortgpu_fix.utils.toml_writer import table

_PYTORCH = "https://github.com/pytorch/pytorch/blob"
RELEASES = f"{_PYTORCH}/main/RELEASE.md"
LINUX = f"{_PYTORCH}/00c7a380b8369d08e02dd400aa76dc6c0738b589/.ci/manywheel/build_cuda.sh"
BUILDER = "https://github.com/pytorch/builder/blob/main/manywheel/build_cuda.sh"
MATRIX = ".github/scripts/generate_binary_build_matrix.py"
MATRIX_2_7 = f"{_PYTORCH}/00018c9487224886f1c839167a56f4471ab1ebc4/{MATRIX}"
AARCH64 = f"{_PYTORCH}/main/.ci/aarch64_linux/aarch64_ci_build.sh"
_WINDOWS = ".ci/pytorch/windows"
WINDOWS_118 = f"{_PYTORCH}/74fabf1dca96c922660bad92676fc3169f15c14c/{_WINDOWS}/cuda118.bat"
WINDOWS_121 = f"{_PYTORCH}/74fabf1dca96c922660bad92676fc3169f15c14c/{_WINDOWS}/cuda121.bat"
WINDOWS_126 = f"{_PYTORCH}/18f79c00d6731a8fddb091ba93a3b4dfe1f1f944/{_WINDOWS}/cuda126.bat"
WINDOWS_128 = f"{_PYTORCH}/07619f946d86f336adde89126077177c400e242c/{_WINDOWS}/cuda128.bat"
WINDOWS_129 = f"{_PYTORCH}/1a1a3262afb8940a9784b265fbaec301fd9799ab/{_WINDOWS}/cuda129.bat"
WINDOWS_130 = f"{_PYTORCH}/525a5e5db90540a5ca0dbf87e941cedbc29e2094/{_WINDOWS}/cuda130.bat"

X86 = "linux_x86_64"
ARM = "linux_aarch64"
WINDOWS = "windows_x86_64"


class Variant(NamedTuple):
    """Builds of one CUDA that are alike."""

    versions: str
    """Releases of torch, by spaces."""
    local: str
    """`cu128`."""
    toolkit: str
    """The release of the CUDA toolkit that built it: `12.8.1`."""
    cudnn: str | None
    sass: str
    """Compute capabilities with machine code."""
    ptx: str = ""
    libraries: Literal["required", "inside"] | None = None
    """Whether it requires NVIDIA's wheels, of that toolkit, or carries the libraries itself, where
    that is not as usual on its platform."""
    glibc: str | None = None
    """Where it is not that of PyPI's wheels of the release."""


_OLDER_PARTS = {"nvidia-cuda-nvrtc-cu12": "12.6.77"}
"""Builds with CUDA 12.6.3 require the NVRTC of 12.6.2 (MATRIX_2_7)."""
_KEPLER = "3.7 5.0 6.0 7.0 7.5 8.0 8.6"
_HOPPER = "5.0 6.0 7.0 7.5 8.0 8.6 9.0"
_OLD = "3.7 5.0 6.0 7.0 7.5 8.0 8.6 9.0"
_VOLTA = "7.0 7.5 8.0 8.6 9.0 10.0 12.0"
_TURING = "7.5 8.0 8.6 9.0 10.0 12.0"
_ARM = "8.0 9.0 10.0 11.0 12.0"
_W_OLD = "3.7 5.0 6.0 6.1 7.0 7.5 8.0 8.6 9.0"
_W_HOPPER = "5.0 6.0 6.1 7.0 7.5 8.0 8.6 9.0"


_1_12, _1_13, _2_0 = "1.12.0 1.12.1", "1.13.0 1.13.1", "2.0.0 2.0.1"
_2_1, _2_2, _2_3 = "2.1.0 2.1.1 2.1.2", "2.2.0 2.2.1 2.2.2", "2.3.0 2.3.1"
_2_4, _2_5, _2_7, _2_9 = "2.4.0 2.4.1", "2.5.0 2.5.1", "2.7.0 2.7.1", "2.9.0 2.9.1"
_2_12, _2_14 = "2.12.0 2.12.1", "2.14.0 2.14.1"

LINUX_VARIANTS = (
    # Up to 2.1 the index's wheels carry everything; the ones that PyPI got do not.
    Variant(_1_12, "cu113", "11.3.1", "8.3.2.44", _KEPLER, libraries="inside"),
    Variant(f"{_1_12} {_1_13}", "cu116", "11.6.2", "8.3.2.44", _KEPLER, libraries="inside"),
    Variant(f"{_1_13} {_2_0}", "cu117", "11.7.1", "8.5.0.96", _KEPLER, libraries="inside"),
    Variant(f"{_2_0} {_2_1}", "cu118", "11.8.0", "8.7.0.84", _OLD, libraries="inside"),
    Variant(f"{_2_2} {_2_3}", "cu118", "11.8.0", "8.7.0.84", _OLD),
    Variant(f"{_2_4} {_2_5} 2.6.0 {_2_7}", "cu118", "11.8.0", "9.1.0.70", _OLD),
    Variant(_2_1, "cu121", "12.1.1", "8.9.2.26", _HOPPER, libraries="inside"),
    Variant(f"{_2_2} {_2_3}", "cu121", "12.1.1", "8.9.2.26", _HOPPER),
    Variant(f"{_2_4} {_2_5}", "cu121", "12.1.1", "9.1.0.70", _HOPPER),
    Variant(_2_4, "cu124", "12.4.0", "9.1.0.70", _HOPPER),
    Variant(f"{_2_5} 2.6.0", "cu124", "12.4.1", "9.1.0.70", _HOPPER),
    Variant("2.6.0", "cu126", "12.6.3", "9.5.1.17", _HOPPER, glibc="2.28"),
    Variant(_2_7, "cu126", "12.6.3", "9.5.1.17", _HOPPER),
    Variant(
        f"2.8.0 {_2_9} 2.10.0 2.11.0 {_2_12} 2.13.0 {_2_14}",
        "cu126",
        "12.6.3",
        "9.10.2.21",
        _HOPPER,
    ),
    Variant(_2_7, "cu128", "12.8.0", "9.7.1.26", _TURING, ptx="12.0"),
    Variant(f"2.8.0 {_2_9} 2.10.0", "cu128", "12.8.1", "9.10.2.21", _VOLTA),
    Variant("2.11.0", "cu128", "12.8.1", "9.19.0.56", _TURING),
    Variant(f"2.8.0 {_2_9} 2.10.0", "cu129", "12.9.1", "9.10.2.21", _VOLTA, ptx="12.0"),
    Variant("2.11.0", "cu129", "12.9.1", "9.17.1.4", _TURING),
    Variant("2.12.1 2.13.0", "cu129", "12.9.1", "9.20.0.48", _TURING),
    Variant(_2_9, "cu130", "13.0.0", "9.13.0.50", _TURING),
    Variant("2.10.0", "cu130", "13.0.2", "9.15.1.9", _TURING),
    Variant("2.11.0", "cu130", "13.0.2", "9.19.0.56", _TURING),
    Variant(_2_12, "cu130", "13.0.2", "9.20.0.48", _TURING),
    Variant("2.13.0", "cu130", "13.0.3.0", "9.20.0.48", _TURING),
    Variant(_2_14, "cu130", "13.0.3.0", "9.24.0.43", _TURING),
    Variant(f"{_2_12} 2.13.0", "cu132", "13.2.1", "9.20.0.48", _TURING),
    Variant(_2_14, "cu132", "13.2.1", "9.24.0.43", _TURING),
    Variant("2.15.0", "cu130", "13.0.3.0", None, _TURING),
    Variant("2.15.0", "cu132", "13.2.2", "9.26.0.51", _TURING),
)
WINDOWS_VARIANTS = (
    Variant(_1_12, "cu113", "11.3.1", "8.3.2.44", _W_HOPPER.removesuffix(" 9.0")),
    Variant(f"{_1_12} {_1_13}", "cu116", "11.6.2", "8.3.2.44", _W_OLD.removesuffix(" 9.0")),
    Variant(f"{_1_13} {_2_0}", "cu117", "11.7.1", "8.5.0.96", _W_OLD.removesuffix(" 9.0")),
    Variant(f"{_2_0} {_2_1} {_2_2} {_2_3}", "cu118", "11.8.0", "8.7.0.84", _W_OLD, ptx="3.7"),
    Variant(f"{_2_4} {_2_5} 2.6.0 {_2_7}", "cu118", "11.8.0", "9.1.0.70", _W_OLD, ptx="3.7"),
    Variant(f"{_2_1} {_2_2} {_2_3}", "cu121", "12.1.1", "8.9.2.26", _W_HOPPER),
    Variant(f"{_2_4} {_2_5}", "cu121", "12.1.1", "9.1.0.70", _W_HOPPER),
    Variant(_2_4, "cu124", "12.4.0", "9.1.0.70", _W_HOPPER),
    Variant(f"{_2_5} 2.6.0", "cu124", "12.4.1", "9.1.0.70", _W_HOPPER),
    Variant(f"2.6.0 {_2_7}", "cu126", "12.6.3", "9.5.1.17", _W_HOPPER),
    Variant(
        f"2.8.0 {_2_9} 2.10.0 2.11.0 {_2_12} 2.13.0 {_2_14}",
        "cu126",
        "12.6.3",
        "9.10.2.21",
        _W_HOPPER,
    ),
    Variant(_2_7, "cu128", "12.8.0", "9.7.1.26", _TURING),
    Variant(f"2.8.0 {_2_9} 2.10.0", "cu128", "12.8.1", "9.10.2.21", _TURING),
    Variant("2.11.0", "cu128", "12.8.1", "9.19.0.56", _TURING),
    Variant("2.8.0 2.9.0", "cu129", "12.9.1", "9.10.2.21", _TURING),
    Variant(_2_9, "cu130", "13.0.0", "9.13.0.50", _TURING),
    Variant("2.10.0", "cu130", "13.0.2", "9.15.1.9", _TURING),
    Variant("2.11.0", "cu130", "13.0.2", "9.19.0.56", _TURING),
    Variant(_2_12, "cu130", "13.0.2", "9.20.0.48", _TURING),
    Variant("2.13.0", "cu130", "13.0.3.0", "9.20.0.48", _TURING),
    Variant(_2_14, "cu130", "13.0.3.0", "9.24.0.43", _TURING),
    Variant(f"{_2_12} 2.13.0", "cu132", "13.2.1", "9.20.0.48", _TURING),
    Variant(_2_14, "cu132", "13.2.1", "9.24.0.43", _TURING),
    Variant("2.15.0", "cu130", "13.0.3.0", None, _TURING),
    Variant("2.15.0", "cu132", "13.2.2", "9.26.0.51", _TURING),
)
ARM_VARIANTS = (
    # What the wheels require is not known before 2.11, whose wheels are on PyPI.
    Variant("2.6.0", "cu126", "12.6.3", "9.5.1.17", "9.0"),
    Variant(_2_7, "cu128", "12.8.0", "9.7.1.26", "9.0 10.0 12.0"),
    Variant("2.8.0", "cu129", "12.9.1", "9.10.2.21", "8.0 9.0 10.0 12.0"),
    Variant(_2_9, "cu130", "13.0.0", "9.13.0.50", _ARM),
    Variant("2.10.0", "cu130", "13.0.2", "9.15.1.9", _ARM),
    Variant("2.11.0", "cu130", "13.0.2", "9.19.0.56", _ARM, libraries="required"),
    Variant(_2_12, "cu130", "13.0.2", "9.20.0.48", _ARM, libraries="required"),
    Variant("2.13.0", "cu130", "13.0.3.0", "9.20.0.48", _ARM, libraries="required"),
    Variant(_2_14, "cu130", "13.0.3.0", "9.24.0.43", _ARM, libraries="required"),
    Variant(f"{_2_12} 2.13.0", "cu132", "13.2.1", "9.20.0.48", _ARM, libraries="required"),
    Variant(_2_14, "cu132", "13.2.1", "9.24.0.43", _ARM, libraries="required"),
    Variant("2.15.0", "cu132", "13.2.2", "9.26.0.51", _ARM, libraries="required"),
)


_WINDOWS_SOURCES = {
    **dict.fromkeys(("cu113", "cu116", "cu117", "cu118"), WINDOWS_118),
    **dict.fromkeys(("cu121", "cu124"), WINDOWS_121),
    **dict.fromkeys(("cu130", "cu132"), WINDOWS_130),
    "cu126": WINDOWS_126,
    "cu128": WINDOWS_128,
    "cu129": WINDOWS_129,
}


def variants() -> list[str]:
    """Return the builds on PyTorch's own index, from documents."""
    rows = [
        *((ARM, row, row.libraries, AARCH64) for row in ARM_VARIANTS),
        *((X86, row, *_on_linux(row)) for row in LINUX_VARIANTS),
        *((WINDOWS, row, "inside", _WINDOWS_SOURCES[row.local]) for row in WINDOWS_VARIANTS),
    ]
    rows.sort(key=lambda one: (one[0], one[1].local, Version(one[1].versions.split()[0])))
    return [
        table(
            "variant",
            {
                "versions": row.versions.split(),
                "local": row.local,
                "platform": platform,
                "toolkit": row.toolkit,
                "cudnn": row.cudnn,
                "parts": _OLDER_PARTS if platform == X86 and row.toolkit == "12.6.3" else None,
                "sass": row.sass.split(),
                "ptx": row.ptx.split(),
                "glibc": row.glibc,
                "libraries": libraries,
                "sources": [RELEASES, source],
            },
        )
        for platform, row, libraries, source in rows
    ]


def _on_linux(row: Variant) -> tuple[str | None, str]:
    """Return whether a build on x86-64 requires or carries the libraries, and what says so."""
    source = LINUX if row.toolkit >= "12.6" else BUILDER
    return row.libraries or ("required" if row.cudnn else None), source
