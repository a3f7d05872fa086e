"""The committed data holds what it must, and each check has been seen to fail."""

from __future__ import annotations

import copy
import json
import platform
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evidence_samples as samples
import pytest
from packaging.version import Version
from reread import disagreements
from same_rows import said

from matrix.evidence import checks
from ortgpu_fix.binaries import fatbin, gpu_targets
from ortgpu_fix.evidence.ranges import open_zip, read_member
from ortgpu_fix.evidence.wheels import PLATFORMS
from ortgpu_fix.guests.update.index_source import IndexSource
from ortgpu_fix.guests.update.onnxruntime import tensorrt_library
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
    from collections.abc import Callable, Iterator

PYPI = "https://pypi.org/simple"
DATA = Path(__file__).parents[2] / "data"
NAMES = ("onnxruntime", "nvidia", "toolkits", "numpy", "msvc", "symbols", "torch", "plugins")


@pytest.fixture(scope="module")
def data() -> checks.Data:
    return {name: tomllib.loads((DATA / f"{name}.toml").read_text("utf-8")) for name in NAMES}


def test_nothing_is_wrong_with_the_data(data: checks.Data) -> None:
    """All checks pass."""
    assert checks.problems(data) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_files_fit_their_schemas(name: str, data: checks.Data) -> None:
    """Each file has the shape that stands beside it."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((DATA / f"{name}.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)

    jsonschema.Draft202012Validator(schema).validate(data[name])


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


def _build(data: checks.Data, version: str, platform: str) -> Any:
    return next(
        row
        for row in data["onnxruntime"]["build"]
        if (row["version"], row["platform"]) == (version, platform)
    )


def _distribution(data: checks.Data, name: str) -> Any:
    return next(row for row in data["nvidia"]["distribution"] if row["name"] == name)


def _swap_builds(data: checks.Data) -> None:
    builds = data["onnxruntime"]["build"]
    builds[0], builds[9] = builds[9], builds[0]


def _repeat_a_hash(data: checks.Data) -> None:
    first, second = data["numpy"]["wheel"][:2]
    second["sha256"] = first["sha256"]


def _forget_files(data: checks.Data) -> None:
    _distribution(data, "nvidia-cublas")["files"].pop()


def _forget_code(data: checks.Data) -> None:
    _distribution(data, "nvidia-cudnn-cu12")["code"].pop()


def _rename_a_library(data: checks.Data) -> None:
    _build(data, "1.26.0", "linux_x86_64")["needs"][0]["library"] = "libcublas.so.99"


def _too_early(data: checks.Data) -> None:
    _build(data, "1.26.0", "windows_x86_64")["needs"][0]["since"] = "1.0"


def _remove_a_symbol(data: checks.Data) -> None:
    used = next(row for row in data["symbols"]["use"] if row["library"] == "libcublas.so.12")
    offer = next(row for row in data["symbols"]["offer"] if row["library"] == "libcublas.so.12")
    last = {"first": offer["last"], "last": offer["last"]}
    offer.setdefault("partial", {})[used["symbols"][0]] = last


def _forget_an_offer(data: checks.Data) -> None:
    data["symbols"]["offer"] = data["symbols"]["offer"][1:]


def _invent_a_component(data: checks.Data) -> None:
    data["toolkits"]["toolkit"][-1]["components"]["nvidia-cufft"] = "99.0"


def _new_gpu_in_an_old_build(data: checks.Data) -> None:
    _build(data, "1.18.1", "linux_x86_64")["sass"].append("12.0")


def _old_gpu_in_a_new_build(data: checks.Data) -> None:
    _build(data, "1.31.1", "linux_x86_64")["sass"].append("6.0")


def _forget_the_toolset(data: checks.Data) -> None:
    del _build(data, "1.26.0", "windows_x86_64")["toolset"]


def _new_ptx_in_an_old_build(data: checks.Data) -> None:
    _build(data, "1.16.3", "windows_x86_64")["ptx"].append("10.0")


def _unsort_a_distribution(data: checks.Data) -> None:
    _distribution(data, "nvidia-cufft")["releases"].reverse()


def _lose_a_hash(data: checks.Data) -> None:
    data["torch"]["torch"][0]["wheels"][0]["sha256"] = ""


def _forget_machine_code(data: checks.Data) -> None:
    _distribution(data, "nvidia-cublas")["code"][0]["sass"] = []


def _lose_a_symbol_later(data: checks.Data) -> None:
    offer = next(row for row in data["symbols"]["offer"] if row["library"] == "libcublas.so.12")
    symbol = next(row for row in data["symbols"]["use"] if row["library"] == "libcublas.so.12")
    early = {"first": offer["first"], "last": "12.8.4.1"}
    offer.setdefault("partial", {})[symbol["symbols"][0]] = early


def _variant(data: checks.Data) -> Any:
    """Return what documents say of the build of torch 2.7.1 that PyPI carries for Linux."""
    return next(
        row
        for row in data["torch"]["variant"]
        if "2.7.1" in row["versions"]
        and (row["local"], row["platform"]) == ("cu126", "linux_x86_64")
    )


def _forget_a_document(data: checks.Data) -> None:
    data["torch"]["variant"].remove(_variant(data))


def _contradict_the_gpus_of_torch(data: checks.Data) -> None:
    _variant(data)["sass"] = ["12.0"]


def _contradict_the_cudnn_of_torch(data: checks.Data) -> None:
    _variant(data)["cudnn"] = "8.9.2.26"


PLANTED = {
    checks.order: (_swap_builds, _unsort_a_distribution),
    checks.hashes: (_repeat_a_hash, _lose_a_hash),
    checks.files: (_forget_files,),
    checks.code: (_forget_code, _forget_machine_code),
    checks.libraries: (_rename_a_library, _too_early),
    checks.symbols: (_remove_a_symbol, _forget_an_offer, _lose_a_symbol_later),
    checks.toolkits: (_invent_a_component,),
    checks.compilers: (
        _new_gpu_in_an_old_build,
        _old_gpu_in_a_new_build,
        _new_ptx_in_an_old_build,
    ),
    checks.toolsets: (_forget_the_toolset,),
    checks.documents: (
        _forget_a_document,
        _contradict_the_gpus_of_torch,
        _contradict_the_cudnn_of_torch,
    ),
}
"""Each check, and errors that it must find by itself."""


def test_an_error_is_planted_for_every_check() -> None:
    """No check is there that nobody has seen fail."""
    assert set(PLANTED) == set(checks.CHECKS)


@pytest.mark.parametrize(
    ("check", "plant"),
    [(check, plant) for check, plants in PLANTED.items() for plant in plants],
    ids=lambda function: function.__name__.strip("_"),
)
def test_a_planted_error_is_found(
    check: Callable[[checks.Data], Iterator[str]],
    plant: Callable[[checks.Data], None],
    data: checks.Data,
) -> None:
    """Each check fails where something is wrong."""
    damaged = copy.deepcopy(data)
    plant(damaged)

    assert list(check(damaged)) != []


def _supports(distribution: Any, version: str, platform: str, gpu: tuple[int, int]) -> bool:
    (block,) = (
        block
        for block in distribution["code"]
        if block["platform"] == platform
        and Version(block["first"]) <= Version(version) <= Version(block["last"])
    )
    return gpu_targets.covers(block["sass"], gpu)


EDGES = [
    ("nvidia-cudnn-cu11", "8.7.0.84", (3, 7), True),
    ("nvidia-cudnn-cu11", "8.8.0.121", (3, 7), False),
    ("nvidia-cudnn-cu12", "9.10.2.21", (7, 0), True),
    ("nvidia-cudnn-cu12", "9.10.2.21", (5, 2), True),
    ("nvidia-cudnn-cu12", "9.11.0.98", (7, 0), False),
    ("nvidia-cudnn-cu12", "9.11.0.98", (6, 1), False),
    ("nvidia-cudnn-cu12", "9.6.0.74", (12, 0), False),
    ("nvidia-cudnn-cu12", "9.7.0.66", (12, 0), True),
    ("nvidia-cudnn-cu12", "9.7.0.66", (10, 0), True),
    ("nvidia-cublas-cu12", "12.6.4.1", (12, 0), False),
    ("nvidia-cublas-cu12", "12.8.3.14", (12, 0), True),
    ("nvidia-cublas", "13.0.0.19", (7, 0), False),
    ("nvidia-cublas", "13.0.0.19", (7, 5), True),
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
def test_a_random_sample_reads_the_same_again(data: checks.Data, tmp_path: Path) -> None:
    """One provider and three components, read anew from the index, agree with the data."""
    seed = random.randrange(10**6)  # noqa: S311 - a sample, not a secret
    reader = Reader(samples.source(PYPI, tmp_path), ReadingCache(tmp_path), "", lambda _: None)

    assert list(disagreements(data, reader, random.Random(seed))) == [], seed  # noqa: S311


@pytest.mark.online
def test_every_tensorrt_provider_names_the_tensorrt_of_the_data(
    data: checks.Data, tmp_path: Path
) -> None:
    """Read anew from a wheel of each build, 0.5 MB of it: ELF, and imports of DLLs."""
    reader = Reader(samples.source(PYPI, tmp_path), ReadingCache(tmp_path), "", lambda _: None)
    wheels = {wheel.file: wheel for wheel in reader.wheels("onnxruntime-gpu")}
    builds = data["onnxruntime"]["build"]

    found = [tensorrt_library(reader, wheels[row["wheels"][0]["file"]]) for row in builds]

    assert found == [row.get("tensorrt") for row in builds]


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


def test_every_platform_is_covered(data: checks.Data) -> None:
    """The newest release of onnxruntime-gpu is there for all three."""
    newest = max(Version(row["version"]) for row in data["onnxruntime"]["build"])

    there = {
        row["platform"] for row in data["onnxruntime"]["build"] if Version(row["version"]) == newest
    }
    assert there == set(PLATFORMS) - {"windows_aarch64"}
