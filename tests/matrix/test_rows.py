"""What the parser of the tables makes of each row."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.errors import Error
from ortgpu_fix.matrix.model import CondaBuild, Feed, Matrix, libraries_of, row_of
from ortgpu_fix.matrix.parse import parse, with_torch

ARM = "linux_aarch64"
WHEEL = {"python": "cp312", "size": 5, "sha256": "aa", "file": "a.whl"}
BUILD = {
    "version": "1.26.0",
    "platform": "linux_x86_64",
    "cuda": "12.8",
    "cudnn": "9",
    "needs": [
        {
            "library": "libcublas.so.12",
            "how": "links",
            "distribution": "nvidia-cublas-cu12",
            "since": "12.1",
        },
        {"library": "libcuda.so.1", "how": "loads"},
    ],
    "sass": ["8.0"],
    "ptx": ["9.0"],
    "preload_dlls": True,
    "requires": ["numpy>=1.21"],
    "wheels": [WHEEL, {**WHEEL, "python": "cp313", "requires": ["numpy>=2"]}],
}


def tables() -> dict[str, Any]:
    """Return tables without rows."""
    return {
        "onnxruntime": {"date": "2026-11-20", "build": [], "gone": []},
        "nvidia": {"distribution": []},
        "toolkits": {"toolkit": []},
        "numpy": {"wheel": []},
        "msvc": {"wheel": []},
        "plugins": {"plugin": [], "wheel": []},
        "drivers": {
            key: []
            for key in ("floor", "toolkit", "branch", "first", "last", "forward", "data_center")
        },
        "distributions": {"owner": [], "shared": [], "feed": [], "tensorrt": []},
        "floors": {"floor": []},
        "limits": {"limit": [], "defect": []},
        "consumers": {"consumer": []},
        "applications": {"application": []},
    }


def parsed(name: str, **rows: Any) -> Matrix:
    whole = tables()
    return parse({**whole, name: {**whole[name], **rows}}, "sha256:x")


def test_tables_without_rows_are_a_matrix_that_knows_nothing() -> None:
    found = parse(tables(), "sha256:x")

    assert (found.date, found.digest) == ("2026-11-20", "sha256:x")
    assert (found.builds, found.distributions, found.modules) == ((), {}, {})
    assert (found.torch.builds, found.added) == ((), ())
    assert parse(tables(), "", {"loader": "text"}).modules == {"loader": "text"}


def test_a_build() -> None:
    [build] = parsed("onnxruntime", build=[BUILD]).builds

    assert (build.version, build.platform, build.cuda, build.cudnn) == (
        *("1.26.0", "linux_x86_64"),
        *("12.8", "9"),
    )
    assert [tuple(need) for need in build.needs] == [
        ("libcublas.so.12", "links", "nvidia-cublas-cu12", "12.1"),
        ("libcuda.so.1", "loads", None, None),
    ]
    assert (build.sass, build.ptx, build.preload_dlls) == (("8.0",), ("9.0",), True)
    assert (build.glibc, build.toolset, build.index_url) == (None, None, "pypi")
    assert [(wheel.python, wheel.requires) for wheel in build.wheels] == [
        ("cp312", ("numpy>=1.21",)),
        ("cp313", ("numpy>=2",)),
    ]
    assert (build.wheels[0].size, build.wheels[0].sha256, build.wheels[0].file) == (
        *(5, "aa"),
        "a.whl",
    )


def test_what_only_some_builds_say() -> None:
    row = {**BUILD, "glibc": "2.28", "toolset": "14.40", "index_url": "https://feed.example"}
    [build] = parsed("onnxruntime", build=[row]).builds

    assert (build.glibc, build.toolset, build.index_url) == (
        *("2.28", "14.40"),
        "https://feed.example",
    )


def test_releases_that_are_gone_are_known_with_their_source() -> None:
    found = parsed("onnxruntime", gone=[{"version": "1.9.1", "source": "https://a.example"}])

    assert found.gone == {"1.9.1": "https://a.example"}


@pytest.mark.parametrize(("table", "name"), [("numpy", "numpy"), ("msvc", "msvc-runtime")])
def test_a_release(table: str, name: str) -> None:
    row = {"version": "2.2.6", "platform": "linux_x86_64", "size": 5, "sha256": "aa", "file": "n"}
    more = {"python": "cp312", "glibc": "2.17", "requires": ["b>1"]}
    bare, full = getattr(parsed(table, wheel=[row, {**row, **more}]), table)

    assert tuple(bare)[:9] == (name, "2.2.6", "linux_x86_64", None, None, 5, "aa", "n", ())
    assert (full.python, full.glibc, full.requires) == ("cp312", "2.17", ("b>1",))
    assert bare.index_url == "pypi"


def test_a_plugin_and_the_onnxruntime_beside_it() -> None:
    row = {"version": "0.5.0", "platform": "linux_x86_64", "size": 5, "sha256": "aa", "file": "n"}
    plugin = {
        "name": "onnxruntime-ep-cuda13",
        "provider": "CUDAExecutionProvider",
        "cuda": "13.4",
        "onnxruntime": ">=1.24",
        "needs": ["libcudart.so.13"],
        "sass": ["8.0"],
        "ptx": ["9.0"],
    }
    made = parsed(
        "plugins",
        plugin=[{**row, **plugin}, {**row, **plugin, "glibc": "2.28", "toolset": "14.44"}],
        wheel=[{**row, "python": "cp311", "requires": ["numpy>=1.21"]}],
    )
    bare, full = made.plugin_wheels
    [wheel] = made.onnxruntime

    assert tuple(bare)[:9] == (
        *("onnxruntime-ep-cuda13", "0.5.0", "linux_x86_64", None, 5, "aa", "n"),
        *("CUDAExecutionProvider", "13.4"),
    )
    assert (str(bare.onnxruntime), bare.needs) == (">=1.24", ("libcudart.so.13",))
    assert (bare.sass, bare.ptx, bare.toolset) == (("8.0",), ("9.0",), None)
    assert (full.glibc, full.toolset) == ("2.28", "14.44")
    assert (wheel.name, wheel.version, wheel.python) == ("onnxruntime", "0.5.0", "cp311")
    assert wheel.requires == ("numpy>=1.21",)


def test_what_is_documented_of_a_plugin() -> None:
    row = {"name": "a", "provider": "AExecutionProvider", "cuda": "12"}
    rich = {"name": "b", "provider": "B", "cuda": "13", "sass": ["8.0"]}
    plain, full = parsed("distributions", plugin=[row, rich]).plugins.values()

    assert plain == ("AExecutionProvider", "12", (), ())
    assert full == ("B", "13", ("8.0",), ())


def test_a_distribution() -> None:
    release = {"version": "9.1", "platform": "linux_x86_64", "size": 5, "sha256": "aa", "file": "n"}
    block = {"platform": "linux_x86_64", "versions": ["9.1"], "libraries": {"libcudnn.so.9": "p"}}
    code = {"platform": "linux_x86_64", "first": "9.0", "last": "9.1", "sass": ["8.0"], "ptx": []}
    rows = [
        {
            "name": "nvidia-cudnn-cu12",
            "cuda": "12",
            "releases": [release],
            "files": [block, {**block, "links": ["libz.so"], "loads": ["libcublas.so.12"]}],
            "code": [code],
        },
        {
            "name": "nvidia-cudnn-cu13",
            "cuda": "13",
            "releases": [],
            "files": [block],
        },
        {"name": "nvidia-other", "cuda": "12", "releases": []},
    ]
    found = parsed("nvidia", distribution=rows)
    cudnn = found.distributions["nvidia-cudnn-cu12"]
    bare, full = cudnn.contents

    assert (cudnn.name, cudnn.cuda) == ("nvidia-cudnn-cu12", "12")
    assert [(one.name, one.version) for one in cudnn.releases] == [("nvidia-cudnn-cu12", "9.1")]
    assert (bare.platform, bare.versions) == ("linux_x86_64", frozenset(["9.1"]))
    assert (bare.libraries, bare.links, bare.loads) == ({"libcudnn.so.9": "p"}, (), ())
    assert (full.links, full.loads) == (("libz.so",), ("libcublas.so.12",))
    assert [tuple(one) for one in cudnn.code] == [("linux_x86_64", "9.0", "9.1", ("8.0",), ())]
    assert found.distributions["nvidia-other"].contents == ()
    assert found.distributions["nvidia-other"].code == ()
    assert found.providers == {
        ("12", "libcudnn.so.9"): "nvidia-cudnn-cu12",
        ("13", "libcudnn.so.9"): "nvidia-cudnn-cu13",
    }


def test_a_toolkit_and_its_ranges() -> None:
    parts = {"nvidia-cublas": "13.1"}
    bare, full = parsed(
        "toolkits",
        toolkit=[
            {"version": "12.8", "components": parts},
            {"version": "13.0", "components": parts, "ranges": {"nvidia-cublas": ">=13"}},
        ],
    ).toolkits

    assert (bare.version, bare.components, bare.ranges) == ("12.8", parts, {})
    assert full.ranges == {"nvidia-cublas": ">=13"}


def test_what_is_known_of_drivers() -> None:
    found = parsed(
        "drivers",
        floor=[{"cuda": "12", "linux": "525.60.13", "windows": "528.33"}, {"cuda": "11"}],
        toolkit=[{"cuda": "12.8", "linux": "570.26"}],
        branch=[{"branch": 570, "cuda": "12.8"}],
        first=[{"capability": "10.0", "branch": 570}],
        last=[{"below": "5.0", "branch": 470}],
        forward=[{"package": "cuda-compat-13-0", "cuda": "13.0", "branches": [535, 570]}],
        data_center=[{"names": ["NVIDIA A10", "NVIDIA L4"]}, {"names": ["NVIDIA H100"]}],
    )

    assert [tuple(row) for row in found.floors] == [
        ("12", "525.60.13", "528.33"),
        ("11", None, None),
    ]
    assert [tuple(row) for row in found.toolkit_drivers] == [("12.8", "570.26", None)]
    assert found.branches == {570: "12.8"}
    assert [tuple(row) for row in found.first_branches] == [("10.0", 570)]
    assert [tuple(row) for row in found.last_branches] == [("5.0", 470)]
    assert [tuple(row) for row in found.forward] == [("cuda-compat-13-0", "13.0", (535, 570))]
    assert found.data_center == {"NVIDIA A10", "NVIDIA L4", "NVIDIA H100"}


def test_who_owns_which_folder_and_which_index_has_builds() -> None:
    found = parsed(
        "distributions",
        owner=[
            {"name": "onnxruntime"},
            {"name": "onnxruntime-x", "provider": "X", "plugin_since": "2.0"},
        ],
        shared=[
            {"folder": "nvidia/cudnn", "distributions": ["a", "b"], "files": ["libcudnn.so.9"]},
            {"folder": "nvidia/nccl", "distributions": ["a", "b"], "files": []},
        ],
        feed=[{"cuda": "13", "url": "https://f.example", "first": "1.24.0", "platforms": [ARM]}],
        conda=[
            {"platform": ARM, "cuda": "12", "version": "1.26.0", "build": "c", "capability": "7.0"}
        ],
    )

    assert found.owners == {"onnxruntime", "onnxruntime-x"}
    assert found.own_providers == {"onnxruntime-x": "X"}
    assert found.plugin_since == {"onnxruntime-x": "2.0"}
    assert found.shared == {"nvidia/cudnn": ("a", "b")}
    assert found.feeds == (Feed("13", "https://f.example", "1.24.0", (ARM,)),)
    assert found.conda_builds == (CondaBuild(ARM, "12", "1.26.0", "c", "7.0"),)


def test_limits_and_what_others_need() -> None:
    limit = {"onnxruntime": "<1.19", "name": "numpy", "requires": "<2", "source": "x"}
    row = {"name": "cupy", "platform": "linux_x86_64", "first": "12", "last": "13", "needs": ["l"]}
    full = {**row, "cuda": "12", "cudnn": "9"}
    other = {**row, "name": "jax", "needs": []}
    consumers = parsed("consumers", consumer=[row, other, full]).consumers

    assert [tuple(one) for one in parsed("limits", limit=[limit]).limits] == [
        ("<1.19", "numpy", "<2"),
    ]
    assert [tuple(one) for one in consumers["cupy"]] == [
        ("cupy", "linux_x86_64", "12", "13", None, None, ("l",)),
        ("cupy", "linux_x86_64", "12", "13", "12", "9", ("l",)),
    ]
    assert [one.needs for one in consumers["jax"]] == [()]


@pytest.mark.parametrize("name", sorted(tables()))
def test_a_table_that_is_not_there_is_named(name: str) -> None:
    whole = tables()
    del whole[name]

    with pytest.raises(Error) as caught:
        parse(whole, "sha256:x")

    assert (caught.value.code, caught.value.values["file"]) == ("matrix-invalid", f"{name}.toml")


@pytest.mark.parametrize("row", [None, "text", {}, []])
def test_a_row_that_does_not_fit_names_its_file(row: object) -> None:
    with pytest.raises(Error) as caught:
        parsed("nvidia", distribution=[row])

    assert (caught.value.code, caught.value.values["file"]) == ("matrix-invalid", "nvidia.toml")


def test_what_cannot_be_a_key_names_its_file() -> None:
    whole = synthetic.tables()
    whole["nvidia"]["distribution"][0]["cuda"] = ["12"]

    with pytest.raises(Error) as caught:
        parse(whole, "sha256:x")

    assert (caught.value.code, caught.value.values["file"]) == ("matrix-invalid", "nvidia.toml")


@pytest.mark.parametrize(
    "row",
    [
        *(None, "text", {}),
        {"version": "2.12.0", "platform": "linux_x86_64", "cuda": 13.0, "wheels": [WHEEL]},
    ],
)
def test_a_torch_row_that_does_not_fit_names_its_file(row: object) -> None:
    matrix = parse(tables(), "sha256:x")

    with pytest.raises(Error) as caught:
        with_torch(matrix, {"torch": [row], "variant": [], "companion": []})

    assert (caught.value.code, caught.value.values["file"]) == ("matrix-invalid", "torch.toml")


def test_torch_is_added_with_the_parts_of_the_toolkits() -> None:
    matrix = parsed(
        "toolkits",
        toolkit=[
            {
                "version": "13.0.2",
                "components": {"nvidia-cublas": "13.1", "nvidia-nvrtc": "13.0.88"},
                "ranges": {"nvidia-nvrtc": ">=13.0.88,<14"},
            },
        ],
    )
    row = {
        "version": "2.12.0",
        "platform": "linux_x86_64",
        "cuda": "13.0",
        "requires": ["cuda-toolkit[cublas]==13.0.2"],
        "wheels": [WHEEL],
    }
    found = with_torch(matrix, {"torch": [row], "variant": [], "companion": []})

    assert found.torch.builds[0].pins == ("nvidia-cublas==13.1",)
    assert found.toolkits == matrix.toolkits


def test_what_is_in_a_release_is_looked_up_by_version_and_platform() -> None:
    whole = synthetic.tables()
    kinds = whole["nvidia"]["distribution"]
    [table] = [row for row in kinds if row["name"] == "nvidia-cudnn-cu12"]
    for rows in (table["files"], table["code"]):
        rows[:0] = [{**row, "platform": "windows_x86_64"} for row in rows]
    cudnn = parse(whole, "").distributions["nvidia-cudnn-cu12"]
    found = {
        row.version: (libraries_of(cudnn, row), row_of(cudnn.code, row)) for row in cudnn.releases
    }

    assert found["8.9.7"] == (None, None)
    for version, last in (("9.1.0", "9.10.2"), ("9.10.2", "9.10.2"), ("9.28.0", "9.28.0")):
        libraries, code = found[version]
        assert libraries is not None
        assert code is not None
        assert (libraries.platform, code.platform) == ("linux_x86_64", "linux_x86_64")
        assert code.last == last
