"""What gives onnxruntime the GPU by another way than onnxruntime-gpu is judged, and completed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ortgpu_fix.data_files import example_machine
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import INSTALLED
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.reasons import Named
from ortgpu_fix.resolve.onnxruntime_installed import find_onnxruntime, with_installed_owners
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve, resolve_for_check

Facts = dict[str, Any]
MATRIX = load_matrix()
NOTHING = PlanOptions()
RTX = "onnxruntime-ep-nv-tensorrt-rtx-cu13"
TRAINING = {
    "links": [
        *("libcublas.so.11", "libcublasLt.so.11", "libcudart.so.11.0", "libcudnn.so.8"),
        *("libcufft.so.10", "libcurand.so.10"),
    ],
    "names": ["libcuda.so.1"],
    "sass": ["6.0", "6.1", "7.0", "7.5", "8.0", "8.6"],
    "ptx": ["6.0", "6.1", "7.0", "7.5", "8.0", "8.6"],
}
"""Read from onnxruntime_training-1.19.2-cp311-cp311-manylinux_2_27_x86_64.whl."""
EXTENDED = {
    "links": [
        *("libcublas.so.12", "libcublasLt.so.12", "libcudart.so.12", "libcudnn.so.9"),
        "libcufft.so.11",
    ],
    "names": ["libcuda.so.1"],
    "sass": ["8.7"],
    "ptx": [],
    "preload_dlls": True,
}
"""Read from onnxruntime_gpu_extended-1.23.2.12.9-cp312-cp312-manylinux_2_34_aarch64.whl."""
GH200 = {
    "platform": {"system": "linux", "machine": "aarch64", "libc": "glibc 2.35"},
    "driver": {"version": "570.86.15", "cuda": "12.8"},
    "gpus": [{"name": "NVIDIA GH200 480GB", "compute_capability": "9.0"}],
}


def having(*packages: str, **more: Any) -> Facts:
    """Return an example machine; the first package is what the folder is."""
    facts: Facts = json.loads(json.dumps(example_machine()))
    named = [text.split() for text in packages]
    folder = {"distribution": named[0][0], "version": named[0][1], **more.pop("folder", {})}
    facts["packages"] = [{"name": name, "version": version} for name, version in named]
    return facts | {"onnxruntime": {"intact": True, **folder}} | more


def plan(facts: Facts, **options: Any) -> Plan:
    return resolve(from_json(facts), PlanOptions(**options), MATRIX)


def names(made: Plan) -> list[str]:
    return [row.name for row in made.install]


NEW = {
    "driver": {"version": "580.95.05", "cuda": "13.0"},
    "gpus": [{"name": "NVIDIA A10", "compute_capability": "8.6"}],
}
RUNTIME = {"libraries": [{"name": "libcudart.so.13", "path": "/usr/lib/libcudart.so.13"}]}
PLUGIN = having("onnxruntime 1.31.1", f"{RTX} 0.5.0", **NEW, **RUNTIME)
CUDA_PLUGIN = having("onnxruntime 1.32.0", "onnxruntime-ep-cuda12 0.1.0")
WITHIN = having("onnxruntime 1.32.0", folder={"provider": EXTENDED | {"sass": ["8.0"]}})
OF_TRAINING = having("onnxruntime-training 1.19.2", folder={"cuda": "11.8", "provider": TRAINING})


def with_package(facts: Facts, at: int, **change: Any) -> Facts:
    copy: Facts = json.loads(json.dumps(facts))
    copy["packages"][at] |= change
    return copy


def test_a_plugin_that_brings_its_libraries_is_whole() -> None:
    made = plan(PLUGIN)

    assert (made.verdict, made.uninstall, made.install, made.companions) == ("healthy", (), (), ())
    assert made.build == Named("onnxruntime", "1.31.1")
    assert [row.code for row in made.findings] == ["plugin-provider", "system-library"]
    assert dict(made.findings[0].values) == {
        "by": Named(RTX, "0.5.0"),
        "provider": "NvTensorRTRTXExecutionProvider",
    }
    assert {(row.name, row.index_url) for row in made.selection} == {
        ("onnxruntime", INSTALLED),
        (RTX, INSTALLED),
    }
    assert resolve_for_check(from_json(PLUGIN), NOTHING, MATRIX).verdict == "healthy"


def test_what_it_does_not_bring_by_its_name_comes_from_nvidia() -> None:
    """The wheel for Linux has `libcudart.so.13.4.36`, and the loader looks for libcudart.so.13."""
    made = plan(PLUGIN | {"libraries": []})
    windows = plan(
        PLUGIN | {"libraries": [], "platform": {"system": "windows", "machine": "x86_64"}}
    )

    assert (made.verdict, made.uninstall) == ("fixable", ())
    assert [(row.name, row.version) for row in made.install] == [("nvidia-cuda-runtime", "13.4.92")]
    assert [row.name for row in made.companions] == ["ortgpu-fix-libraries"]
    assert (windows.verdict, windows.install) == ("healthy", ())


def test_one_that_brings_none_gets_those_of_its_cuda() -> None:
    made = plan(CUDA_PLUGIN)

    assert (made.verdict, made.uninstall, made.cuda) == ("fixable", (), "12")
    assert {"nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-cufft-cu12"} <= set(names(made))
    assert not any(name.startswith("onnxruntime") for name in names(made))
    assert [row.name for row in made.companions] == ["ortgpu-fix-libraries"]
    assert [row.code for row in made.findings] == [
        *("library-missing", "plugin-provider", "unknown-release")
    ]
    assert made.unlock == ()
    assert resolve_for_check(from_json(CUDA_PLUGIN), NOTHING, MATRIX).verdict == "fixable"


def test_what_was_read_of_a_plugin_goes_before_what_is_known_of_its_name() -> None:
    read = {"links": ["libcudart.so.12"], "names": [], "sass": ["8.0"], "ptx": []}

    assert names(plan(with_package(CUDA_PLUGIN, 1, provider=read))) == ["nvidia-cuda-runtime-cu12"]
    other = having("onnxruntime 1.32.0", "onnxruntime-ep-other 1.0")
    assert names(plan(with_package(other, 1, provider=read))) == ["nvidia-cuda-runtime-cu12"]
    assert "onnxruntime-gpu" in names(plan(other))
    assert "onnxruntime-gpu" in names(plan(with_package(other, 1, provider={**read, "links": []})))
    lacking = with_package(CUDA_PLUGIN, 1, provider={**read, "sass": ["7.0"]})
    assert "onnxruntime-gpu" in names(plan(lacking))


def test_a_plugin_within_onnxruntime_is_completed() -> None:
    made = plan(WITHIN)

    assert (made.uninstall, made.cuda) == ((), "12")
    assert "nvidia-cudnn-cu12" in names(made)
    assert "onnxruntime-gpu" not in names(made)
    [kept] = [row for row in made.findings if row.code == "build-kept"]
    assert dict(kept.values)["by"] == Named("onnxruntime", "1.32.0")


def test_the_training_api_keeps_its_cuda_11() -> None:
    """It was taken out, with the only training API that there is, and the exit code was 0."""
    made = plan(OF_TRAINING)

    assert (made.verdict, made.uninstall, made.cuda) == ("fixable", (), "11")
    assert {"nvidia-cudnn-cu11", "nvidia-cublas-cu11"} <= set(names(made))
    assert made.build == Named("onnxruntime-training", "1.19.2")
    assert [row.name for row in made.companions] == ["ortgpu-fix-libraries", "onnxruntime"]
    told = {row.code for row in made.findings}
    assert not told & {"newer-works", "newer-for-another-cuda", "training-lost"}
    assert made.unlock == ()
    assert "training-lost" in {row.code for row in plan(OF_TRAINING, latest=True).findings}


def test_a_build_of_another_name_is_judged_by_its_code() -> None:
    """ "No onnxruntime-gpu works", and it "shares its folder with the GPU build", were all."""
    named = "onnxruntime-gpu-extended 1.23.2.12.9"
    facts = having(named, folder={"cuda": "12.6", "provider": EXTENDED}, **GH200)
    made = plan(facts)

    assert made.verdict == "impossible"
    assert [row.code for row in made.findings] == ["no-gpu-code", "unknown-release"]
    [why] = [row for row in made.rejected if row.package == "onnxruntime-gpu-extended"]
    assert (why.version, [row.code for row in why.reasons]) == ("1.23.2.12.9", ["no-gpu-code"])
    orin = plan(facts | {"gpus": [{"compute_capability": "8.7"}]})
    assert (orin.verdict, orin.uninstall) == ("fixable", ())


def test_whose_folder_it_is_counts_whatever_its_name() -> None:
    """The plan left it there, and the apply refused to write over what is its own."""
    name = "onnxruntime-mycompany"
    made = plan(having(f"{name} 1.22.0", "onnxruntime-extensions 0.13.0"))

    assert (made.verdict, made.uninstall) == ("fixable", (name,))
    [told] = [row for row in made.findings if row.code == "other-build-installed"]
    assert dict(told.values)["distribution"] == f"{name} 1.22.0"
    kept = plan(having(f"{name} 1.22.0", folder={"cuda": "12.6"}))
    assert (kept.build, kept.uninstall) == (Named(name, "1.22.0"), ())
    nameless = having("onnxruntime 1.22.0", folder={"distribution": None})
    for none in (nameless, nameless | {"onnxruntime": None}):
        assert with_installed_owners(from_json(none), MATRIX).owners == MATRIX.owners
    both = having(f"{name} 1.22.0", "onnxruntime-directml 1.22.0")
    assert plan(both).uninstall == tuple(sorted([name, "onnxruntime-directml"]))


@pytest.mark.parametrize(
    ("version", "uninstall"),
    [("1.24.4", ("onnxruntime", "onnxruntime-qnn")), ("2.0.0", ("onnxruntime",))],
)
def test_what_became_a_plugin_stays(version: str, uninstall: tuple[str, ...]) -> None:
    """onnxruntime-qnn 2.7.0 was removed as another build in the folder: it has its own."""
    made = plan(having("onnxruntime 1.24.4", f"onnxruntime-qnn {version}"))

    assert (made.verdict, made.uninstall) == ("fixable", uninstall)
    others = [row for row in made.findings if row.code == "other-build-installed"]
    assert len(others) == len(uninstall) - 1


def test_what_cannot_work_is_told_and_replaced() -> None:
    facts = having("onnxruntime 1.31.1", f"{RTX} 0.5.0")  # the driver runs CUDA 12
    made = plan(facts)

    assert made.uninstall == ("onnxruntime",)
    [why] = [row for row in made.findings if row.code == "driver-too-old"]
    assert dict(why.values)["build"] == Named(RTX, "0.5.0")
    assert {"cpu-build-installed", "gpu-build-missing", "plugin-provider"}.isdisjoint(
        row.code for row in made.findings
    )
    assert not any(gain.version == "1.31.1" and "ep" in gain.name for row in made.unlock
                   for gain in row.gains)  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [{"latest": True}, {"cuda": "13"}, {"providers": True}],
)
def test_it_gives_way_to_a_wish(options: dict[str, Any]) -> None:
    assert "onnxruntime-gpu" in names(plan(PLUGIN, **options))


@pytest.mark.parametrize(
    "facts",
    [
        having("onnxruntime 1.31.1"),
        having("onnxruntime 1.31.1", f"{RTX} 0.5.0", "onnxruntime-directml 1.24.0"),
        having("onnxruntime 1.31.1", f"{RTX} 0.5.0", folder={"intact": False}),
        having("onnxruntime 1.31.1", f"{RTX} 0.5.0", folder={"distribution": "onnxruntime-gpu"}),
        with_package(PLUGIN, 0, provided=True),
        with_package(PLUGIN, 0, outside=True),
        with_package(PLUGIN, 1, intact=False),
        having("ort-nightly-gpu 1.19.2"),
    ],
)
def test_what_is_not_whole_or_not_alone_is_none(facts: Facts) -> None:
    assert find_onnxruntime(from_json(facts), MATRIX, NOTHING) is None


def test_without_a_gpu_nothing_is_promised_and_a_change_is_rolled_back_first() -> None:
    assert plan(PLUGIN | {"gpus": []}).verdict == "impossible"
    unfinished = PLUGIN | {"python": PLUGIN["python"] | {"change": "unfinished"}}
    assert plan(unfinished).verdict == "fixable"


def listed(*packages: str, **more: Any) -> Facts:
    """Return a machine of which a list of names is all that is known of the packages."""
    facts = having(*packages, **more)
    del facts["onnxruntime"]
    return facts


ORIN = GH200 | {"gpus": [{"compute_capability": "8.7"}]}


@pytest.mark.parametrize(
    ("facts", "cuda", "told"),
    [
        (listed("onnxruntime-gpu-extended 1.23.2.12.9", **ORIN), "12", ["build-kept"]),
        (
            listed("onnxruntime-gpu-extended 1.23.3", **ORIN),
            "12",
            ["build-kept", "unknown-release"],
        ),
        (listed(f"{RTX} 0.5.0", "onnxruntime 1.32.0", **NEW), "13", ["plugin-provider"]),
    ],
)
def test_what_is_known_by_name_is_kept_without_its_files(
    facts: Facts, cuda: str, told: list[str]
) -> None:
    """A list of `pip list` was answered with 1.6 GB of another build, and "the CPU build"."""
    made = plan(facts)

    assert (made.verdict, made.uninstall, made.cuda) == ("fixable", (), cuda)
    assert not any(name.startswith("onnxruntime") for name in names(made))
    assert [row.code for row in made.findings if row.severity == "info"] == told
