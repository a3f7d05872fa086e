"""`--provider tensorrt-rtx`: a plain onnxruntime with NVIDIA's plugin, and what it costs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from ortgpu_fix.data_files import example_machine
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import INSTALLED, Matrix
from ortgpu_fix.plan.model import Alternative, Plan
from ortgpu_fix.plan.reasons import Named
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import alternatives, resolve, resolve_for_check

Facts = dict[str, Any]
MATRIX = load_matrix()
STEM = "onnxruntime-ep-nv-tensorrt-rtx-cu"
OLD = {"version": "535.104.12", "cuda": "12.2"}
NEW = {"version": "580.95.05", "cuda": "13.0"}
WINDOWS = {"system": "windows", "machine": "x86_64"}
PROVIDER = "NvTensorRTRTXExecutionProvider"


def machine(*packages: str, driver: Facts | None = None, **more: Any) -> Facts:
    """Return the example machine with an A10 and these packages; the first has the folder."""
    facts: Facts = json.loads(json.dumps(example_machine()))
    named = [text.split() for text in (*packages, "numpy 2.2.6", "flatbuffers 25.2.10")]
    named += [["packaging", "25.0"], ["protobuf", "5.29.0"]]
    facts["packages"] = [{"name": name, "version": version} for name, version in named]
    folder = dict(zip(("distribution", "version"), named[0], strict=True)) if packages else None
    facts["onnxruntime"] = folder and {"intact": True, **folder}
    gpus = [{"name": "NVIDIA A10", "compute_capability": "8.6"}]
    return facts | {"driver": driver or NEW, "gpus": gpus, **more}


def plan(facts: Facts, matrix: Matrix = MATRIX, **options: Any) -> Plan:
    asked = PlanOptions(provider="tensorrt-rtx", **options)
    made = resolve(from_json(facts), asked, matrix)
    assert resolve_for_check(from_json(facts), asked, matrix).verdict == made.verdict
    return made


def rows(made: Plan) -> list[str]:
    return [f"{row.name} {row.version}" for row in made.install]


def codes(made: Plan) -> list[str]:
    return [row.code for row in made.findings]


@pytest.mark.parametrize(
    ("driver", "cuda", "runtime"),
    [(OLD, "12", "nvidia-cuda-runtime-cu12 12.9.79"), (NEW, "13", "nvidia-cuda-runtime 13.4.92")],
)
def test_the_one_for_the_cuda_of_the_driver_comes_whole(
    driver: Facts, cuda: str, runtime: str
) -> None:
    made = plan(machine(driver=driver))

    assert (made.verdict, made.uninstall, made.cuda) == ("fixable", (), cuda)
    assert rows(made) == [runtime, "onnxruntime 1.32.0", f"{STEM}{cuda} 0.5.0"]
    assert all(len(row.sha256) == 64 and row.size and row.file for row in made.install)
    assert all(row.index_url == "pypi" for row in made.install)
    assert "-cp311-" in next(row.file for row in made.install if row.name == "onnxruntime")
    assert [row.name for row in made.companions] == ["ortgpu-fix-libraries"]
    assert codes(made) == ["plugin-missing", "library-missing"]
    missing = made.findings[0]
    assert (missing.severity, dict(missing.values)) == (
        "error",
        {"by": Named(f"{STEM}{cuda}", "0.5.0"), "provider": PROVIDER},
    )
    assert made.build == Named("onnxruntime", "1.32.0")
    assert made.unlock == ()
    assert made.requires == ()


def test_windows_wheels_bring_all_under_their_names() -> None:
    made = plan(machine("onnxruntime 1.31.1", platform=WINDOWS))
    cu12 = plan(machine(platform=WINDOWS, driver={"version": "551.61", "cuda": "12.4"}))

    assert rows(made) == ["msvc-runtime 14.44.35112", f"{STEM}13 0.5.0"]
    assert made.install[1].file.endswith("-win_amd64.whl")
    assert made.uninstall == ()
    assert rows(cu12) == ["msvc-runtime 14.44.35112", "onnxruntime 1.32.0", f"{STEM}12 0.5.0"]


def test_an_installed_onnxruntime_stays_where_the_plugin_works_with_it() -> None:
    made = plan(machine("onnxruntime 1.26.0"))
    old = plan(machine("onnxruntime 1.22.1"))

    assert rows(made) == ["nvidia-cuda-runtime 13.4.92", f"{STEM}13 0.5.0"]
    assert made.unlock == ()  # that the CUDA provider's release is newer unlocks nothing
    kept = {row.name: row.index_url for row in made.selection}
    assert kept["onnxruntime"] == INSTALLED
    assert "onnxruntime 1.32.0" in rows(old)
    assert old.uninstall == ()


@pytest.mark.parametrize(
    "change",
    [{"intact": False}, {"distribution": "onnxruntime-gpu"}, None],
)
def test_one_that_is_not_whole_is_replaced(change: Facts | None) -> None:
    facts = machine("onnxruntime 1.26.0")
    facts["onnxruntime"] = change and facts["onnxruntime"] | change

    assert "onnxruntime 1.32.0" in rows(plan(facts))


def test_the_gpu_build_goes_and_that_is_told() -> None:
    installed = ["onnxruntime-gpu 1.26.0", "onnxruntime 1.26.0"]
    facts = machine(*installed, "ortgpu-fix-libraries 1.26.0+set0123456789ab")
    facts["packages"][1]["provided"] = True
    made = plan(facts)

    assert made.uninstall == ("onnxruntime-gpu",)
    assert rows(made)[1:] == ["onnxruntime 1.32.0", f"{STEM}13 0.5.0"]
    assert [row.name for row in made.companions] == ["ortgpu-fix-libraries"]
    lost = next(row for row in made.findings if row.code == "cuda-lost")
    assert (lost.severity, dict(lost.values)) == ("warning", {"distribution": "onnxruntime-gpu"})
    assert made.allowances == ("provider",)
    assert "shared-folder" not in codes(made)
    assert plan(facts, providers=True).uninstall == made.uninstall


def test_what_loads_nothing_any_more_goes_too() -> None:
    """On Windows the plugin brings its CUDA runtime."""
    installed = ("onnxruntime-gpu 1.26.0", "ortgpu-fix-libraries 1.26.0+set0123456789ab")
    runtime = [{"name": "msvcp140.dll", "path": "C:/msvcp140.dll", "version": "14.44.35211"}]
    made = plan(machine(*installed, platform=WINDOWS, libraries=runtime))

    assert made.uninstall == ("onnxruntime-gpu", "ortgpu-fix-libraries")
    assert made.companions == ()
    assert rows(made) == ["onnxruntime 1.32.0", f"{STEM}13 0.5.0"]
    assert "shared-folder" not in codes(made)


def test_it_is_healthy_once_all_is_there() -> None:
    facts = machine("onnxruntime 1.31.1", f"{STEM}13 0.5.0", platform=WINDOWS)
    made = plan(facts)

    assert (made.verdict, made.install, made.uninstall) == ("healthy", (), ())
    assert codes(made) == ["plugin-ready"]
    assert dict(made.findings[0].values) == {
        "by": Named(f"{STEM}13", "0.5.0"),
        "provider": PROVIDER,
    }
    assert {row.name: row.index_url for row in made.selection} == {
        "onnxruntime": INSTALLED,
        f"{STEM}13": "pypi",
    }


def test_another_release_of_the_plugin_stays_too() -> None:
    made = plan(machine("onnxruntime 1.31.1", f"{STEM}12 0.6.0", platform=WINDOWS))

    assert (made.verdict, made.cuda) == ("healthy", "12")
    [row] = [row for row in made.selection if row.name == f"{STEM}12"]
    assert (row.version, row.index_url, row.file, row.size, row.sha256) == (
        *("0.6.0", INSTALLED, "", 0, ""),
    )


def test_the_plugin_for_a_cuda_that_the_driver_lacks_gives_way() -> None:
    facts = machine("onnxruntime 1.31.1", f"{STEM}13 0.5.0", driver=OLD)
    made = plan(facts)

    assert made.uninstall == (f"{STEM}13",)
    assert rows(made)[1:] == [f"{STEM}12 0.5.0"]
    facts["packages"][1]["intact"] = False
    assert plan(facts | {"driver": NEW}).uninstall == ()
    assert f"{STEM}13 0.5.0" in rows(plan(facts | {"driver": NEW}))


@pytest.mark.parametrize(
    ("change", "code", "judged"),
    [
        ({"driver": {"version": "470.82.01", "cuda": "11.4"}}, "driver-too-old", 2),
        ({"gpus": [{"compute_capability": "7.0"}]}, "no-gpu-code", 2),
        ({"gpus": [{"compute_capability": "7.5"}]}, "provider-refuses-gpu", 2),
        ({"gpus": []}, "no-gpu", 2),
        (
            {"platform": {"system": "linux", "machine": "aarch64", "libc": "glibc 2.31"}},
            "glibc-too-old",
            1,
        ),
    ],
)
def test_where_it_cannot_run_the_plugin_is_what_is_rejected(
    change: Facts, code: str, judged: int
) -> None:
    made = plan(machine(**change))

    assert made.verdict == "impossible"
    assert len(made.rejected) == judged
    assert all(row.package.startswith(STEM) and row.version == "0.5.0" for row in made.rejected)
    assert all(code in {why.code for why in row.reasons} for row in made.rejected)
    assert "gpu-build-missing" not in codes(made)


@pytest.mark.parametrize(
    ("change", "options", "expected"),
    [
        (
            {"driver": {"version": "470.82.01", "cuda": "11.4"}},
            {},
            [
                ("newer-driver", "525.60.13", f"{STEM}12 0.5.0"),
                ("newer-driver", "580.65.06", f"{STEM}13 0.5.0"),
                ("forward-compatibility", "cuda-compat-12-8", f"{STEM}12 0.5.0"),
                ("drop-wish", "--provider tensorrt-rtx", "onnxruntime-gpu 1.18.1"),
            ],
        ),
        (
            {"gpus": [{"compute_capability": "7.5"}, {"compute_capability": "8.6"}], "driver": OLD},
            {},
            [
                ("ignore-gpu", "7.5", f"{STEM}12 0.5.0"),
                ("drop-wish", "--provider tensorrt-rtx", "onnxruntime-gpu 1.26.0"),
            ],
        ),
        (
            {},
            {"onnxruntime": "==1.29.0"},
            [
                ("drop-wish", "--ort", f"{STEM}13 0.5.0"),
                ("drop-wish", "--provider tensorrt-rtx", "onnxruntime-gpu 1.29.0"),
            ],
        ),
    ],
)
def test_what_would_unlock_it_is_told_and_what_the_other_provider_has(
    change: Facts, options: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    unlocks = plan(machine(**change), **options).unlock
    found = [
        (row.change.code, row.change.values[0][1], f"{gain.name} {gain.version}")
        for row in unlocks
        for gain in row.gains
    ]

    assert found == expected


def test_an_index_is_asked_for_the_plugin_itself_where_a_package_excludes_the_onnxruntime() -> None:
    """The plugin has a version of its own, which no onnxruntime has."""
    facts = machine("onnxruntime 1.18.1")
    facts["packages"].append({"name": "app", "version": "2", "requires": ["onnxruntime<1.19"]})
    change = plan(facts).unlock[0].change

    assert dict(change.values)["command"] == f"pip install --dry-run app {STEM}13==0.5.0"


def test_wishes_hold() -> None:
    assert f"{STEM}12 0.5.0" in rows(plan(machine(), cuda="12"))
    assert "onnxruntime 1.32.0" in rows(plan(machine("onnxruntime 1.26.0"), latest=True))
    assert "onnxruntime 1.32.0" in rows(plan(machine("onnxruntime 1.26.0"), onnxruntime=">1.30"))
    assert "onnxruntime 1.32.0" not in rows(
        plan(machine("onnxruntime 1.26.0"), onnxruntime="<1.30")
    )
    none = plan(machine(), onnxruntime="==1.29.0")
    assert none.verdict == "impossible"
    assert "release-not-in-matrix" in codes(none)


def test_a_plugin_that_works_with_no_known_onnxruntime_is_no_way() -> None:
    wheels = tuple(row._replace(onnxruntime=SpecifierSet(">=2")) for row in MATRIX.plugin_wheels)
    made = plan(machine(), MATRIX._replace(plugin_wheels=wheels), onnxruntime=">=2")

    assert (made.verdict, made.rejected) == ("impossible", ())
    [unknown] = [row for row in made.findings if row.code == "release-not-in-matrix"]
    assert dict(unknown.values)["newest"] == "-"


def test_it_is_told_as_another_way_only_where_it_is_one() -> None:
    facts, cuda = from_json(machine(driver=OLD)), PlanOptions()
    [way] = alternatives(facts, cuda, MATRIX)
    size = sum(row.size for row in plan(machine(driver=OLD)).install)

    assert way == Alternative("tensorrt-rtx", Named(f"{STEM}12", "0.5.0"), size)
    assert alternatives(facts, PlanOptions(provider="tensorrt"), MATRIX) == ()
    assert alternatives(facts, PlanOptions(provider="tensorrt-rtx"), MATRIX) == ()
    assert alternatives(from_json(machine(gpus=[])), cuda, MATRIX) == ()
    there = machine("onnxruntime 1.31.1", f"{STEM}13 0.5.0")
    assert alternatives(from_json(there), cuda, MATRIX) == ()
    healthy = machine("onnxruntime 1.31.1", f"{STEM}13 0.5.0", platform=WINDOWS)
    assert alternatives(from_json(healthy), cuda, MATRIX) == ()
