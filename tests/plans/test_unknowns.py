"""What the matrix does not hold is judged by what is seen of it, and kept where that fits.

The machines are facts as `ortgpu-fix facts` writes them: a healthy environment, with one thing in
it that no table has. What must come out was decided for each by hand.
"""

from __future__ import annotations

from typing import Any

import pytest
from told import gains, values_of

from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = load_matrix()
CU13, OLD = "nvidia/cu13/lib", "nvidia"
CUDA_13 = {
    "nvidia-cublas": ("13.1.1.3", [f"{CU13}/libcublas.so.13", f"{CU13}/libcublasLt.so.13"]),
    "nvidia-cuda-nvrtc": ("13.0.88", [f"{CU13}/libnvrtc.so.13"]),
    "nvidia-cuda-runtime": ("13.0.96", [f"{CU13}/libcudart.so.13"]),
    "nvidia-cudnn-cu13": ("9.28.0.42", [f"{OLD}/cudnn/lib/libcudnn.so.9"]),
    "nvidia-cufft": ("12.0.0.61", [f"{CU13}/libcufft.so.12"]),
    "nvidia-curand": ("10.4.0.35", [f"{CU13}/libcurand.so.10"]),
    "nvidia-nvjitlink": ("13.0.88", [f"{CU13}/libnvJitLink.so.13"]),
}
"""The set of CUDA 13.0 and the libraries in it, as they lie in the wheels."""
CUDA_12 = {
    "nvidia-cublas-cu12": "12.8.5.5",
    "nvidia-cuda-nvrtc-cu12": "12.8.93",
    "nvidia-cuda-runtime-cu12": "12.8.90",
    "nvidia-cudnn-cu12": "9.28.0.42",
    "nvidia-cufft-cu12": "11.3.3.83",
    "nvidia-curand-cu12": "10.3.9.90",
    "nvidia-nvjitlink-cu12": "12.8.93",
}
NEWER = {
    "nvidia-cublas": "13.11.0.7",
    "nvidia-cuda-nvrtc": "13.6.12",
    "nvidia-cuda-runtime": "13.6.12",
    "nvidia-cudnn-cu13": "9.29.0.10",
    "nvidia-cufft": "12.6.0.9",
    "nvidia-curand": "10.4.6.3",
    "nvidia-nvjitlink": "13.6.12",
}
ORDINARY = {"flatbuffers": "25.2.10", "numpy": "2.2.6", "packaging": "25.0", "protobuf": "6.31.1"}
PROVIDER_13 = {
    "links": [
        *("libcublas.so.13", "libcublasLt.so.13", "libcuda.so.1"),
        *("libcudart.so.13", "libcurand.so.10"),
    ],
    "names": ["libcudart.so.12", "libcudnn.so.9", "libcufft.so.12", "libnvrtc.so.13"],
    "sass": ["7.5", "8.0", "8.6", "8.9", "9.0a", "12.0a"],
    "ptx": [],
    "preload_dlls": True,
}
"""What the provider of 1.31.1 for Linux says of itself."""


def environment(
    ort: str = "1.31.1",
    cuda: str = "13.0",
    *,
    wheels: dict[str, str] | None = None,
    seen: dict[str, list[str]] | None = None,
    provider: dict[str, Any] | None = None,
    gpu: str = "8.9",
    others: tuple[dict[str, Any], ...] = (),
    python: str = "3.11.7",
    driver: str = "13.0",
) -> dict[str, Any]:
    """Return the facts of a machine whose environment holds `wheels` (the set of CUDA 13.0).

    `seen` are the libraries of wheels that the matrix lacks, by name.
    """
    wheels = {name: row[0] for name, row in CUDA_13.items()} if wheels is None else wheels
    rows = [
        {"name": name, "version": version, **({"libraries": seen[name]} if name in seen else {})}
        for seen in [seen or {}]
        for name, version in wheels.items()
    ]
    ordinary = [{"name": name, "version": version} for name, version in ORDINARY.items()]
    requires = ["flatbuffers", "numpy>=1.21.6", "packaging", "protobuf"]
    build = {"distribution": "onnxruntime-gpu", "version": ort, "cuda": cuda, "intact": True}
    return {
        "schema": 1,
        "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"},
        "driver": {"version": "580.82.07", "cuda": driver},
        "gpus": [{"name": "A GPU", "compute_capability": gpu}],
        "python": {"version": python},
        "packages": [
            {"name": "onnxruntime-gpu", "version": ort, "requires": requires},
            *rows,
            *ordinary,
            *others,
        ],
        "onnxruntime": build | ({"provider": provider} if provider else {}),
    }


def plan(document: dict[str, Any], **options: Any) -> Plan:
    return resolve(facts_json.from_json(document), PlanOptions(**options), MATRIX)


def codes(made: Plan) -> list[str]:
    return [row.code for row in made.findings]


def selected(made: Plan) -> dict[str, str]:
    return {row.name: row.version for row in made.selection}


def unknown(made: Plan) -> str:
    """Return the releases that the plan says it does not know; empty where it says nothing."""
    found = [row for row in made.findings if row.code == "unknown-release"]
    assert all(row.severity == "info" for row in found)
    return values_of(found[0])["releases"] if found else ""


def cuda_13(**changed: str) -> dict[str, str]:
    return {name: row[0] for name, row in CUDA_13.items()} | {
        name.replace("_", "-"): version for name, version in changed.items()
    }


def test_an_environment_in_which_every_wheel_is_newer_is_kept() -> None:
    made = plan(environment(wheels=NEWER, seen={name: row[1] for name, row in CUDA_13.items()}))

    assert (made.verdict, made.install) == ("healthy", ())
    assert selected(made) == NEWER | {"onnxruntime-gpu": "1.31.1"}
    assert len(unknown(made).split(", ")) == 7


def test_a_newer_release_is_kept_and_completed_by_what_its_own_provider_needs() -> None:
    wheels = cuda_13()
    del wheels["nvidia-cudnn-cu13"]

    made = plan(environment("1.32.0", wheels=wheels, provider=PROVIDER_13))

    assert made.verdict == "fixable"
    assert [row.name for row in made.install] == ["nvidia-cudnn-cu13"]
    assert selected(made)["onnxruntime-gpu"] == "1.32.0"
    assert unknown(made) == "onnxruntime-gpu 1.32.0"
    assert {row.name: row.index_url for row in made.selection}["onnxruntime-gpu"] == "installed"


@pytest.mark.parametrize("provider", [PROVIDER_13, None], ids=["read", "written by hand"])
def test_a_build_is_what_it_says_and_not_what_its_number_says(
    provider: dict[str, Any] | None,
) -> None:
    """Microsoft's feed for CUDA 13 has a 1.26.0, PyPI's 1.26.0 is for CUDA 12."""
    made = plan(environment("1.26.0", cuda="13.0", provider=provider))

    assert made.verdict == "healthy"
    assert made.cuda == "13"
    assert unknown(made) == "onnxruntime-gpu 1.26.0"
    assert not [row for row in made.rejected if row.version == "1.26.0"]


def test_a_build_of_another_index_that_cannot_run_is_replaced_by_pypis() -> None:
    made = plan(environment("1.26.0", cuda="13.0", provider=PROVIDER_13, driver="12.8"))

    assert (made.verdict, made.cuda) == ("fixable", "12")
    assert selected(made)["onnxruntime-gpu"] == "1.26.0"
    [gpu_build] = [row for row in made.install if row.name == "onnxruntime-gpu"]
    assert len(gpu_build.sha256) == 64
    assert "driver-too-old" in codes(made)


TORCH_16 = {
    "name": "torch",
    "version": "2.16.0",
    "requires": [
        "cuda-toolkit[cublas,cudart,cufft,nvjitlink,nvrtc]==13.6.0; platform_system == 'Linux'",
        "nvidia-cudnn-cu13==9.29.0.10; platform_system == 'Linux'",
    ],
}
TOOLKIT_13_6 = {
    "name": "cuda-toolkit",
    "version": "13.6.0",
    "requires": [
        f"{name}=={NEWER[name]}.*; extra == '{extra}'"
        for extra, name in (
            ("cublas", "nvidia-cublas"),
            ("cudart", "nvidia-cuda-runtime"),
            ("cufft", "nvidia-cufft"),
            ("nvjitlink", "nvidia-nvjitlink"),
            ("nvrtc", "nvidia-cuda-nvrtc"),
        )
    ],
}


def test_a_newer_torch_gets_an_onnxruntime_of_its_cuda_major() -> None:
    document = environment(wheels=NEWER, others=(TORCH_16, TOOLKIT_13_6))
    document["packages"].pop(0)
    document["onnxruntime"] = None

    made = plan(document)

    assert made.verdict == "fixable"
    assert selected(made) == NEWER | {"onnxruntime-gpu": "1.31.1", "torch": "2.16.0"}
    assert [row.name for row in made.install] == ["onnxruntime-gpu"]


KEPT = "kept"
CASES: dict[str, tuple[dict[str, Any], str]] = {
    # A newer cuBLAS, of which a library that the provider links is gone: that one is wrong.
    "cublas without a soname": (
        {
            "wheels": cuda_13(nvidia_cublas="13.11.0.7"),
            "seen": {"nvidia-cublas": [f"{CU13}/libcublas.so.13"]},
        },
        "nvidia-cublas 13.1.1.3",
    ),
    # nvidia-cublas has no suffix: its next major is for CUDA 14.
    "cublas of the next major, files not seen": (
        {"wheels": cuda_13(nvidia_cublas="14.0.0.2")},
        "nvidia-cublas 13.1.1.3",
    ),
    # Older than all known: 9.12 is the first for CUDA 13 with every symbol.
    "an older cudnn": (
        {"wheels": cuda_13(nvidia_cudnn_cu13="9.11.0.3")},
        "nvidia-cudnn-cu13 9.28.1.4",
    ),
    "a cudnn between two known ones, since yanked": (
        {"wheels": cuda_13(nvidia_cudnn_cu13="9.27.9.1")},
        KEPT,
    ),
    # Every known cuDNN 9.11 and newer lacks code for Volta.
    "a newer cudnn on a GPU that the line has dropped": (
        {
            "ort": "1.26.0",
            "cuda": "12.8",
            "wheels": CUDA_12 | {"nvidia-cudnn-cu12": "9.29.0.10"},
            "gpu": "7.0",
        },
        "nvidia-cudnn-cu12 9.10.2.21",
    ),
    "a newer cudnn for CUDA 12": (
        {
            "ort": "1.26.0",
            "cuda": "12.8",
            "wheels": CUDA_12 | {"nvidia-cudnn-cu12": "9.29.0.10"},
        },
        KEPT,
    ),
    "a version that is none": (
        {"wheels": cuda_13(nvidia_cublas="13-latest")},
        "nvidia-cublas 13.1.1.3",
    ),
    "a private build without code for this GPU": (
        {"ort": "1.31.1+acme.4", "provider": PROVIDER_13 | {"sass": ["9.0a"]}},
        "onnxruntime-gpu 1.31.1",
    ),
    "a private build for a Python that PyPI has no wheel for": (
        {"ort": "1.31.1", "provider": PROVIDER_13, "python": "3.9.18"},
        KEPT,
    ),
    "a deleted release": (
        {
            "ort": "1.20.1",
            "cuda": "12.4",
            "wheels": CUDA_12,
        },
        KEPT,
    ),
    "a build without a CUDA provider": (
        {"ort": "1.32.0", "provider": PROVIDER_13 | {"links": [], "names": []}},
        "onnxruntime-gpu 1.31.1",
    ),
    "a release for CUDA 14 with its wheels": (
        {
            "ort": "1.40.0",
            "cuda": "14.0",
            "provider": {
                "links": ["libcublas.so.14", "libcudart.so.14", "libcuda.so.1"],
                "names": ["libcudnn.so.9"],
                "sass": ["8.9"],
            },
            "driver": "14.1",
            "wheels": {"nvidia-cublas": "14.0.0.2", "nvidia-cuda-runtime": "14.0.11"},
            "seen": {
                "nvidia-cublas": ["nvidia/cu14/lib/libcublas.so.14"],
                "nvidia-cuda-runtime": ["nvidia/cu14/lib/libcudart.so.14"],
            },
        },
        KEPT,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_others(case: str) -> None:
    machine, expected = CASES[case]

    made = plan(environment(**machine))

    if expected == KEPT:
        assert (made.verdict, made.install, made.uninstall) == ("healthy", (), ())
        assert unknown(made)
    else:
        assert made.verdict == "fixable"
        assert expected in {f"{row.name} {row.version}" for row in made.install}
        assert any(row.severity == "error" for row in made.findings)


def test_what_is_installed_only_is_never_installed_anew() -> None:
    """A gutted wheel that no index is known to have is replaced by one that the matrix has."""
    document = environment(wheels=cuda_13(nvidia_cudnn_cu13="9.29.0.10"))
    for row in document["packages"]:
        if row["name"] == "nvidia-cudnn-cu13":
            row["intact"] = False

    made = plan(document)

    assert [f"{row.name} {row.version}" for row in made.install] == ["nvidia-cudnn-cu13 9.28.1.4"]
    assert "library-gutted" in codes(made)


@pytest.mark.parametrize(
    "damage",
    [
        {"intact": False},
        {"distribution": "onnxruntime", "version": "1.32.0"},
        {"version": "1.30.0"},
    ],
)
def test_an_unknown_release_that_is_not_whole_is_replaced(damage: dict[str, Any]) -> None:
    document = environment("1.32.0", provider=PROVIDER_13)
    document["onnxruntime"] |= damage

    made = plan(document)

    assert "onnxruntime-gpu 1.31.1" in {f"{row.name} {row.version}" for row in made.install}


def reasons(made: Plan) -> set[str]:
    return {why.code for row in made.rejected for why in row.reasons}


def short_form(driver: str, gpu: str, **sources: str) -> dict[str, Any]:
    """Return the machine of `--driver --gpu`."""
    document = environment(driver=driver)
    named = {"name": None, "compute_capability": gpu}
    return document | {
        "driver": {"version": driver, "cuda": None},
        "gpus": [named],
        "sources": sources or {"gpus": "--gpu"},
    }


@pytest.mark.parametrize(
    ("driver", "gpu", "last"),
    [("595.58.03", "7.0", "R580"), ("535.104.12", "3.7", "R470")],
)
def test_a_driver_after_the_last_one_for_a_gpu_is_impossible(
    driver: str, gpu: str, last: str
) -> None:
    made = plan(short_form(driver, gpu))

    assert made.verdict == "impossible"
    dropped = {
        why.values for row in made.rejected for why in row.reasons if why.code == "gpu-dropped"
    }
    assert dropped == {(("gpu", gpu), ("last", last), ("driver", driver))}
    older = [row for row in made.unlock if row.change.code == "older-driver"]
    named = {row.change.values for row in older}
    assert named == ({(("last", last),)} if last == "R580" else set())  # no code for 3.7 is left


def test_a_driver_before_the_first_one_for_a_gpu_is_impossible_and_that_is_the_way_out() -> None:
    for driver, gpu, first, floor in (
        ("535.104.12", "12.0", "R570", "570.26"),
        ("565.57.01", "10.0", "R570", "570.26"),
        ("470.256.02", "9.0", "R520", "520.61.05"),
        ("450.80.02", "8.9", "R520", "520.61.05"),
        ("450.80.02", "12.0", "R570", "570.26"),
    ):
        made = plan(short_form(driver, gpu))
        early = {
            why.values for row in made.rejected for why in row.reasons if why.code == "gpu-too-new"
        }

        assert made.verdict == "impossible"
        assert early == {(("gpu", gpu), ("first", first), ("driver", driver))}
        assert dict(made.unlock[0].change.values)["floor"] == floor
        others = {row.change.code for row in made.unlock} - {"newer-driver"}
        assert not others - {"ort-index"}


def test_a_newer_gpu_beside_one_that_the_driver_runs_may_be_of_another_machine() -> None:
    """An image for several machines is planned for the oldest driver and all GPUs."""
    several = {"compute_capability": "12.0"}, {"compute_capability": "8.0"}
    document = short_form("535.104.12", "12.0") | {"gpus": [*several]}
    too_new = short_form("470.256.02", "9.0") | {
        "gpus": [several[0], {"compute_capability": "9.0"}]
    }

    assert plan(document).verdict == "fixable"
    assert "gpu-too-new" in reasons(plan(too_new))


@pytest.mark.parametrize(
    ("driver", "gpu"),
    [("580.82.07", "7.0"), ("582.28", "6.1")],
)
def test_the_last_branch_itself_still_runs_the_gpu(driver: str, gpu: str) -> None:
    assert "gpu-dropped" not in reasons(plan(short_form(driver, gpu)))


def test_a_driver_that_names_a_gpu_supports_it() -> None:
    assert "gpu-dropped" not in reasons(plan(short_form("595.58.03", "7.0", gpus="nvml")))
    assert "gpu-too-new" not in reasons(plan(short_form("535.104.12", "12.0", gpus="nvml")))


def compatible(driver: str, cuda: str, gpus: list[tuple[str | None, str]], **platform: Any) -> Any:
    """Return the packages of forward compatibility that are named, each with its gain."""
    document = environment(wheels={}) | {"onnxruntime": None}
    document["packages"].pop(0)
    document["driver"] = {"version": driver, "cuda": cuda}
    document["gpus"] = [{"name": name, "compute_capability": gpu} for name, gpu in gpus]
    document["platform"] |= platform
    rows = [row for row in plan(document).unlock if row.change.code == "forward-compatibility"]
    return {(values_of(row.change)["package"], gains(row)) for row in rows}


@pytest.mark.parametrize(
    ("driver", "cuda", "gpus", "package", "gains"),
    [
        ("535.104.12", "12.2", [("NVIDIA A100-SXM4-80GB", "8.0")], "cuda-compat-13-0", "1.31.1"),
        ("470.256.02", "11.4", [("Tesla T4", "7.5")], "cuda-compat-12-8", "1.26.0"),
    ],
)
def test_a_data_centre_gpu_is_told_of_forward_compatibility(
    driver: str, cuda: str, gpus: list[tuple[str | None, str]], package: str, gains: str
) -> None:
    """With the branches that NVIDIA's images of that CUDA name; what it allows is the gain."""
    assert compatible(driver, cuda, gpus) == {(package, f"onnxruntime-gpu {gains}")}


def test_a_wish_for_a_release_that_no_row_has_says_where_the_matrix_ends() -> None:
    wish = "==1.32.0"
    made = plan(environment(), onnxruntime=wish)

    assert made.verdict == "impossible"
    [finding] = [row for row in made.findings if row.code == "release-not-in-matrix"]
    assert values_of(finding) == {
        "wish": f"--ort {wish}",
        "newest": "1.31.1",
        "date": MATRIX.date,
    }
    assert "matrix --update" in load_texts("en").remedy(finding)


@pytest.mark.parametrize(("python", "wanted"), [("3.7.17", "impossible"), ("3.8", "fixable")])
def test_nothing_is_promised_to_a_python_that_nothing_is_installed_into(
    python: str, wanted: str
) -> None:
    document = environment(python=python, wheels={}, driver="11.8")
    document["packages"] = [row for row in document["packages"] if row["name"] != "onnxruntime-gpu"]
    made = plan(document | {"onnxruntime": None})

    assert made.verdict == wanted
    changes = {values_of(row.change).get("python") for row in made.unlock}
    if wanted == "impossible":
        (row,) = [row for row in made.rejected if row.version == "1.14.1"]
        assert [(why.code, dict(why.values)) for why in row.reasons] == [
            ("python-too-old", {"python": python, "oldest": "3.8"})
        ]
        assert "Python 3.8" in changes


def test_what_is_installed_in_python_3_7_works_as_it_is() -> None:
    made = plan(environment("1.14.1", "11.6", python="3.7.17", wheels={}, driver="11.8"))

    too_old = {
        row.version for row in made.rejected for why in row.reasons if why.code == "python-too-old"
    }
    assert selected(made)["onnxruntime-gpu"] == "1.14.1"
    assert "1.14.0" in too_old


def test_a_range_is_no_pin() -> None:
    """cuda-toolkit asks for `nvidia-nvjitlink>=13.0.88,<14`: a newer one stays."""
    build = next(
        row
        for row in MATRIX.torch.builds
        if (row.version, row.platform) == ("2.14.0", "linux_x86_64") and row.wheels
    )
    pins = dict(
        line.partition(";")[0].split("==") for line in build.pins if "==" in line.partition(";")[0]
    )
    wheels = {name: pins.get(name, version) for name, version in cuda_13().items()}
    wheels["nvidia-nvjitlink"] = "13.4.92"

    made = plan(environment(wheels=wheels, others=({"name": "torch", "version": "2.14.0"},)))

    assert selected(made)["nvidia-nvjitlink"] == "13.4.92"
    assert (made.verdict, made.install) == ("healthy", ())


FEED = "https://feed.example/onnxruntime-cuda-13/simple"


def with_feed(python: str = "cp311") -> Matrix:
    """Return the matrix with a 1.26.0 for CUDA 13, as a feed has it under PyPI's number."""
    like = next(
        row for row in MATRIX.builds if (row.version, row.platform) == ("1.31.1", "linux_x86_64")
    )
    wheel = like.wheels[0]._replace(python=python, sha256="f" * 64, file="ort-1.26.0-feed.whl")
    feed = like._replace(version="1.26.0", wheels=(wheel,), index_url=FEED)
    return MATRIX._replace(builds=(*MATRIX.builds, feed))


def test_a_build_of_a_feed_is_kept_as_the_one_that_it_is() -> None:
    facts = facts_json.from_json(environment("1.26.0", cuda="13.0"))

    made = resolve(facts, PlanOptions(), with_feed())

    assert (made.verdict, unknown(made)) == ("healthy", "")
    assert {row.name: row.index_url for row in made.selection}["onnxruntime-gpu"] == FEED


def test_a_build_of_a_feed_is_chosen_where_it_alone_fits_and_comes_from_there() -> None:
    """A company builds for a Python that PyPI has no wheel for."""
    document = environment(python="3.9.18")
    document["packages"].pop(0)
    document["onnxruntime"] = None

    made = resolve(facts_json.from_json(document), PlanOptions(cuda="13"), with_feed("cp39"))

    [wheel] = [row for row in made.install if row.name == "onnxruntime-gpu"]
    assert (wheel.version, wheel.index_url, wheel.sha256) == ("1.26.0", FEED, "f" * 64)
