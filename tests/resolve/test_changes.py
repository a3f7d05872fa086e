"""What changes from what is installed to the set that a plan takes."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.matrix.parse import parse
from ortgpu_fix.resolve.candidate import make_candidate
from ortgpu_fix.resolve.changes import Changes, changes_for
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.situation import situation_of

MATRIX = synthetic.matrix()
GPU = "onnxruntime-gpu 1.26.0"
LIBRARIES = ("nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0")
ORDINARY = ("numpy 2.2.6", "flatbuffers 25.0")
WHOLE = (GPU, *LIBRARIES, *ORDINARY)
FOLDER = {"distribution": "onnxruntime-gpu", "version": "1.26.0", "cuda": "12.8"}
SYSTEM: dict[str, str | None] = {"libcublas.so.12": None, "libcudnn.so.9": None}


def changes(
    *packages: Any,
    folder: Any = FOLDER,
    system: dict[str, str | None] | None = None,
    autoload: bool | None = None,
    options: PlanOptions | None = None,
    version: str = "1.26.0",
    matrix: Matrix = MATRIX,
    **machine: Any,
) -> Changes:
    libraries = [
        {"name": name, "path": f"/usr/lib/{name}", "version": number}
        for name, number in (system or {}).items()
    ]
    document = synthetic.document(*packages, onnxruntime=folder, libraries=libraries, **machine)
    document["python"]["autoload"] = autoload
    here = situation_of(facts_json.from_json(document), options or PlanOptions(), matrix)
    [build] = [
        row for row in matrix.builds if row.version == version and row.platform == "linux_x86_64"
    ]
    return changes_for(make_candidate(build, here), here)


def names(rows: Any) -> list[str]:
    return [row.name for row in rows]


def test_libraries_of_the_system_serve_where_nothing_else_is_to_be_done() -> None:
    found = changes(GPU, *ORDINARY, system=SYSTEM)

    assert not found
    assert {name: row.path for name, row in found.system.items()} == {
        name: f"/usr/lib/{name}" for name in SYSTEM
    }
    assert names(found.selection) == ["onnxruntime-gpu"]
    driver = {**SYSTEM, "libcuda.so.1": None}
    assert changes(GPU, *ORDINARY, system=driver).system == found.system  # of the driver, not a set
    one = changes(GPU, *ORDINARY, system={"libcublas.so.12": None})
    assert (names(one.install), one.system) == (["nvidia-cublas-cu12", "nvidia-cudnn-cu12"], {})
    beside = changes(GPU, *ORDINARY, "onnxruntime 1.22.0", system=SYSTEM)
    assert len(beside.install) == 3
    assert beside.system == {}
    rival = changes(GPU, *ORDINARY, "nvidia-cudnn-cu11 8.9.6", system=SYSTEM)
    assert (rival.uninstall, len(rival.install)) == (("nvidia-cudnn-cu11",), 2)
    kept = changes(GPU, LIBRARIES[0], *ORDINARY, system=SYSTEM)
    assert names(kept.selection) == ["nvidia-cublas-cu12", "onnxruntime-gpu"]


@pytest.mark.parametrize(
    ("library", "version", "gpu", "serves"),
    [
        ("libcublas.so.12", "12.2.0", "8.0", True),
        ("libcublas.so.12", "12.1.9", "8.0", False),  # without the symbols that are needed
        ("libcudnn.so.9", "9.28.0", "6.0", False),  # without code for the GPU
        ("libcudnn.so.9", "9.5", "6.0", True),
        ("libcudnn.so.9", "9.0.5", "4.0", True),  # nobody has read one so old
        ("libcudnn.so.9", "9.1.0", "4.0", False),
        ("libcudnn.so.9", "9.99", "6.0", True),  # nobody has read that one
    ],
)
def test_which_library_of_the_system_can_serve(
    library: str, version: str | None, gpu: str, *, serves: bool
) -> None:
    found = changes(GPU, *ORDINARY, system={**SYSTEM, library: version}, gpus=(gpu,))

    assert (library in found.system) is serves


def test_what_another_platform_s_libraries_have_tells_nothing_of_these() -> None:
    tables = synthetic.tables()
    [cudnn] = [
        row for row in tables["nvidia"]["distribution"] if row["name"] == "nvidia-cudnn-cu12"
    ]
    cudnn["code"].append(cudnn["code"][0] | {"platform": "windows_x86_64", "last": "9.28.0"})
    found = changes(
        *(GPU, *ORDINARY),
        system={**SYSTEM, "libcudnn.so.9": "9.28.0"},
        gpus=("6.0",),
        matrix=parse(tables, "", {}),
    )

    assert "libcudnn.so.9" not in found.system


def test_of_two_libraries_of_a_name_the_loader_takes_the_first() -> None:
    rows = [
        {"name": "libcublas.so.12", "path": "/first", "version": "12.1.0"},
        {"name": "libcublas.so.12", "path": "/second", "version": "12.8.0"},
        {"name": "libcudnn.so.9", "path": "/cudnn"},
    ]
    document = synthetic.document(GPU, *ORDINARY, onnxruntime=FOLDER, libraries=rows)
    here = situation_of(facts_json.from_json(document), PlanOptions(), MATRIX)
    [build] = [row for row in MATRIX.builds if row.version == "1.26.0"]

    assert changes_for(make_candidate(build, here), here).system == {}


USER = {"name": "user", "version": "1", "requires": ["onnxruntime"]}


@pytest.mark.parametrize(
    ("packages", "autoload", "options", "companions"),
    [
        (WHOLE, True, {}, ["ortgpu-fix-libraries"]),
        (WHOLE, True, {"autoload": False}, []),
        ((*WHOLE, USER), True, {}, ["ortgpu-fix-libraries", "onnxruntime"]),
        ((*WHOLE, USER), True, {"provide": False}, ["ortgpu-fix-libraries"]),
        (WHOLE[:4], None, {}, ["ortgpu-fix-libraries", "onnxruntime"]),
        (
            (*WHOLE, USER, {"name": "onnxruntime", "version": "1.26.0", "provided": True}),
            True,
            {},
            ["ortgpu-fix-libraries"],
        ),
    ],
)
def test_companions_come_with_other_changes_or_where_they_are_used(
    packages: tuple[Any, ...],
    autoload: bool | None,  # noqa: FBT001
    options: dict[str, bool],
    companions: list[str],
) -> None:
    found = changes(*packages, autoload=autoload, options=PlanOptions(**options))  # type: ignore[arg-type]

    assert names(found.companions) == companions
