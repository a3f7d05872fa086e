"""`--provider tensorrt`: which release, which wheel of TensorRT, and what goes."""

from __future__ import annotations

from typing import Any

import pytest
from told import values_of

import synthetic
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve, resolve_for_check

MATRIX = synthetic.matrix()
SET = ("onnxruntime-gpu 1.26.0", "nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0")
WHOLE = (*SET, "numpy 2.2.6", "flatbuffers 25.0")
LIBS = "tensorrt-cu12-libs"
NVINFER = {"name": "libnvinfer.so.10", "path": "/opt/trt/lib/libnvinfer.so.10"}


def planned(*packages: Any, provider: str = "tensorrt", **machine: Any) -> Plan:
    wishes = {key: machine.pop(key) for key in ("ort", "index") if key in machine}
    options = PlanOptions(provider=provider, onnxruntime=wishes.get("ort", ""))
    if "index" in wishes:
        options = options._replace(tensorrt_index=wishes["index"])
    return resolve(synthetic.facts(*packages, **machine), options, MATRIX)


def tensorrt_of(made: Plan) -> Wheel | None:
    return next((row for row in made.selection if row.name.startswith("tensorrt")), None)


def reasons(made: Plan, version: str) -> list[tuple[str, dict[str, Any]]]:
    rows = [why for row in made.rejected if row.version == version for why in row.reasons]
    return [(why.code, dict(why.values)) for why in rows]


@pytest.mark.parametrize(
    ("driver", "release", "name"),
    [("12.2", "1.26.0", LIBS), ("13.0", "1.31.0", "tensorrt-cu13-libs")],
)
def test_the_newest_of_the_major_that_the_release_links_comes_along(
    driver: str, release: str, name: str
) -> None:
    made = planned(driver=driver)

    assert made.release == release
    expected = Wheel(name, "10.16.1", "https://pypi.nvidia.com", file="", size=0, sha256="")
    assert tensorrt_of(made) == expected
    assert expected in made.install
    (told,) = [row for row in made.findings if row.code.startswith("tensorrt")]
    assert (told.code, told.severity) == ("tensorrt-missing", "error")
    assert values_of(told) == {
        "version": release,
        "library": "libnvinfer.so.10",
        "wheel": f"{name} 10.16.1",
        "index": "https://pypi.nvidia.com",
    }
    for language in ("en", "zh"):
        texts = load_texts(language)
        assert f"{name} 10.16.1" in texts.summary(told)
        assert "https://pypi.nvidia.com" in texts.remedy(told)
        assert not texts.is_for_user(told)


def test_a_mirror_is_asked_in_place_of_nvidia_s_index() -> None:
    wheel = tensorrt_of(planned(index="https://mirror.example/nvidia/"))

    assert wheel is not None
    assert wheel.index_url == "https://mirror.example/nvidia"


def test_without_the_wish_there_is_none() -> None:
    made = planned(provider="cuda")

    assert tensorrt_of(made) is None
    assert not [row for row in made.findings if row.code.startswith("tensorrt")]


def test_an_installed_one_of_the_right_major_is_kept() -> None:
    made = planned(*WHOLE, f"{LIBS} 10.3.0")

    wheel = tensorrt_of(made)
    assert wheel is not None
    assert (wheel.version, wheel in made.install) == ("10.3.0", False)
    assert (made.verdict, made.install, made.uninstall) == ("healthy", (), ())


@pytest.mark.parametrize(
    "installed",
    [f"{LIBS} 11.4.0", {"name": LIBS, "version": "10.3.0", "intact": False}],
)
def test_one_of_another_major_or_a_damaged_one_is_replaced(installed: Any) -> None:
    made = planned(*WHOLE, installed)

    assert [(row.name, row.version) for row in made.install] == [(LIBS, "10.16.1")]
    assert (made.verdict, made.uninstall) == ("fixable", ())
    codes = [row.code for row in made.findings if row.code.startswith("tensorrt")]
    assert codes == ["tensorrt-missing"]


def test_those_that_own_the_same_folder_go() -> None:
    """What needs them is named by the finding that all plans have for it."""
    others = ("tensorrt-cu13-libs 11.4.0", "tensorrt-libs 9.3.0", "tensorrt-cu13-bindings 11.4.0")
    meta = {"name": "tensorrt-cu13", "version": "11.4.0", "requires": ["tensorrt_cu13_libs==11.4"]}

    made = planned(*WHOLE, *others, meta)

    assert made.uninstall == ("tensorrt-cu13-libs", "tensorrt-libs")
    assert {row.code for row in made.findings} >= {"shared-folder", "would-conflict"}
    assert "orphans-leave" not in {row.code for row in made.findings}
    assert made.allowances == ("conflicts",)


def test_the_library_of_the_system_serves() -> None:
    made = planned(*WHOLE, libraries=[NVINFER])

    assert made.verdict == "healthy"
    assert tensorrt_of(made) is None


def test_a_release_whose_tensorrt_no_wheel_brings_is_rejected() -> None:
    made = planned(ort="==1.18.0", driver="11.8")

    assert made.verdict == "impossible"
    codes = dict(reasons(made, "1.18.0"))
    assert codes["tensorrt-no-wheel"] == {"library": "libnvinfer.so.8", "cuda": "11"}


def test_a_system_library_makes_up_for_a_wheel_that_is_not_known() -> None:
    made = planned(ort="==1.18.0", driver="11.8", libraries=[{"name": "libnvinfer.so.8"}])

    assert made.release == "1.18.0"


def test_a_build_without_a_tensorrt_provider_is_rejected() -> None:
    builds = tuple(
        row._replace(tensorrt=None) if row.version == "1.26.0" else row for row in MATRIX.builds
    )
    made = resolve(
        synthetic.facts(), PlanOptions(provider="tensorrt"), MATRIX._replace(builds=builds)
    )

    assert ("tensorrt-no-provider", {}) in reasons(made, "1.26.0")
    assert made.release == "1.23.0"


@pytest.mark.parametrize(("gpus", "rejected"), [(("7.5",), False), (("7.5", "7.0"), True)])
def test_every_gpu_must_be_one_that_it_supports(gpus: tuple[str, ...], *, rejected: bool) -> None:
    made = planned(ort="==1.26.0", gpus=gpus, driver="12.8")

    told = dict(reasons(made, "1.26.0")).get("tensorrt-gpu-too-old")
    wheel = f"{LIBS} 10.16.1"
    assert told == ({"gpu": "7.0", "floor": "7.5", "wheel": wheel} if rejected else None)


@pytest.mark.parametrize(
    ("libc", "packages", "told"),
    [
        ("glibc 2.28", (), False),
        ("glibc 2.27", (), True),
        ("glibc 2.27", (f"{LIBS} 10.3.0",), False),
    ],
)
def test_a_new_wheel_needs_its_glibc(libc: str, packages: tuple[str, ...], *, told: bool) -> None:
    builds = tuple(row._replace(glibc="2.17") for row in MATRIX.builds)
    platform = {"system": "linux", "machine": "x86_64", "libc": libc}
    made = resolve(
        synthetic.facts(*packages, platform=platform),
        PlanOptions(provider="tensorrt", onnxruntime="==1.26.0"),
        MATRIX._replace(builds=builds),
    )

    assert [values for code, values in reasons(made, "1.26.0") if code == "glibc-too-old"] == (
        [{"glibc": "2.28", "libc": libc}] if told else []
    )


@pytest.mark.parametrize(
    ("packages", "verdict"), [((), "fixable"), ((f"{LIBS} 10.3.0",), "healthy")]
)
def test_a_check_agrees(packages: tuple[str, ...], verdict: str) -> None:
    facts = synthetic.facts(*WHOLE, *packages)

    checked = resolve_for_check(facts, PlanOptions(provider="tensorrt"), MATRIX)

    assert checked.verdict == verdict
