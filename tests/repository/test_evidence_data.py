"""The committed data holds what it must, and each check has been seen to fail."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evidence_samples as samples
import pytest
from packaging.version import Version
from same_rows import said

from matrix.evidence import checks
from ortgpu_fix.binaries import fatbin, gpu_targets
from ortgpu_fix.evidence.ranges import open_zip, read_member
from ortgpu_fix.guests.update.index_source import IndexSource
from ortgpu_fix.guests.update.reader import Reader, ReadingCache
from ortgpu_fix.guests.update.update import MatrixReader
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.matrix.additions import additions_json, parse_additions, with_additions
from support.cut_matrix import GROWING, cut_tables

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

PYPI = "https://pypi.org/simple"
DATA = Path(__file__).parents[2] / "data"
NAMES = ("onnxruntime", "nvidia", "toolkits", "numpy", "msvc", "symbols", "torch", "plugins")


@pytest.fixture(scope="module")
def data() -> checks.Data:
    return {name: tomllib.loads((DATA / f"{name}.toml").read_text("utf-8")) for name in NAMES}


def test_nothing_is_wrong_with_the_data(data: checks.Data) -> None:
    """All checks pass."""
    assert checks.problems(data) == []


def test_the_tensorrt_of_each_build(data: checks.Data) -> None:
    """The wheels for ARM have no TensorRT provider; TensorRT 8 has no number in its DLL's name."""
    for row in data["onnxruntime"]["build"]:
        older, windows = Version(row["version"]) < Version("1.18"), "windows" in row["platform"]
        names = (
            ("nvinfer.dll", "nvinfer_10.dll")
            if windows
            else ("libnvinfer.so.8", "libnvinfer.so.10")
        )
        expected = names[not older] if "aarch64" not in row["platform"] else None
        assert row.get("tensorrt") == expected, row["version"]


def _distribution(data: checks.Data, name: str) -> Any:
    return next(row for row in data["nvidia"]["distribution"] if row["name"] == name)


def _supports(distribution: Any, version: str, platform: str, gpu: tuple[int, int]) -> bool:
    (block,) = (
        block
        for block in distribution["code"]
        if block["platform"] == platform
        and Version(block["first"]) <= Version(version) <= Version(block["last"])
    )
    return gpu_targets.covers(block["sass"], gpu)


EDGES = [
    ("nvidia-cudnn-cu12", "9.10.2.21", (7, 0), True),
    ("nvidia-cudnn-cu12", "9.11.0.98", (7, 0), False),
    ("nvidia-cudnn-cu12", "9.6.0.74", (12, 0), False),
    ("nvidia-cudnn-cu12", "9.7.0.66", (12, 0), True),
    ("nvidia-cublas-cu12", "12.6.4.1", (12, 0), False),
    ("nvidia-cublas-cu12", "12.8.3.14", (12, 0), True),
]


@pytest.mark.parametrize(("name", "version", "gpu", "expected"), EDGES, ids=str)
def test_known_edges_of_gpu_support(
    name: str, version: str, gpu: tuple[int, int], *, expected: bool, data: checks.Data
) -> None:
    """What NVIDIA's release notes say of Kepler, Maxwell, Volta and Blackwell."""
    assert _supports(_distribution(data, name), version, "linux_x86_64", gpu) is expected


def test_cudnn_links_the_driver_from_9_27_on(data: checks.Data) -> None:
    """So a machine without a driver cannot load all of it."""
    for name in ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"):
        for block in _distribution(data, name)["files"]:
            newer = {Version(version) >= Version("9.27") for version in block["versions"]}
            links = "libcuda.so.1" in block["links"]
            assert newer == {links} or block["platform"].startswith("windows")


@pytest.mark.online
def test_every_wheel_is_on_the_index(data: checks.Data, tmp_path: Path) -> None:
    """Each wheel that the data names is there, with the hash that the data gives."""
    reader = Reader(samples.source(PYPI, tmp_path), ReadingCache(tmp_path), "", lambda _: None)

    assert list(checks.missing_on(reader, data)) == []


SMALL = {
    ("cuda-toolkit", "13.5.0"),
    ("nvidia-cuda-nvrtc-cu12", "12.8.93"),
    ("nvidia-cuda-runtime", "13.5.37"),
    ("nvidia-curand", "10.4.4.72"),
    ("nvidia-nvjitlink-cu12", "12.9.86"),
    ("torchvision", "0.29.2"),
}
"""Releases whose wheels are small: at the end of their line, and between others."""


@pytest.mark.online
def test_what_an_older_matrix_lacks_comes_back_from_the_index(
    tmp_path: Path, data: checks.Data
) -> None:
    """Of a few small ones. The index may have newer ones by now, which are not compared."""
    cut = cut_tables(data, lambda name, version: (name, version) in SMALL)
    index = Index(IndexConfig(index_url="https://pypi.org/simple", origin="flag"))
    source = IndexSource(index, tmp_path)
    place = "linux_x86_64"

    rows = MatrixReader(
        source, ReadingCache(tmp_path / "cache"), cut, (place,), index_url="", progress=print
    ).read()

    added = parse_additions(json.dumps(additions_json("2026-11-22", "x", rows)).encode(), "x")
    grown = {name: with_additions(name, cut[name], [added]) for name in GROWING}
    assert {tuple(text.split()) for text in added.releases} >= SMALL
    shipped, found = said(data, place), said(grown, place)
    assert {release: found[release] for release in shipped} == shipped
    sizes = {row["file"]: row["size"] for row in _files(data)}
    received = source.received.items()
    assert not [name for name, count in received if name in sizes and count > sizes[name]]


def _files(data: checks.Data) -> Iterator[dict[str, Any]]:
    for distribution in data["nvidia"]["distribution"]:
        yield from distribution["releases"]


@pytest.mark.online
@pytest.mark.skipif(sys.platform != "linux", reason="runs NVIDIA's tool for Linux")
def test_gpu_code_reads_as_cuobjdump_reads_it(tmp_path: Path) -> None:
    """NVIDIA's own tool counts the same pieces; it prints family targets (12.0f) as plain ones."""
    web = samples.source(PYPI, tmp_path)
    reader = Reader(web, ReadingCache(tmp_path / "cache"), "", lambda _: None)
    machine = f"linux_{platform.machine()}"
    tool, library = tmp_path / "cuobjdump", tmp_path / "libcudnn_cnn.so.9"
    for distribution, version, suffix, target in [
        ("nvidia-cuda-cuobjdump", "13", "bin/cuobjdump", tool),
        ("nvidia-cudnn-cu12", "9.28.0.42", library.name, library),
    ]:
        wheel = next(
            wheel
            for wheel in reader.wheels(distribution)
            if wheel.platform == machine and str(wheel.version).startswith(version)
        )
        archive, _ = open_zip(web.get_range, wheel.url)
        (member,) = (name for name in archive.namelist() if name.endswith(suffix))
        target.write_bytes(read_member(archive, member))
    tool.chmod(0o755)

    code = list(fatbin.entries(library.read_bytes()))

    for flag, kind in (("-lelf", fatbin.EntryKind.CUBIN), ("-lptx", fatbin.EntryKind.PTX)):
        counts = Counter(entry.target for entry in code if entry.kind == kind)
        listed = subprocess.run(
            [tool, flag, library], capture_output=True, text=True, check=True
        ).stdout
        theirs = Counter(re.findall(r"sm_(\d+[af]?)[.]", listed))
        plain = str.maketrans("", "", ".f" if flag == "-lelf" else ".")
        ours: Counter[str] = Counter()
        for target_name, count in counts.items():
            ours[target_name.translate(plain)] += count
        assert ours == theirs
