"""A package index of PyTorch's shape on this machine, and small stand-ins for torch's wheels.

The shape is that of https://download.pytorch.org/whl/cu128/torch/ as its generator writes it
(https://github.com/pytorch/test-infra, s3_management/manage_v2.py, read 2026-11-21): one page a
project below the name of the variant, links from the root of the host or to another host, names
with `%2B` for the `+` of the local version, the hash as a fragment (not on nightly pages), and a
mirror of NVIDIA's packages beside torch.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from support.local_index import LocalIndex, make_wheel, metadata_of

LINUX = "cp{0}-cp{0}-manylinux_2_28_{1}"
CUDNN, CUBLAS, CURAND = "9.10.2.21", "12.8.4.1", "10.3.9.90"
_MARKER = '; platform_system == "Linux"'
REQUIRES = {
    # PyPI's torch 2.10.0, trimmed to one of each kind of line.
    "torch 2.10.0": (
        "filelock",
        'setuptools; python_version >= "3.99"',
        "sympy>=1.13.3",
        f"nvidia-cudnn-cu12=={CUDNN}{_MARKER}",
        f"nvidia-cublas-cu12=={CUBLAS}{_MARKER}",
        f"nvidia-nccl-cu12==2.27.5{_MARKER}",
        f"triton==3.6.0{_MARKER}",
        'optree>=0.13.0; extra == "optree"',
    ),
    # PyPI's torch 2.11.0, likewise.
    "torch 2.11.0": (
        "filelock",
        f"cuda-toolkit[cublas,nvtx]==13.0.2{_MARKER}",
        f"nvidia-cudnn-cu13==9.19.0.56{_MARKER}",
        f"triton==3.6.0{_MARKER}",
    ),
    "torchvision 0.25.0": ("numpy", "torch (=={torch})", "pillow (!=8.3.*,>=5.3.0)"),
    "torchaudio 2.10.0": ("torch=={torch}",),
    # PyPI's cuda-toolkit 13.0.2, likewise.
    "cuda-toolkit 13.0.2": (
        "nvidia-cublas==13.1.0.3.*; sys_platform == 'linux' and extra == 'cublas'",
        "nvidia-nvtx==13.0.85.*; sys_platform == 'linux' and extra == 'nvtx'",
    ),
}
"""What real wheels require, read 2026-11-21."""


def make_torch(
    folder: Path,
    name: str,
    version: str,
    *,
    python: str = f"{sys.version_info[0]}{sys.version_info[1]}",
    machine: str = "x86_64",
    torch: str = "",
    requires: tuple[str, ...] | None = None,
    tag: str | None = None,
) -> Path:
    """Write a stand-in for a wheel of PyTorch's index into `folder` and return its path.

    `requires` are those of the real one where it is None, with `torch` for the version that the
    companions pin; without a `tag` it is for Linux.
    """
    if requires is None:
        requires = REQUIRES.get(f"{name} {version.partition('+')[0]}", ())
    cuda = version.partition("+cu")[2]
    about = f"__version__ = '{version}'\ncuda = {f'{cuda[:-1]}.{cuda[-1]}' if cuda else None!r}\n"
    return make_wheel(
        folder,
        name,
        version,
        files={
            f"{name}/__init__.py": "from .version import __version__\n",
            f"{name}/version.py": about,
            f"{name}/lib/lib{name}.so": b"\x7fELF" * 3000,
        },
        requires=[line.format(torch=torch) for line in requires],
        tag=tag or LINUX.format(python, machine),
    )


class TorchIndex(LocalIndex):
    """The server of one variant, `cu128`; a context manager."""

    def __init__(self, folder: Path, variant: str = "cu128") -> None:
        super().__init__(folder)
        self.variant = variant
        self.base = self.url.removesuffix("simple") + "whl"
        """What `--torch-index-url` would be."""
        self.url = f"{self.base}/{variant}"
        self.host = ""
        """Where the files are: nothing for this host, else `http://other:1`."""

    def html(self, path: str, name: str, rows: list[tuple[str, str]]) -> str:
        """Return the page as PyTorch's generator writes it."""
        del path
        lines = ["<!DOCTYPE html>", "<html>", "  <body>", f"    <h1>Links for {name}</h1>"]
        for file, digest in rows:
            fragment = f"#sha256={digest}" if self.behaviour.hashes else ""
            metadata = hashlib.sha256(metadata_of(self.folder / file)).hexdigest()
            extra = f' data-dist-info-metadata="sha256={metadata}"'
            extra += self.behaviour.attributes.get(file, "")
            href = f"{self.host}/whl/{self.variant}/{file.replace('+', '%2B')}{fragment}"
            lines.append(f'    <a href="{href}"{extra}>{file}</a><br/>')
        return "\n".join([*lines, "  </body>", "</html>", "<!--TIMESTAMP 1763731200-->"])


def make_index(folder: Path, variant: str = "cu128") -> Path:
    """Write what an index of this variant has into `folder` and return it."""
    for release in ("2.9.1", "2.10.0"):
        make_torch(folder, "torch", f"{release}+{variant}")
        make_torch(folder, "torch", f"{release}+{variant}", machine="aarch64")
    make_torch(folder, "torch", f"2.10.0+{variant}", python="39")
    make_torch(folder, "torchvision", f"0.25.0+{variant}", torch=f"2.10.0+{variant}")
    make_torch(folder, "torchaudio", f"2.10.0+{variant}", torch=f"2.10.0+{variant}")
    for name, version in (("cudnn", CUDNN), ("cublas", CUBLAS), ("curand", CURAND)):
        mirrored = {f"nvidia/{name}/lib/lib{name}.so.x": "from the mirror"}
        make_wheel(folder, f"nvidia-{name}-cu12", version, files=mirrored)
    return folder
