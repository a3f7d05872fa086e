"""torch and onnxruntime-gpu in one environment, on the real matrix.

What is expected here was worked out by hand, from the wheels and from PyTorch's documents.
"""

from __future__ import annotations

from typing import Any

import pytest
from told import required, values_of

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.matrix import load as data_files
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.parse import with_torch
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.report.plan import plan_sections
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.resolve.situation import situation_of
from ortgpu_fix.resolve.torch_choice import torch_of_lines

MATRIX = load_matrix()
WINDOWS = {"system": "windows", "machine": "x86_64"}
ARM = {"system": "linux", "machine": "aarch64", "libc": "glibc 2.39"}
ORDINARY = ("flatbuffers 25.2.10", "numpy 1.26.4", "packaging 25.0", "protobuf 6.31.1")
CUDA = {"470": "11.4", "535": "12.2", "550": "12.4", "570": "12.8", "576": "12.9", "580": "13.0"}
CUDA["610"] = "13.3"
A100, V100, RTX4090, RTX5060, RTX5090, GB10 = "8.0", "7.0", "8.9", "12.0", "12.0", "12.1"
INDEX = "https://download.pytorch.org/whl"


def environment(*packages: Any, driver: str = "550", gpu: str = A100, **more: Any) -> Facts:
    machine = {"driver": CUDA[driver], "gpus": (gpu,), **more}
    return facts_json.from_json(synthetic.document(*ORDINARY, *packages, **machine))


def plan(
    *packages: Any, torch: str = "keep", ort: str = "", unlocking: bool = False, **more: Any
) -> Plan:
    """Return the plan; what would unlock more takes the most time, and is asked for by few."""
    options = PlanOptions(torch=torch, onnxruntime=ort)
    return resolve(environment(*packages, **more), options, MATRIX, unlocking=unlocking)


def selected(made: Plan) -> dict[str, str]:
    return {row.name: row.version for row in made.selection}


def codes(made: Plan) -> list[str]:
    return [finding.code for finding in made.findings]


def reasons(made: Plan, version: str) -> list[str]:
    return [why.code for row in made.rejected if row.version == version for why in row.reasons]


def gains(made: Plan) -> dict[str, str]:
    texts = load_texts("en")
    return {texts.change(row): texts.gains(row) for row in made.unlock}


# A torch that stays.


def test_torch_2_3_for_cuda_12_brings_cudnn_8_and_no_release_shares_it() -> None:
    made = plan("torch 2.3.1+cu121", unlocking=True)

    assert made.verdict == "impossible"
    assert reasons(made, "1.26.0")[0] == "torch-other-cudnn"
    assert reasons(made, "1.18.1")[0] == "torch-other-cuda"
    assert gains(made)["`--torch match`"] == "onnxruntime-gpu 1.18.1, torch 2.3.1+cu118"
    assert gains(made)["`--torch 2.4.1+cu124`"] == "onnxruntime-gpu 1.26.0, torch 2.4.1+cu124"


@pytest.mark.parametrize(
    ("torch", "machine", "expected"),
    [
        # cuDNN 8.7 for CUDA 11, as PyTorch's index has it: onnxruntime-gpu 1.18 is the last for it.
        (
            "2.3.1+cu118",
            {"driver": "470", "gpu": V100},
            {"onnxruntime-gpu": "1.18.1", "nvidia-cudnn-cu11": "8.7.0.84"},
        ),
        # PyPI's 2.4.1 is for CUDA 12.1, and the first with cuDNN 9.
        (
            "2.4.1",
            {"driver": "535", "gpu": A100},
            {
                "onnxruntime-gpu": "1.26.0",
                "nvidia-cudnn-cu12": "9.1.0.70",
                "nvidia-cublas-cu12": "12.1.3.1",
            },
        ),
        # torch 2.15 has no cuRAND any more: it is added, that of the provider's own toolkit.
        (
            "2.15.0",
            {"driver": "610", "gpu": RTX5060},
            {
                "onnxruntime-gpu": "1.31.1",
                "nvidia-cudnn-cu13": "9.26.0.51",
                "nvidia-cublas": "13.4.1.3",
                "nvidia-curand": "10.4.0.35",
            },
        ),
        # What torch for Arm requires is not known: the newest cuDNN is taken.
        (
            "2.9.1+cu130",
            {"driver": "580", "gpu": GB10, "platform": ARM},
            {"onnxruntime-gpu": "1.31.1", "nvidia-cudnn-cu13": "9.28.1.4"},
        ),
        # torch for Windows carries its libraries, which onnxruntime-gpu shares.
        (
            "2.7.1+cu128",
            {"driver": "576", "gpu": RTX5060, "platform": WINDOWS},
            {"onnxruntime-gpu": "1.26.0", "nvidia-cudnn-cu12": "9.7.1.26"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_onnxruntime_fits_a_torch_that_stays(
    torch: str, machine: dict[str, Any], expected: dict[str, str]
) -> None:
    made = plan(f"torch {torch}", **machine)

    assert selected(made).items() >= expected.items()
    assert "torch" not in {row.name for row in made.install}


def test_a_torch_without_cuda_leaves_the_choice_free() -> None:
    torch = "2.7.1+cpu"
    made = plan(f"torch {torch}", driver="580", gpu=RTX4090)

    assert selected(made)["onnxruntime-gpu"] == "1.31.1"
    assert "torch-without-cuda" in codes(made)
    assert "torch.cuda.is_available()" in told(made, driver="580", gpu=RTX4090)


def told(made: Plan, language: Any = "en", **machine: Any) -> str:
    texts = load_texts(language)
    facts = environment(**machine)
    return plain(plan_sections(made, facts, texts, verbose=True, asked=False, command="do"))


def test_a_torch_that_nobody_knows_is_judged_by_what_it_requires() -> None:
    unknown = {"name": "torch", "version": "9.9.0", "requires": ["nvidia-cudnn-cu12==9.8.0.87"]}
    made = plan(unknown, driver="580", gpu=RTX4090)

    assert selected(made)["onnxruntime-gpu"] == "1.26.0"
    assert selected(made)["nvidia-cudnn-cu12"] == "9.8.0.87"


@pytest.mark.parametrize(
    "torch",
    [
        {"name": "torch", "version": "9.9.0", "requires": ["filelock", "not a requirement!"]},
        {"name": "torch", "version": "no version"},
        # conda's requires none of NVIDIA's wheels.
        {"name": "torch", "version": "2.5.1", "requires": ["filelock"]},
    ],
    ids=["newer", "odd", "conda"],
)
def test_a_torch_of_unknown_cuda_does_not_constrain(torch: dict[str, Any]) -> None:
    made = plan(torch, driver="580", gpu=RTX4090)

    assert selected(made)["onnxruntime-gpu"] == "1.31.1"


def test_a_label_of_the_time_before_2_2_tells_how_it_was_made() -> None:
    """Up to 2.1 the index had both: with the libraries inside, and as PyPI has it."""
    inside = situation_of(environment("torch 2.1.2+cu121"), PlanOptions(), MATRIX).torch
    pinned = situation_of(
        environment("torch 2.1.2+cu121.with.pypi.cudnn"), PlanOptions(), MATRIX
    ).torch

    assert inside is not None
    assert inside.build is not None
    assert inside.build.libraries == "inside"
    assert pinned is not None
    assert pinned.build is not None
    assert "nvidia-cudnn-cu12 (==8.9.2.26)" in " ".join(pinned.build.pins)


def test_a_way_through_cuda_toolkit_that_the_facts_leave_out_is_known() -> None:
    lines = ["cuda-toolkit[cublas,cudart]==13.0.2", "nvidia-cudnn-cu13==9.19.0.56"]
    torch = {"name": "torch", "version": "2.11.0", "requires": lines}
    made = plan(torch, driver="580", gpu=RTX4090)

    assert selected(made)["nvidia-cublas"] == "13.1.0.3"
    assert selected(made)["nvidia-cudnn-cu13"] == "9.19.0.56"


def test_a_library_inside_torch_that_is_too_old_is_no_partner() -> None:
    """torch 2.7.1 for Windows carries cuDNN 9.7.1; a provider that takes more is made up here."""
    builds = tuple(
        build._replace(
            needs=tuple(
                need._replace(since="9.8.0.87") if need.library == "cudnn64_9.dll" else need
                for need in build.needs
            ),
        )
        if (build.version, build.platform) == ("1.26.0", "windows_x86_64")
        else build
        for build in MATRIX.builds
    )
    found = environment("torch 2.7.1+cu128", driver="576", gpu=RTX4090, platform=WINDOWS)
    made = resolve(found, PlanOptions(), MATRIX._replace(builds=builds))

    assert reasons(made, "1.26.0") == ["torch-library-old"]
    assert selected(made)["onnxruntime-gpu"] == "1.25.1"


# A torch that may move.


def wheel(made: Plan, name: str = "torch") -> tuple[str, str]:
    return next((row.version, row.index_url) for row in made.install if row.name == name)


@pytest.mark.parametrize(
    ("torch", "machine", "moved", "label", "ort"),
    [
        # cuDNN 8: for CUDA 11.8 there is an onnxruntime-gpu with it.
        ("2.3.1+cu121", {}, "2.3.1+cu118", "cu118", "1.18.1"),
        # Driver 535 speaks 12.2: it runs 12.6 by minor-version compatibility, and 12.8 no better.
        ("2.11.0", {"driver": "535"}, "2.11.0+cu126", "cu126", "1.26.0"),
        # Of 2.13 only the build for 12.9 has code for 12.0 and is not for CUDA 13.
        (
            "2.13.0+cu126",
            {"driver": "570", "gpu": RTX5090},
            "2.13.0+cu129",
            "cu129",
            "1.26.0",
        ),
        # The CPU build of the same release.
        ("2.10.0+cpu", {"driver": "580", "gpu": RTX4090}, "2.10.0+cu130", "cu130", "1.31.1"),
        # A release that is newer than the matrix: the nearest is the newest of all.
        ("9.9.0+cu130", {"driver": "610", "gpu": RTX4090}, "2.15.0", "pypi", "1.31.1"),
        # One of a minor that is known; of its builds the one for a CUDA that the driver speaks.
        ("2.5.9+cu124", {"driver": "535"}, "2.5.1+cu121", "cu121", "1.26.0"),
    ],
)
def test_torch_moves_to_the_nearest_build_that_fits(
    torch: str, machine: dict[str, Any], moved: str, label: str, ort: str
) -> None:
    made = plan(f"torch {torch}", torch="match", **machine)

    assert wheel(made) == (moved, "pypi" if label == "pypi" else f"{INDEX}/{label}")
    assert selected(made)["onnxruntime-gpu"] == ort


def test_the_toolkit_that_torch_alone_requires_moves_with_it() -> None:
    """As PyPI's: `cuda-toolkit` pins the wheels of its extras, for each torch to other versions."""
    lines = ["cuda-toolkit[cublas]==13.0.2", "nvidia-cudnn-cu13==9.19.0.56"]
    torch = {"name": "torch", "version": "2.11.0", "requires": lines}
    extra = 'nvidia-cublas==13.1.0.3.*; extra == "cublas"'
    toolkit = {"name": "cuda-toolkit", "version": "13.0.2", "requires": [extra]}
    wheels = ("nvidia-cublas 13.1.0.3", "nvidia-cudnn-cu13 9.19.0.56")

    made = plan(torch, toolkit, *wheels, torch="==2.14.0", driver="580")

    assert wheel(made) == ("2.14.0", "pypi")
    assert wheel(made, "nvidia-cublas") == ("13.1.1.3", "pypi")
    assert selected(made)["onnxruntime-gpu"] == "1.31.1"
    assert not made.needs
    assert "would-conflict" not in codes(made)
    other = {"name": "other", "version": "1", "requires": ["cuda-toolkit[cublas]==13.0.2"]}
    held = plan(torch, toolkit, *wheels, other, torch="==2.14.0", driver="580")
    assert wheel(held) == ("2.14.0+cu126", f"{INDEX}/cu126")


def test_a_torch_that_fits_does_not_move() -> None:
    made = plan("torch 2.10.0", "torchvision 0.25.0", "onnxruntime-gpu 1.26.0", torch="match")

    assert "torch" not in {row.name for row in made.install}
    assert selected(made)["torch"] == "2.10.0"
    assert selected(made)["torchvision"] == "0.25.0"
    assert "unchanged: onnxruntime-gpu 1.26.0, torch 2.10.0, torchvision 0.25.0" in told(made)


def test_companions_move_along() -> None:
    made = plan("torch 2.3.1+cu121", "torchvision 0.18.1+cu121", "torchaudio 2.3.1", torch="match")

    torches = [row.version for row in made.selection if row.name == "torch"]
    assert torches == ["2.3.1+cu118"]  # and not the one that goes
    assert wheel(made, "torchvision") == ("0.18.1+cu118", f"{INDEX}/cu118")
    assert wheel(made, "torchaudio") == ("2.3.1+cu118", f"{INDEX}/cu118")


def test_pypis_companions_have_hashes() -> None:
    made = plan("torch 2.7.1+cu128", "torchvision 0.22.1+cu128", torch="match", gpu=V100)
    vision = next(row for row in made.install if row.name == "torchvision")

    assert (vision.version, vision.index_url) == ("0.22.1", "pypi")
    assert vision.file == "torchvision-0.22.1-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert len(vision.sha256) == 64
    assert vision.size > 7_000_000


def test_a_torch_without_its_companion_is_passed_over() -> None:
    """There is no torchaudio for CUDA 13.2: 2.11, the last, was made with CUDA 12.6 to 13.0."""
    beside = "torchaudio 2.11.0"
    made = plan("torch 2.15.0", beside, torch="match", driver="535")

    assert reasons(made, "2.15.0+cu132") == ["driver-too-old"]
    assert wheel(made) == ("2.14.1+cu126", f"{INDEX}/cu126")
    assert wheel(made, "torchaudio") == ("2.11.0+cu126", f"{INDEX}/cu126")
    none = plan("torch 2.9.1", beside, torch="==2.15.0+cu132", driver="610")
    assert reasons(none, "2.15.0+cu132") == ["torch-without-companion"]


def test_a_cudnn_that_stays_is_not_told_to_go() -> None:
    """It keeps the installed release out; the finding of a wheel that the plan removes said so."""
    pinned = {"name": "torch", "version": "2.7.1", "requires": ["nvidia-cudnn-cu12==9.5.1.17"]}
    made = plan(pinned, "nvidia-cudnn-cu12 9.5.1.17", "onnxruntime-gpu 1.31.1", driver="580")

    assert selected(made)["nvidia-cudnn-cu12"] == "9.5.1.17"
    assert made.uninstall == ()
    assert "folder-owned" in codes(made)
    assert "shared-folder" not in codes(made)
    assert "nvidia-cudnn-cu13 and nvidia-cudnn-cu12 install the same files" in told(made)


def test_a_torch_that_nobody_knows_is_said_and_leaves_the_choice() -> None:
    release = "2.7.0a0+7c8ec84dab.nv25.03"
    made = plan(f"torch {release}")

    assert made.verdict == "fixable"
    assert "torch-unknown" in codes(made)
    assert "torch-without-cuda" not in codes(made)
    assert "torch" not in selected(made)


def test_what_only_the_torch_before_needed_goes_with_its_cuda() -> None:
    build = next(
        build
        for build in MATRIX.torch.of("linux_x86_64")
        if build.version == "2.10.0" and build.wheels
    )
    torch = {"name": "torch", "version": "2.10.0", "requires": list(build.pins)}
    app = {"name": "app", "version": "1", "requires": ["nvidia-cufft-cu12"]}
    made = plan(
        torch,
        app,
        "nvidia-nccl-cu12 2.27.5",
        "nvidia-cublas-cu12 12.8.4.1",
        "nvidia-cudnn-cu12 9.10.2.21",
        "nvidia-cufft-cu12 11.3.3.83",
        "nvidia-cutlass-cu12 1.0",
        torch="match",
        driver="580",
        gpu=RTX4090,
    )

    assert wheel(made)[0] == "2.10.0+cu130"
    assert made.uninstall == ("nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-nccl-cu12")
    told = {row.code: values_of(row) for row in made.findings}
    assert told["shared-folder"] == {"rival": "nvidia-cudnn-cu12"}
    assert told["orphans-leave"]["names"] == "nvidia-cublas-cu12 nvidia-nccl-cu12"


@pytest.mark.parametrize(
    ("wish", "machine", "moved", "label"),
    [
        # Nothing but the oldest CUDA that a driver runs by minor-version compatibility: 12.6.
        (">=2.6,<2.9", {"driver": "535"}, "2.8.0+cu126", "cu126"),
        ("==2.10.0+cu128", {"driver": "580"}, "2.10.0+cu128", "cu128"),
        ("<2.1", {"driver": "470", "gpu": V100}, "2.0.1", "pypi"),
    ],
)
def test_a_torch_that_is_wished_for_is_added(
    wish: str, machine: dict[str, Any], moved: str, label: str
) -> None:
    made = plan(torch=wish, **machine)

    assert wheel(made) == (moved, "pypi" if label == "pypi" else f"{INDEX}/{label}")


def test_match_adds_no_torch() -> None:
    assert "torch" not in selected(plan(torch="match"))


def test_a_torch_that_nothing_fits_is_said_with_what_would() -> None:
    made = plan(torch="==2.0.1", driver="580", gpu=RTX5060, unlocking=True)

    assert made.verdict == "impossible"
    assert reasons(made, "2.0.1+cu117") == ["no-gpu-code"]
    assert reasons(made, "1.31.1") == ["torch-none-fits"]
    assert "torch-wish-unfit" in codes(made)
    assert "`--torch 2.0.1`" in told(made)
    assert gains(made)["`--torch 2.15.0+cu130`"] == "onnxruntime-gpu 1.31.1, torch 2.15.0+cu130"


def test_a_system_that_is_too_old_for_a_wheel_is_said() -> None:
    made = plan(torch="==2.8.0", platform={**ARM, "machine": "x86_64", "libc": "glibc 2.17"})

    assert reasons(made, "2.8.0+cu128") == ["glibc-too-old"]


def test_a_python_without_a_wheel_is_said() -> None:
    made = plan(torch="==2.0.1", python="3.12.1")

    assert reasons(made, "2.0.1+cu118") == ["no-wheel-python"]


def test_ptx_alone_needs_libraries_for_the_gpu_too() -> None:
    """cu118 for Windows has PTX 3.7, and its cuBLAS no code for Blackwell."""
    made = plan(torch="==2.5.1+cu118", driver="576", gpu=RTX5060, platform=WINDOWS)

    assert reasons(made, "2.5.1+cu118") == ["no-gpu-code"]


# What is said.


@pytest.mark.parametrize(
    ("folder", "other"),
    [(None, ["13"]), ({"distribution": "onnxruntime-gpu", "version": "1.26.0"}, [])],
)
def test_the_build_beside_torch_is_the_one_in_the_folder_else_the_distribution(
    folder: dict[str, Any] | None, other: list[str]
) -> None:
    made = plan(
        *("torch 2.10.0", "onnxruntime-gpu 1.31.1"), driver="580", gpu=RTX4090, onnxruntime=folder
    )
    found = [values_of(row)["other"] for row in made.findings if row.code == "two-cuda-majors"]

    assert found == other


def test_a_release_that_pypi_never_had_is_no_build() -> None:
    row = {
        "versions": ["0.1"],
        "local": "cu128",
        "platform": "linux_x86_64",
        "toolkit": "12.8.1",
        "sass": [],
        "ptx": [],
    }

    assert with_torch(MATRIX, {"torch": [], "variant": [row], "companion": []}).torch.builds == ()


def test_only_a_plan_about_torch_reads_its_table() -> None:
    known = data_files.load_matrix(torch=False)

    assert known.torch.builds == ()
    assert known.digest == MATRIX.digest
    assert data_files.add_torch(known).torch == MATRIX.torch


@pytest.mark.parametrize(
    ("lines", "installed", "wish"),
    [
        (("torch==2.6.0", "numpy<2"), (), "==2.6.0"),
        (("torch==2.6.0",), ("torch 2.6.0+cu124",), "keep"),
        (("torch>=2.6", "torch<2.9"), (), ">=2.6,<2.9"),
        (("torch==2.6.0; sys_platform == 'win32'",), (), "keep"),
        (("torchvision==0.21.0", "-"), (), "keep"),
    ],
)
def test_what_a_requirements_file_says_of_torch_is_a_wish(
    lines: tuple[str, ...], installed: tuple[str, ...], wish: str
) -> None:
    options = PlanOptions(requirements=required(*lines))

    assert torch_of_lines(options, synthetic.facts(*installed)) == wish


XFORMERS = {"name": "xformers", "version": "0.0.28.post3", "requires": ["torch==2.5.1"]}


def test_what_keeps_a_torch_that_fits_out_is_named() -> None:
    """A new card, and an xformers that was compiled for a torch without code for it."""
    made = plan("torch 2.5.1+cu121", XFORMERS, torch="match", gpu=RTX5090, driver="570")

    assert made.verdict == "impossible"
    assert "torch-held" in codes(made)
    assert "xformers 0.0.28.post3 (torch==2.5.1)" in told(made)


def test_importing_torch_first_is_not_always_the_reason() -> None:
    """Nor is it where the build is for another CUDA."""
    packages = "torch 2.10.0", "onnxruntime-gpu 1.31.1", "nvidia-cudnn-cu12 9.10.2.21"

    assert "torch-first" not in codes(plan(*packages))
