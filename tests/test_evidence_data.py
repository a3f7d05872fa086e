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

import pytest
from packaging.version import Version

from evidence import checks, fatbin, names, nvidia, support
from evidence.cache import Cache
from evidence.index import PLATFORMS
from evidence.onnxruntime import PROVIDER
from evidence.reader import Reader
from evidence.remote import Web, open_zip, read_member

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parents[1] / "data"
NAMES = ("onnxruntime", "nvidia", "toolkits", "numpy", "msvc", "symbols", "torch")


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


@pytest.mark.parametrize(
    "plant",
    [
        _swap_builds,
        _repeat_a_hash,
        _forget_files,
        _forget_code,
        _rename_a_library,
        _too_early,
        _remove_a_symbol,
        _forget_an_offer,
        _invent_a_component,
        _new_gpu_in_an_old_build,
        _old_gpu_in_a_new_build,
        _forget_the_toolset,
    ],
    ids=lambda plant: plant.__name__.strip("_"),
)
def test_a_planted_error_is_found(plant: Callable[[checks.Data], None], data: checks.Data) -> None:
    """Each check fails where something is wrong."""
    damaged = copy.deepcopy(data)
    plant(damaged)

    assert checks.problems(damaged) != []


def _supports(distribution: Any, version: str, platform: str, gpu: tuple[int, int]) -> bool:
    (block,) = (
        block
        for block in distribution["code"]
        if block["platform"] == platform
        and Version(block["first"]) <= Version(version) <= Version(block["last"])
    )
    return support.covers(block["sass"], gpu)


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
            assert newer == {links} or block["platform"] == "windows_x86_64"


@pytest.mark.online
def test_a_random_sample_reads_the_same_again(data: checks.Data, tmp_path: Path) -> None:
    """One provider and three components, read anew from the index, agree with the data."""
    chance = random.Random()  # noqa: S311 - a sample, not a secret
    reader = Reader(Web(), Cache(tmp_path), "https://pypi.org/simple", lambda _: None)
    build = chance.choice(data["onnxruntime"]["build"])
    file = build["wheels"][0]["file"]
    wheel = next(wheel for wheel in reader.wheels("onnxruntime-gpu") if wheel.file == file)
    path = next(path for path in reader.contents(wheel).members if PROVIDER.fullmatch(path))
    library = reader.library(wheel, path)

    assert wheel.sha256 == build["wheels"][0]["sha256"], file
    assert support.supported(library.groups) == (tuple(build["sass"]), tuple(build["ptx"])), file
    linked = {need["library"] for need in build["needs"] if need["how"] == "links"}
    assert linked == set(filter(names.is_cuda_library, library.links + library.delayed)), file

    for _ in range(3):
        distribution = chance.choice(data["nvidia"]["distribution"])
        row = chance.choice(distribution["releases"])
        (release,) = (
            release
            for release in nvidia.releases(reader, distribution["name"], 4)
            if (str(release.wheel.version), release.wheel.platform)
            == (row["version"], row["platform"])
        )
        assert (release.size, release.wheel.sha256) == (row["size"], row["sha256"])
        assert list(release.requires) == row.get("requires", [])
        (block,) = (
            block
            for block in distribution["files"]
            if row["platform"] == block["platform"] and row["version"] in block["versions"]
        )
        assert release.libraries == block["libraries"]


@pytest.mark.online
@pytest.mark.skipif(sys.platform != "linux", reason="runs NVIDIA's tool for Linux")
def test_gpu_code_reads_as_cuobjdump_reads_it(tmp_path: Path) -> None:
    """NVIDIA's own tool counts the same pieces; it prints family targets (12.0f) as plain ones."""
    web = Web()
    reader = Reader(web, Cache(tmp_path / "cache"), "https://pypi.org/simple", lambda _: None)
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
        archive, _ = open_zip(web, wheel.url)
        (member,) = (name for name in archive.namelist() if name.endswith(suffix))
        target.write_bytes(read_member(archive, member))
    tool.chmod(0o755)

    code = fatbin.gpu_code(library.read_bytes())

    for flag, counts in (("-lelf", code.sass), ("-lptx", code.ptx)):
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
    assert there == set(PLATFORMS)
