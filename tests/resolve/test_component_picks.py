"""Which wheel of NVIDIA's is picked for a build, and why none is: one limit a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from told import values_of

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.resolve.components import Components, choose_nvidia_wheels, toolkits_to_try
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


def test_the_toolkit_of_the_build_comes_first_and_then_newer_ones_of_its_major() -> None:
    def more(tables: dict[str, Any]) -> None:
        for version in ("12.8.0", "12.10.0", "12.1.0"):
            row = {"version": version, "components": {"nvidia-cublas-cu12": "12.8.4"}}
            tables["toolkits"]["toolkit"].append(row)

    made = matrix(more)
    here = situation_of(synthetic.facts(), PlanOptions(), made)
    [build] = [row for row in made.builds if row.version == "1.26.0"]

    assert [row.version for row in toolkits_to_try(build, here)] == [
        *("12.8.1", "12.8.0", "12.9.1", "12.10.0"),
    ]


def test_a_fresh_set_has_the_toolkit_s_wheels_and_the_newest_cudnn() -> None:
    assert picked() == {
        "nvidia-cublas-cu12": ("12.8.4", False),
        "nvidia-cudnn-cu12": ("9.28.0", False),
    }
    assert picked(version="1.23.0")["nvidia-cublas-cu12"] == ("12.2.5", False)


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ("12.8.4", ("12.8.4", True)),
        ("12.9.1", ("12.9.1", True)),
        ("12.2.5", ("12.8.4", False)),  # older than the toolkit of a build that is new here
        ("12.0.1", ("12.8.4", False)),
    ],
)
def test_an_installed_wheel_that_serves_is_kept(installed: str, expected: object) -> None:
    assert picked(f"nvidia-cublas-cu12 {installed}")["nvidia-cublas-cu12"] == expected


def test_an_older_one_stays_beside_the_build_that_it_came_with_or_whoever_uses_it() -> None:
    older = "nvidia-cublas-cu12 12.2.5"

    assert picked(older, "onnxruntime-gpu 1.26.0")["nvidia-cublas-cu12"] == ("12.2.5", True)
    assert picked(older, "transformer 4.2")["nvidia-cublas-cu12"] == ("12.2.5", True)
    assert picked(older, "onnxruntime-gpu 1.23.0")["nvidia-cublas-cu12"] == ("12.8.4", False)
    lacks = "nvidia-cublas-cu12 12.0.1"  # without the symbols that are needed
    assert picked(lacks, "onnxruntime-gpu 1.26.0")["nvidia-cublas-cu12"] == ("12.8.4", False)


def test_a_damaged_one_comes_again() -> None:
    damaged = {"name": "nvidia-cudnn-cu12", "version": "9.10.2", "intact": False}

    assert picked(damaged)["nvidia-cudnn-cu12"] == ("9.28.0", False)
    assert picked("nvidia-cudnn-cu12 9.10.2")["nvidia-cudnn-cu12"] == ("9.10.2", True)


def test_what_the_metadata_of_an_installed_wheel_say_wrongly_hinders_nothing() -> None:
    document = synthetic.document(
        {"name": "nvidia-cudnn-cu12", "version": "9.99.0", "requires": ["no requirement!"]},
        "onnxruntime-gpu 1.26.0",
    )
    made = resolve(facts_json.from_json(document), PlanOptions(), matrix())

    assert {row.name: row.version for row in made.selection}["nvidia-cudnn-cu12"] == "9.99.0"


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


def test_a_library_that_always_had_every_symbol_serves_in_any_release() -> None:
    def anyhow(tables: dict[str, Any]) -> None:
        [build] = [row for row in tables["onnxruntime"]["build"] if row["version"] == "1.26.0"]
        del build["needs"][0]["since"]

    kept = picked("nvidia-cublas-cu12 12.0.1", "onnxruntime-gpu 1.26.0", edit=anyhow)
    assert kept["nvidia-cublas-cu12"] == ("12.0.1", True)


def test_two_builds_that_need_other_symbols_of_a_wheel_are_picked_for_apart() -> None:
    def newer(tables: dict[str, Any]) -> None:
        [build] = [row for row in tables["onnxruntime"]["build"] if row["version"] == "1.26.0"]
        build["needs"][1]["since"] = "9.20.0"

    facts = synthetic.facts(app("nvidia-cudnn-cu12<9.20"))
    made = resolve(facts, PlanOptions(), matrix(newer))

    assert made.release == "1.23.0"
    assert [why.code for row in made.rejected[1:2] for why in row.reasons] == ["library-lacks"]


def test_a_release_that_lacks_a_library_is_none() -> None:
    def without(tables: dict[str, Any]) -> None:
        files = {"versions": ["9.1.0"], "libraries": {"libother.so": "nvidia/libother.so"}}
        rows = nvidia(tables, CUDNN)["files"]
        rows.insert(0, rows[0] | files)

    assert refused(app("nvidia-cudnn-cu12==9.1.0"), edit=without) == [
        (
            "library-lacks",
            {"distribution": "nvidia-cudnn-cu12 9.1.0", "library": "libcudnn.so.9"},
        )
    ]


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


def test_a_wheel_without_code_for_the_gpu_is_none() -> None:
    """The PTX of these two does not count."""
    assert picked(gpus=("6.0",))["nvidia-cudnn-cu12"] == ("9.10.2", False)
    assert refused(gpus=("4.0",)) == [
        (
            "library-no-gpu-code",
            {"distribution": "nvidia-cublas-cu12 12.8.4", "gpu": "4.0"},
        ),
        ("library-no-gpu-code", {"distribution": "nvidia-cudnn-cu12 9.28.0", "gpu": "4.0"}),
    ]


def test_of_several_refusals_that_of_a_gpu_is_told() -> None:
    def newest_for_a_newer_libc(tables: dict[str, Any]) -> None:
        nvidia(tables, CUDNN)["releases"][-1]["glibc"] = "2.99"

    assert refused(gpus=("4.0",), edit=newest_for_a_newer_libc)[1] == (
        *("library-no-gpu-code", {"distribution": "nvidia-cudnn-cu12 9.10.2", "gpu": "4.0"}),
    )


def test_a_newer_toolkit_is_tried_where_the_first_has_no_code_for_a_gpu() -> None:
    assert picked(version="1.23.0", gpus=("12.0",))["nvidia-cublas-cu12"] == ("12.8.4", False)


def test_so_it_is_where_others_require_something_of_it() -> None:
    found = picked(app("nvidia-cublas-cu12>=12.2"), version="1.23.0", gpus=("12.0",))

    assert found["nvidia-cublas-cu12"] == ("12.8.4", False)


def test_a_glibc_that_is_too_old_is_named_with_what_is_needed() -> None:
    def newer(tables: dict[str, Any]) -> None:
        for row in nvidia(tables, CUDNN)["releases"]:
            row["glibc"] = "2.30"

    assert picked(edit=newer, libc="glibc 2.30")
    assert refused(edit=newer, libc="glibc 2.29") == [
        ("library-glibc", {"distribution": "nvidia-cudnn-cu12 9.28.0", "glibc": "2.30"})
    ]


def test_a_distribution_without_wheels_here_or_without_that_version_is_named() -> None:
    def elsewhere(tables: dict[str, Any]) -> None:
        for row in nvidia(tables, CUDNN)["releases"]:
            row["platform"] = "windows_x86_64"

    assert refused(edit=elsewhere) == [("library-no-wheel", {"distribution": "nvidia-cudnn-cu12"})]

    def unknown(tables: dict[str, Any]) -> None:
        for row in tables["toolkits"]["toolkit"]:
            if row["version"].startswith("12."):
                row["components"] = {"nvidia-cublas-cu12": "12.7.7"}

    assert refused(edit=unknown) == [
        ("library-no-wheel", {"distribution": "nvidia-cublas-cu12 12.7.7"})
    ]


def test_a_build_for_a_cuda_that_no_toolkit_is_known_of() -> None:
    def none(tables: dict[str, Any]) -> None:
        rows = tables["toolkits"]["toolkit"]
        rows[:] = [row for row in rows if not row["version"].startswith("12.")]

    assert refused(edit=none) == [("toolkit-unknown", {"cuda": "12.8", "version": "1.26.0"})]


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


def with_fourier(tables: dict[str, Any]) -> None:
    """Let 1.26 need cuFFT: 11.2 for CUDA 12.2, 11.3 for CUDA 12.8, with PTX for what is newer."""
    name, library = "nvidia-cufft-cu12", "libcufft.so.11"
    versions = ("11.2.0", "11.3.0")
    code = (("11.2.0", "11.3.0", ("8.0",)),)
    row = synthetic.distribution(name, "12", library, versions, code=code)
    row["code"][0]["ptx"] = ["9.0"]
    tables["nvidia"]["distribution"].append(row)
    numbers = {"12.2.2": "11.2.0", "12.8.1": "11.3.0", "12.9.1": "11.3.0"}
    for toolkit in tables["toolkits"]["toolkit"]:
        if toolkit["version"] in numbers:
            toolkit["components"][name] = numbers[toolkit["version"]]
    [build] = [row for row in tables["onnxruntime"]["build"] if row["version"] == "1.26.0"]
    build["needs"].append({"library": library, "how": "links", "distribution": name})


def test_an_older_wheel_of_what_is_no_cublas_stays_beside_a_build_that_is_new_here() -> None:
    assert picked(edit=with_fourier)["nvidia-cufft-cu12"] == ("11.3.0", False)
    found = picked("nvidia-cufft-cu12 11.2.0", edit=with_fourier)
    assert found["nvidia-cufft-cu12"] == ("11.2.0", True)


@pytest.mark.parametrize(
    ("driver", "compiles"), [("12.7", False), ("12.8", True), ("12.9", True), ("13.0", True)]
)
def test_ptx_counts_where_the_driver_is_as_new_as_its_toolkit(
    driver: str, *, compiles: bool
) -> None:
    found = refused(edit=with_fourier, gpus=("12.0",), driver=driver)
    lacking = {"distribution": "nvidia-cufft-cu12 11.3.0", "gpu": "12.0"}

    assert found == ([] if compiles else [("library-no-gpu-code", lacking)])


def test_the_reasons_are_those_of_the_toolkit_that_lacks_the_fewest() -> None:
    def lacking(tables: dict[str, Any]) -> None:
        for row in nvidia(tables, CUDNN)["releases"]:
            row["glibc"] = "2.99"
        for row in tables["toolkits"]["toolkit"]:
            if row["version"] == "12.8.1":
                row["components"] = {"nvidia-cublas-cu12": "12.7.7"}

    assert [code for code, _ in refused(edit=lacking)] == ["library-glibc"]
