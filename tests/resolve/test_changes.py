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
ORDINARY = ("numpy 2.2.6", "flatbuffers 25.0")
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


def test_a_requirement_that_comes_is_something_to_do() -> None:
    found = changes(GPU, *ORDINARY, system=SYSTEM)._replace(
        install=(), uninstall=(), companions=(), requires=()
    )

    assert not found
    assert found._replace(requires=("flatbuffers",))


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


def test_where_a_wheel_has_to_go_the_libraries_of_the_system_serve_no_more() -> None:
    rival = changes(GPU, *ORDINARY, "nvidia-cudnn-cu11 8.9.6", system=SYSTEM)

    assert (rival.uninstall, rival.system) == (("nvidia-cudnn-cu11",), {})
    assert [row.name for row in rival.install] == ["nvidia-cublas-cu12", "nvidia-cudnn-cu12"]


def test_a_companion_comes_where_it_is_used_and_not_declined() -> None:
    user = {"name": "user", "version": "1", "requires": ["onnxruntime"]}
    libraries = ("nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0")

    def companions(**options: Any) -> list[str]:
        asked = PlanOptions(**options)
        found = changes(GPU, *libraries, *ORDINARY, user, autoload=True, options=asked)
        return [row.name for row in found.companions]

    assert companions() == ["ortgpu-fix-libraries", "onnxruntime"]
    assert companions(provide=False) == ["ortgpu-fix-libraries"]
    assert companions(autoload=False) == ["onnxruntime"]
