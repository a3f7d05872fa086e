"""Every change that would allow a newer release, with what it gains: the whole list."""

from __future__ import annotations

from typing import Any

import pytest
from told import gains, values_of

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

TABLES = synthetic.tables


def unlocks(
    *packages: Any, platform: Any = None, tables: Any = None, options: Any = None, **machine: Any
) -> list[tuple[str, dict[str, str], str]]:
    """Return code, values and gain of each change, in the order of the plan."""
    document = synthetic.document(*packages, **machine)
    document["platform"] |= platform or {}
    matrix = matrix_parse.parse(tables or TABLES(), "", {})
    made = resolve(facts_json.from_json(document), options or PlanOptions(), matrix)
    return [(row.change.code, values_of(row.change), gains(row)) for row in made.unlock]


NEWEST = "onnxruntime-gpu 1.31.0"


def test_the_oldest_driver_that_helps_is_named() -> None:
    assert unlocks(driver="12.2") == [
        ("newer-driver", {"floor": "580.65.06", "cuda": "13"}, NEWEST)
    ]
    assert unlocks(driver="13.0") == []


def test_a_driver_that_only_compiles_newer_ptx_is_named_before_one_of_the_next_major() -> None:
    """On a GPU for which a release has PTX alone."""
    assert unlocks(driver="12.2", gpus=("12.0",)) == [
        ("newer-driver", {"floor": "570.26", "cuda": "12"}, "onnxruntime-gpu 1.26.0"),
        ("newer-driver", {"floor": "580.65.06", "cuda": "13"}, NEWEST),
    ]


def test_without_a_driver_or_without_a_gpu_it_has_to_be_visible() -> None:
    assert unlocks(driver=None) == [("driver-visible", {}, NEWEST)]
    assert unlocks(driver=None, gpus=("5.2",)) == [("driver-visible", {}, "onnxruntime-gpu 1.18.0")]
    assert unlocks(driver="13.0", gpus=()) == [("gpu-visible", {}, NEWEST)]


def test_the_nearest_python_that_helps_is_named() -> None:
    assert unlocks(driver="13.0", python="3.10.1") == [
        ("other-python", {"python": "Python 3.11"}, NEWEST)
    ]
    assert unlocks(driver="12.2", python="3.13.1")[0] == (
        *("newer-driver", {"floor": "580.65.06", "cuda": "13"}, NEWEST),
    )
    [(code, values, gains)] = [
        row for row in unlocks(driver="12.2", python="3.14.1") if row[0] == "other-python"
    ]
    assert (code, values, gains) == (
        *("other-python", {"python": "Python 3.12"}, "onnxruntime-gpu 1.26.0"),
    )


def test_a_free_threaded_python_may_be_exchanged_for_the_ordinary_one() -> None:
    document = synthetic.document(driver="12.2")
    document["python"] = {"version": "3.12.7", "free_threaded": True}
    made = resolve(facts_json.from_json(document), PlanOptions(), synthetic.matrix())

    assert ("other-python", {"python": "Python 3.12"}, "onnxruntime-gpu 1.26.0") in [
        (row.change.code, values_of(row.change), gains(row)) for row in made.unlock
    ]


def test_a_machine_without_builds_needs_another_and_an_old_glibc_a_newer_one() -> None:
    tables = TABLES()
    tables["onnxruntime"]["build"].pop()  # that for ARM
    assert unlocks(driver="13.0", platform={"machine": "aarch64"}, tables=tables) == [
        ("other-machine", {}, NEWEST)
    ]
    arm = unlocks(driver="12.2", gpus=("9.0",), platform={"machine": "aarch64"})
    assert arm == [
        ("newer-driver", {"floor": "580.65.06", "cuda": "13"}, NEWEST)
    ]  # no other machine
    assert unlocks(driver="13.0", platform={"libc": "glibc 2.17"}) == [
        ("newer-glibc", {"glibc": "2.28"}, NEWEST),
        ("ort-index", {"url": "https://feed.example/cuda-11/simple/"}, "onnxruntime-gpu (CUDA 11)"),
    ]


@pytest.mark.parametrize(
    ("machine", "named"),
    [
        ({}, False),
        ({"python": "3.9.1"}, True),
        ({"gpus": ("5.2",)}, True),
        ({"options": PlanOptions(cuda="11")}, False),
    ],
)
def test_another_build_may_have_what_the_machine_lacks_in_this(
    machine: dict[str, Any], *, named: bool
) -> None:
    tables = TABLES()
    tables["onnxruntime"]["build"] = [tables["onnxruntime"]["build"][2]]  # 1.26.0
    found = {code for code, _, _ in unlocks(tables=tables, **{"driver": "12.8", **machine})}

    assert ("ort-index" in found) is named


def pinning(name: str, requires: str) -> dict[str, Any]:
    return {"name": name, "version": "2", "requires": [requires]}


def test_who_holds_something_back_is_named_alone_or_with_the_others() -> None:
    one, two = pinning("one", "onnxruntime<1.20"), pinning("two", "onnxruntime<1.25")

    assert unlocks(one, driver="13.0") == [
        (
            "other-version",
            {"by": "one 2", "command": "pip install --dry-run one onnxruntime==1.31.0"},
            NEWEST,
        )
    ]
    assert unlocks(one, two, driver="13.0") == [
        (
            "other-version",
            {"by": "one 2", "command": "pip install --dry-run one onnxruntime==1.23.0"},
            "onnxruntime-gpu 1.23.0",
        )
    ]
    [(_, values, _)] = unlocks(pinning("evil$(x)", "onnxruntime<1.20"), driver="13.0")
    assert values["command"] == "pip install --dry-run 'evil$(x)' onnxruntime==1.31.0"
    needs = pinning("one", "protobuf<4")  # 1.31 requires a newer one
    assert unlocks(needs, driver="13.0") == [
        (
            "other-version",
            {"by": "one 2", "command": "pip install --dry-run one onnxruntime-gpu==1.31.0"},
            NEWEST,
        )
    ]
    same = pinning("two", "onnxruntime<1.20")
    assert unlocks(one, same, driver="13.0") == [
        (
            "other-version",
            {
                "by": "one 2, two 2",
                "command": "pip install --dry-run one two onnxruntime==1.31.0",
            },
            NEWEST,
        )
    ]


def test_who_owns_the_folder_of_a_wheel_that_is_needed_is_named() -> None:
    """It loads another cuDNN, which would be overwritten."""
    app = pinning("app", "nvidia-cudnn-cu11")

    assert unlocks(app, "nvidia-cudnn-cu11 8.9.6", driver="12.2")[0] == (
        *("other-cuda", {"by": "app 2"}, "onnxruntime-gpu 1.26.0"),
    )


def data_center(**row: Any) -> dict[str, Any]:
    tables = TABLES()
    forward = {"package": "cuda-compat-13-0", "cuda": "13.0", "branches": [535, 550]}
    tables["drivers"]["forward"] = [forward | {"source": "https://n"} | row]
    tables["onnxruntime"]["build"][3]["sass"] += ["10.0", "10.3"]
    tables["drivers"]["data_center"] = [{"names": ["A1", "T9"], "source": "https://n"}]
    return tables


@pytest.mark.parametrize(
    ("version", "gpu", "more", "named"),
    [
        ("535.104", ("NVIDIA A1-SXM4-80GB", "8.6"), {}, True),
        ("550.1", ("A1", None), {}, True),
        ("570.1", ("A1", "8.0"), {}, False),
        ("535.104", ("GeForce", "8.0"), {}, False),  # its name says that it is for games
        ("535.104", (None, "8.0"), {}, True),  # no other GPU has that
        ("535.104", (None, "8.6"), {}, False),
        ("535.104", ("A1", "8.0"), {"cuda": "12.2"}, False),  # it is no newer
    ],
)
def test_nvidia_s_packages_with_a_newer_library_are_named_where_its_table_allows_them(
    version: str, gpu: tuple[str | None, str | None], more: dict[str, Any], *, named: bool
) -> None:
    document = synthetic.document(driver="12.2")
    document["driver"]["version"] = version
    name, capability = gpu
    document["gpus"] = [{"name": name, "compute_capability": capability}]

    def found(**platform: Any) -> list[Any]:
        document["platform"] |= platform
        matrix = matrix_parse.parse(data_center(**more), "", {})
        made = resolve(facts_json.from_json(document), PlanOptions(), matrix)
        rows = [row for row in made.unlock if row.change.code == "forward-compatibility"]
        return [(values_of(row.change), gains(row)) for row in rows]

    values = {"package": "cuda-compat-13-0", "cuda": "13.0"}
    assert found() == ([(values, NEWEST)] if named else [])
    assert found(wsl=True) == []


@pytest.mark.parametrize(("last", "named"), [(580, True), (535, False)])
def test_no_driver_is_named_that_drops_a_gpu_although_that_of_now_knows_it(
    last: int, *, named: bool
) -> None:
    """The driver of now has named the GPU, so it supports it; of a newer one nobody knows that."""
    tables = TABLES()
    tables["onnxruntime"]["build"][3]["sass"] = ["7.0", *synthetic.NEW]
    tables["drivers"]["last"] = [{"below": "7.5", "branch": last}]
    facts = synthetic.facts(
        "onnxruntime-gpu 1.26.0", gpus=("7.0",), driver="12.2", sources={"gpus": "nvml"}
    )
    assert facts.driver
    facts = facts._replace(driver=facts.driver._replace(version="535.104.12"))
    made = resolve(facts, PlanOptions(), matrix_parse.parse(tables, "", {}))
    found = {(row.change.code, gains(row)) for row in made.unlock}

    assert made.verdict == "fixable"
    assert (("newer-driver", NEWEST) in found) is named


def test_beside_a_torch_the_index_for_an_old_cuda_is_named_too() -> None:
    """Where no other torch would help, what helps without one does."""
    machine: dict[str, Any] = {"python": "3.13.0", "driver": "11.7", "gpus": ("8.0",)}
    without = unlocks(**machine)
    beside = unlocks({"name": "torch", "version": "2.6.0+cpu"}, **machine)

    assert "ort-index" in {code for code, _, _ in without}
    assert all(row in beside for row in without)
