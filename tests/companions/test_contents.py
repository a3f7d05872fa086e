"""`companions` and their wheels, and which libraries `library_list` names."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from ortgpu_fix.apply.wheel_contents import read_wheel_contents
from ortgpu_fix.companions import contents as companions
from ortgpu_fix.companions.build import (
    MARKER,
    LocalWheel,
    build_companions,
    library_wheel,
    placeholder_wheel,
    project_companions,
)
from ortgpu_fix.companions.library_list import Entry, libraries
from ortgpu_fix.matrix import model
from ortgpu_fix.matrix.model import (
    Build,
    Distribution,
    LibraryNeed,
    Matrix,
    Release,
    WheelLibraries,
)
from ortgpu_fix.plan.wheels import Wheel

LINUX, WINDOWS = "linux_x86_64", "windows_x86_64"
MODULES = {"__init__.py": "def start(): ...\n", "load.py": "\n"}

# What the wheels of CUDA 12 and 13 hold, shortened; a set of one version of each.
CUDA_12 = {
    "nvidia-cublas-cu12": ["nvidia/cublas/lib/lib*.so.12", "cublas", "cublasLt", "nvblas"],
    "nvidia-cuda-runtime-cu12": ["nvidia/cuda_runtime/lib/lib*.so.12", "cudart"],
    "nvidia-cufft-cu12": ["nvidia/cufft/lib/lib*.so.11", "cufft", "cufftw"],
    "nvidia-nvjitlink-cu12": ["nvidia/nvjitlink/lib/lib*.so.12", "nvJitLink"],
    "nvidia-cuda-nvrtc-cu12": [
        "nvidia/cuda_nvrtc/lib/lib*.so.12",
        "nvrtc",
        "nvrtc.alt",
        "nvrtc-builtins",
    ],
    "nvidia-cudnn-cu12": [
        "nvidia/cudnn/lib/lib*.so.9",
        *("cudnn", "cudnn_adv", "cudnn_cnn", "cudnn_graph", "cudnn_heuristic", "cudnn_ops"),
    ],
}
CUDA_13 = {
    "nvidia-cublas": ["nvidia/cu13/lib/lib*.so.13", "cublas", "cublasLt"],
    "nvidia-cufft": ["nvidia/cu13/lib/lib*.so.12", "cufft"],
    "nvidia-nvjitlink": ["nvidia/cu13/lib/lib*.so.13", "nvJitLink"],
    "nvidia-cuda-nvrtc": ["nvidia/cu13/lib/lib*.so.13", "nvrtc"],
    "nvidia-cudnn-cu13": ["nvidia/cudnn/lib/lib*.so.9", "cudnn", "cudnn_graph"],
}
WINDOWS_12 = {
    "nvidia-cublas-cu12": ["nvidia/cublas/bin/*64_12.dll", "cublas", "cublasLt", "nvblas"],
    "nvidia-cuda-nvrtc-cu12": ["nvidia/cuda_nvrtc/bin/*64_120_0.dll", "nvrtc", "nvrtc-builtins"],
    "nvidia-cudnn-cu12": ["nvidia/cudnn/bin/*64_9.dll", "cudnn", "cudnn_graph", "cudnn_ops"],
}
NEEDS_12 = ("libcublas.so.12", "libcublasLt.so.12", "libcudart.so.12", "libcudnn.so.9")


def contents(platform: str, paths: list[str]) -> WheelLibraries:
    pattern, *stems = paths
    found = [pattern.replace("*", stem) for stem in stems]
    return WheelLibraries(
        platform=platform,
        versions=frozenset({"1.0"}),
        libraries={path.rpartition("/")[2]: path for path in found},
        links=(),
        loads=(),
    )


def distribution(name: str, *held: WheelLibraries) -> Distribution:
    releases = [
        Release(
            name=name,
            version=version,
            platform=one.platform,
            python=None,
            glibc=None,
            size=1,
            sha256="",
            file="",
        )
        for one in held
        for version in ("1.0", "2.0")  # 2.0 is one whose contents are not known
    ]
    return Distribution(name=name, cuda="12", releases=tuple(releases), contents=held, code=())


def build(version: str, platform: str, needs: Iterable[str]) -> Build:
    return Build(
        version=version,
        platform=platform,
        cuda="12.8",
        cudnn="9",
        needs=tuple(
            LibraryNeed(library=library, how="links", distribution=None, since=None)
            for library in (*needs, "libcuda.so.1")
        ),
        sass=(),
        ptx=(),
        glibc=None,
        preload_dlls=True,
        wheels=(),
    )


MATRIX = Matrix(
    date="",
    digest="",
    gone={},
    builds=(
        build("1.26.0", WINDOWS, ("cublas64_12.dll", "cublasLt64_12.dll", "cudnn64_9.dll")),
        build("1.26.0", LINUX, (*NEEDS_12, "libcufft.so.11")),
        build("1.20.2", LINUX, (*NEEDS_12, "libcudnn_adv.so.9", "libcudnn_graph.so.9")),
        build("1.31.1", LINUX, ("libcublasLt.so.13", "libcudnn.so.9", "libcufft.so.12")),
        build("1.99.1", LINUX, ("libcublas.so.12",)),
    ),
    distributions={
        name: distribution(
            name,
            contents(LINUX, paths),
            *([contents(WINDOWS, WINDOWS_12[name])] if name in WINDOWS_12 else []),
        )
        for name, paths in {**CUDA_12, **CUDA_13}.items()
    },
    toolkits=(),
    floors=(),
    toolkit_drivers=(),
    branches={},
    numpy=(),
    owners=frozenset(),
    shared={},
    limits=(),
)


def selection(release: str, names: Iterable[str], version: str = "1.0") -> list[Wheel]:
    rows = {"onnxruntime-gpu": release} | dict.fromkeys(names, version)
    return [
        Wheel(name=name, version=number, index_url="pypi", file="", size=0, sha256="")
        for name, number in rows.items()
    ]


def listed(entries: Iterable[Entry]) -> list[str]:
    return [f"{entry.when} {entry.path.rpartition('/')[2]}" for entry in entries]


def unzip(wheel: LocalWheel) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(wheel.content)) as file:
        assert file.testzip() is None
        return {name: file.read(name) for name in file.namelist()}


ENTRIES = (
    Entry(when="always", distribution="nvidia-cublas-cu12", path="nvidia/a/lib/libcublas.so.12"),
)
WHEELS = (
    library_wheel("1.26.0", ENTRIES, MODULES),
    library_wheel("1.18.0+cu12", ENTRIES, MODULES),
    placeholder_wheel("1.26.0"),
)


def test_what_the_provider_needs_is_loaded_and_cudnns_parts_only_where_they_are_shadowed() -> None:
    assert listed(libraries(selection("1.26.0", CUDA_12), MATRIX, LINUX)) == [
        "always libcudart.so.12",
        "always libnvJitLink.so.12",
        "always libnvrtc.so.12",
        "always libcublasLt.so.12",
        "always libcublas.so.12",
        "always libcufft.so.11",
        "shadowed libcudnn_graph.so.9",
        "shadowed libcudnn_ops.so.9",
        "shadowed libcudnn_cnn.so.9",
        "shadowed libcudnn_adv.so.9",
        "shadowed libcudnn_heuristic.so.9",
        "always libcudnn.so.9",
    ]


def test_the_libraries_are_those_of_the_release_from_its_index() -> None:
    """Whatever else has the version of another release, and although PyPI has one of it, too."""
    rows = selection("1.20.2", CUDA_12)
    namesake = rows[0]._replace(name="sympy", version="1.26.0")
    elsewhere = MATRIX.builds[-1]._replace(version="1.20.2", index_url="https://x.example")
    matrix = MATRIX._replace(builds=(elsewhere, *MATRIX.builds))

    found = libraries([*rows, namesake], matrix, LINUX)

    assert found == libraries(rows, MATRIX, LINUX)
    assert (
        libraries([rows[0]._replace(index_url="https://y.example"), *rows[1:]], matrix, LINUX) == ()
    )


def test_parts_of_cudnn_that_the_provider_links_are_always_loaded() -> None:
    entries = listed(libraries(selection("1.20.2", CUDA_12), MATRIX, LINUX))

    assert "always libcudnn_adv.so.9" in entries
    assert "always libcudnn_graph.so.9" in entries
    assert "shadowed libcudnn_ops.so.9" in entries


def test_what_lies_beside_the_one_that_opens_it_is_left_to_that_one() -> None:
    entries = listed(libraries(selection("1.31.1", CUDA_13), MATRIX, LINUX))

    assert "shadowed libnvJitLink.so.13" in entries  # CUDA 13 has one folder for all
    assert "always libnvrtc.so.13" in entries  # cuDNN's is another


def test_windows_loads_everything_by_its_full_path() -> None:
    names = [*WINDOWS_12, model.MSVC_RUNTIME]
    entries = libraries(selection("1.26.0", names), MATRIX, WINDOWS)

    assert [entry.when for entry in entries] == ["newer"] * 7 + ["always"] * 7
    assert [entry.path for entry in entries][:3] == [
        "../../Scripts/vcruntime140.dll",
        "../../Scripts/vcruntime140_1.dll",
        "../../Scripts/msvcp140.dll",
    ]
    assert [entry.path.rpartition("/")[2] for entry in entries][7:] == [
        "nvrtc-builtins64_120_0.dll",
        "nvrtc64_120_0.dll",
        "cublasLt64_12.dll",
        "cublas64_12.dll",
        "cudnn_graph64_9.dll",
        "cudnn_ops64_9.dll",
        "cudnn64_9.dll",
    ]


@pytest.mark.parametrize(
    ("release", "names", "version"),
    [("1.99.0", CUDA_12, "1.0"), ("1.26.0", CUDA_12, "2.0")],
    ids=["release not known", "contents not known"],
)
def test_without_known_libraries_there_is_only_the_stand_in(
    release: str, names: Iterable[str], version: str
) -> None:
    made = build_companions(selection(release, names, version), MATRIX, LINUX, MODULES)

    assert [wheel.name for wheel in made] == ["onnxruntime"]


def test_a_selection_without_the_gpu_build_has_no_companions() -> None:
    assert build_companions(selection("1.26.0", CUDA_12)[1:], MATRIX, LINUX, MODULES) == ()


def test_the_version_of_the_libraries_changes_with_everything_in_them() -> None:
    other = (Entry(when="shadowed", distribution="nvidia-cublas-cu12", path=ENTRIES[0].path),)
    made = [
        library_wheel("1.26.0", ENTRIES, MODULES),
        library_wheel("1.26.0", other, MODULES),
        library_wheel("1.26.0", ENTRIES, MODULES | {"load.py": "pass\n"}),
        library_wheel("1.26.1", ENTRIES, MODULES),
    ]

    assert len({wheel.version for wheel in made}) == 4
    assert {Version(wheel.version).public for wheel in made} == {"1.26.0", "1.26.1"}


def test_the_wheels_are_the_same_bytes_every_time() -> None:
    assert library_wheel("1.26.0", ENTRIES, MODULES) == WHEELS[0]
    # Of whatever Python runs this:
    assert [hashlib.sha256(wheel.content).hexdigest()[:16] for wheel in WHEELS] == [
        "5268ef67d44186dc",
        "4f2c0a0c08736cce",
        "f367a55f727ed1c9",
    ]


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.file)
def test_the_wheels_are_valid(wheel: LocalWheel, tmp_path: Path) -> None:
    path = tmp_path / wheel.file
    path.write_bytes(wheel.content)
    inside = read_wheel_contents(path)
    name, version, _, tags = parse_wheel_filename(wheel.file)

    assert (name, str(version)) == (wheel.name, wheel.version)
    assert {str(tag) for tag in tags} == {"py3-none-any"}
    assert (inside.name, inside.version) == (wheel.name, wheel.version)


def test_the_stand_in_says_what_it_is_and_has_no_module() -> None:
    members = unzip(placeholder_wheel("1.26.0"))
    metadata = members["onnxruntime-1.26.0.dist-info/METADATA"].decode()

    assert all(name.startswith("onnxruntime-1.26.0.dist-info/") for name in members)
    assert f"onnxruntime-1.26.0.dist-info/{MARKER}" in members
    assert "Summary: Placeholder without files, built locally by ortgpu-fix" in metadata
    assert Requirement(metadata.partition("Requires-Dist: ")[2].strip()).specifier == SpecifierSet(
        "==1.26.0"
    )


def test_the_lines_that_python_reads_at_its_start() -> None:
    members = unzip(WHEELS[0])
    line = members["ortgpu_fix_libraries.pth"].decode()

    assert line.startswith("import ")
    assert line.count("\n") == 1
    assert members["ortgpu_fix_libraries.start"] == b"_ortgpu_fix_libraries:start\n"
    assert members["_ortgpu_fix_libraries/libraries.txt"] == (
        b"always nvidia-cublas-cu12 nvidia/a/lib/libcublas.so.12\n"
    )


def test_in_a_project_the_loader_requires_the_versions_of_the_plan() -> None:
    rows = selection("1.26.0", CUDA_12)
    loader, placeholder = project_companions(rows, MATRIX, LINUX, MODULES, "1.26.0")
    text = unzip(loader)[f"ortgpu_fix_libraries-{loader.version}.dist-info/METADATA"].decode()
    assert [line for line in text.splitlines() if line.startswith("Requires-Dist")] == [
        "Requires-Dist: onnxruntime-gpu==1.26.0",
        "Requires-Dist: nvidia-cublas-cu12==1.0",
        "Requires-Dist: nvidia-cuda-nvrtc-cu12==1.0",
        "Requires-Dist: nvidia-cuda-runtime-cu12==1.0",
        "Requires-Dist: nvidia-cudnn-cu12==1.0",
        "Requires-Dist: nvidia-cufft-cu12==1.0",
        "Requires-Dist: nvidia-nvjitlink-cu12==1.0",
    ]
    assert placeholder.file == "onnxruntime-1.26.0+ortgpu-py3-none-any.whl"

    plain, _ = build_companions(rows, MATRIX, LINUX, MODULES)
    assert companions.is_version_of(loader.version, plain.version)
    assert companions.is_version_of("1.26.0+ortgpu", "1.26.0")
    assert not companions.is_version_of("1.26.1+ortgpu", "1.26.0")
    versions = {
        library_wheel("1.26.0", ENTRIES, MODULES, requires=[line]).version
        for line in ("nvidia-a==1", "nvidia-a==2")
    }
    assert len(versions) == 2


def test_a_project_gets_no_companions_where_nothing_is_to_be_loaded() -> None:
    assert project_companions((), MATRIX, LINUX, MODULES, "") == ()
