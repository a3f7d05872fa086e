"""Which wheel of NVIDIA's is picked for a build, and why none is: one limit a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from told import values_of

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.resolve.components import Components, choose_nvidia_wheels
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.resolve.situation import situation_of

Edit = Callable[[dict[str, Any]], None]
CUBLAS, CUDNN = 1, 4
"""The places of the two for CUDA 12 among the invented distributions."""


def matrix(edit: Edit = lambda _: None) -> Matrix:
    tables = synthetic.tables()
    edit(tables)
    return matrix_parse.parse(tables, "", {})


def chosen(
    *packages: Any,
    version: str = "1.26.0",
    edit: Edit = lambda _: None,
    libc: str = "glibc 2.35",
    **machine: Any,
) -> Components:
    document = synthetic.document(*packages, **machine)
    document["platform"]["libc"] = libc
    made = matrix(edit)
    [build, *_] = [row for row in made.builds if row.version == version]
    return choose_nvidia_wheels(
        build, situation_of(facts_json.from_json(document), PlanOptions(), made)
    )


def picked(*packages: Any, **more: Any) -> dict[str, tuple[str, bool]]:
    """Return version, and whether it is installed, by name."""
    found = chosen(*packages, **more)
    assert found.reasons == ()
    return {row.release.name: (row.release.version, row.installed) for row in found.chosen}


def refused(*packages: Any, **more: Any) -> list[tuple[str, dict[str, str]]]:
    found = chosen(*packages, **more)
    return [(why.code, values_of(why)) for why in (*found.reasons, *found.pinned)]


def nvidia(tables: dict[str, Any], at: int) -> dict[str, Any]:
    row: dict[str, Any] = tables["nvidia"]["distribution"][at]
    return row


def app(requires: str) -> dict[str, Any]:
    return {"name": "app", "version": "1", "requires": [requires]}


def test_where_only_the_installed_one_is_allowed_it_is_told_what_that_lacks() -> None:
    """The newest that the matrix holds is 9.28.0, which has no code for this GPU either."""
    document = synthetic.document(
        app("nvidia-cudnn-cu12>=9.99"), "nvidia-cudnn-cu12 9.99.0", gpus=("6.0",)
    )
    made = resolve(facts_json.from_json(document), PlanOptions(), matrix())
    [row] = [row for row in made.rejected if row.version == "1.26.0"]

    assert [(why.code, values_of(why)) for why in row.reasons] == [
        ("library-no-gpu-code", {"distribution": "nvidia-cudnn-cu12 9.99.0", "gpu": "6.0"})
    ]


def test_two_builds_that_need_other_symbols_of_a_wheel_are_picked_for_apart() -> None:
    def newer(tables: dict[str, Any]) -> None:
        [build] = [row for row in tables["onnxruntime"]["build"] if row["version"] == "1.26.0"]
        build["needs"][1]["since"] = "9.20.0"

    facts = synthetic.facts(app("nvidia-cudnn-cu12<9.20"))
    made = resolve(facts, PlanOptions(), matrix(newer))

    assert made.release == "1.23.0"
    assert [why.code for row in made.rejected[1:2] for why in row.reasons] == ["library-lacks"]


def test_what_stays_decides_the_version() -> None:
    assert picked(app("nvidia-cudnn-cu12<9.20"))["nvidia-cudnn-cu12"] == ("9.10.2", False)
    assert picked(app("nvidia-cublas-cu12>12.8.4"))["nvidia-cublas-cu12"] == ("12.9.1", False)
    assert picked(app("nvidia-cublas-cu12==12.2.5"))["nvidia-cublas-cu12"] == ("12.2.5", False)
    assert refused(app("nvidia-cudnn-cu12>=99")) == [
        ("library-pinned", {"distribution": "nvidia-cudnn-cu12", "by": "app 1"})
    ]
    other = app("nvidia-cudnn-cu12<9.20") | {"name": "other"}
    third = app("nvidia-cudnn-cu12") | {"name": "third"}
    assert refused(app("nvidia-cudnn-cu12>=99"), other) == [
        ("library-pinned", {"distribution": "nvidia-cudnn-cu12", "by": "app 1"})
    ]
    assert refused(app("nvidia-cudnn-cu12>=9.20"), other, third) == [
        (
            "library-pins-differ",
            {
                "distribution": "nvidia-cudnn-cu12",
                "by": "other 1 (nvidia-cudnn-cu12<9.20), app 1 (nvidia-cudnn-cu12>=9.20)",
            },
        )
    ]
    assert refused(app("nvidia-cudnn-cu12==8.9.7")) == [
        (
            "library-lacks",
            {"distribution": "nvidia-cudnn-cu12 8.9.7", "library": "libcudnn.so.9"},
        )
    ]


def test_where_a_toolkit_lacks_a_part_that_is_required_the_next_one_s_is_taken() -> None:
    """Not the newest of all, which belongs to no toolkit that is known."""

    def lacking(tables: dict[str, Any]) -> None:
        cublas = nvidia(tables, CUBLAS)
        cublas["releases"].append(cublas["releases"][0] | {"version": "12.99.0"})
        cublas["files"][0]["versions"].append("12.99.0")
        [row] = [row for row in tables["toolkits"]["toolkit"] if row["version"] == "12.8.1"]
        row["components"] = {}

    found = picked(app("nvidia-cublas-cu12"), edit=lacking)
    assert found["nvidia-cublas-cu12"] == ("12.9.1", False)


def test_what_a_wheel_needs_comes_along() -> None:
    """By its metadata, where the marker holds, and by the libraries that it links or loads."""

    def more(tables: dict[str, Any]) -> None:
        rows = tables["nvidia"]["distribution"]
        for name, library in (
            *(("nvidia-a-cu12", "liba.so.12"), ("nvidia-b-cu12", "libb.so.12")),
            *(("nvidia-c-cu12", "libc12.so"), ("nvidia-d-cu12", "libd.so.12")),
        ):
            rows.append(synthetic.distribution(name, "12", library, ("12.1",)))
        rows.append(synthetic.distribution("nvidia-e-cu12", "12", "libe.so", ("12.1",)))
        rows[-1]["files"] = []
        cudnn = nvidia(tables, CUDNN)
        for release in cudnn["releases"]:
            release["requires"] = [
                "nvidia-a-cu12",
                "nvidia-d-cu12; sys_platform == 'win32'",
                "unknown-to-the-matrix",
                "nvidia-e-cu12",  # nobody has read what is in it
            ]
        cudnn["files"][0] |= {"links": ["libb.so.12"], "loads": ["libc12.so", "libz.so.1"]}

    assert sorted(picked(edit=more)) == [
        *("nvidia-a-cu12", "nvidia-b-cu12", "nvidia-c-cu12"),
        *("nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-e-cu12"),
    ]


def test_the_reasons_are_those_of_the_toolkit_that_lacks_the_fewest() -> None:
    def lacking(tables: dict[str, Any]) -> None:
        for row in nvidia(tables, CUDNN)["releases"]:
            row["glibc"] = "2.99"
        for row in tables["toolkits"]["toolkit"]:
            if row["version"] == "12.8.1":
                row["components"] = {"nvidia-cublas-cu12": "12.7.7"}

    assert [code for code, _ in refused(edit=lacking)] == ["library-glibc"]
