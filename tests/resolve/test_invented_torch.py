"""torch on an invented table: which build is there, what it requires, where it comes from."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from told import gains, values_of

import synthetic
from ortgpu_fix.errors import cause
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import Package
from ortgpu_fix.matrix.torch import DomainLibrary, PypiWheel, TorchBuild, TorchTable
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve, resolve_for_check
from ortgpu_fix.resolve.situation import Situation, situation_of
from ortgpu_fix.resolve.torch_installed import installed_torch_of, with_known_requirements
from ortgpu_fix.resolve.torch_rules import against_machine, against_torch, preference, without_code
from ortgpu_fix.resolve.torch_wheels import (
    kept_torch,
    kept_wheel,
    matching_domain_library,
    wheel_of_torch,
)

LINUX = "linux_x86_64"
PINS = ("nvidia-cublas-cu12==12.8.4", "nvidia-cudnn-cu12==9.1.0")


def wheels(name: str, version: str, *pythons: str) -> tuple[PypiWheel, ...]:
    return tuple(
        PypiWheel(python=tag, size=5, sha256="ab", file=f"{name}-{version}-{tag}.whl")
        for tag in pythons or ("cp311",)
    )


def build(version: str, local: str, cuda: str | None, **more: Any) -> TorchBuild:
    values: dict[str, Any] = {
        "platform": LINUX,
        "cudnn": "9.1.0" if cuda else None,
        "sass": ("8.0", "9.0"),
        "ptx": ("9.0",),
        "libraries": "required" if cuda else None,
        "pins": PINS if cuda else (),
        "toolkit": {},
        "glibc": "2.28",
        "pythons": frozenset({"cp311"}),
    }
    return TorchBuild(version=version, local=local, cuda=cuda, **{**values, **more})


CU126 = build("2.7.1", "cu126", "12.6")
PYPI = build("2.7.1", "cu128", "12.8", wheels=wheels("torch", "2.7.1"))
OTHER = build("2.7.1", "cu128", "12.8", libraries="inside", pins=())
CPU = build("2.7.1", "cpu", None)
OLDER = build("2.6.0", "cu124", "12.4", wheels=wheels("torch", "2.6.0"))
CU118 = build("2.6.0", "cu118", "11.8", cudnn="8.9.6")
BUILDS = (CU118, OLDER, CPU, CU126, PYPI, OTHER)


def library(version: str, torch: str, *pythons: str, name: str = "torchvision") -> DomainLibrary:
    return DomainLibrary(
        name=name,
        version=version,
        platform=LINUX,
        torch=SpecifierSet(torch),
        wheels=wheels(name, version, *pythons),
    )


TABLE = TorchTable(
    builds=BUILDS,
    companions=(
        library("0.21.0", "==2.6.0"),
        library("0.22.1", "==2.7.1"),
        library("2.6.0", ">=2.6.0", "py3", name="torchaudio"),
        library("2.7.1", ">=2.7.1", "cp312", name="torchaudio"),
    ),
)
MATRIX = synthetic.matrix()._replace(torch=TABLE)


def here(*packages: Any, options: PlanOptions | None = None, **machine: Any) -> Situation:
    return situation_of(synthetic.facts(*packages, **machine), options or PlanOptions(), MATRIX)


def package(version: str, *requires: str) -> Package:
    return Package(name="torch", version=version, requires=requires)


@pytest.mark.parametrize(
    ("installed", "found", "cuda", "without"),
    [
        (package("2.7.1+cu126"), CU126, "12.6", False),
        (package("2.7.1+cu128"), OTHER, "12.8", False),  # of the index, where both are known
        (package("2.7.1+cu128.with.pypi.cudnn"), PYPI, "12.8", False),
        (package("2.7.1"), PYPI, "12.8", False),
        (package("2.7.1", *PINS), PYPI, "12.8", False),
        (package("2.7.1", "numpy"), None, None, False),  # conda's
        (package("2.7.1+cpu"), None, None, True),
        (package("2.7.1+rocm6.3"), None, None, True),
        (package("2.7.1+xpu"), None, None, True),
        (package("2.7.1+cu999"), None, "99.9", False),
        (package("9.9+cu128"), None, "12.8", False),
        (package("9.9", "nvidia-cudnn-cu13>=1"), None, "13", False),
        (package("9.9", "cuda-toolkit[cublas]==13.0.2"), None, "13", False),
        (package("9.9", "!", "numpy", "cuda-toolkit"), None, None, False),
        (package("not a version"), None, None, False),
        (package("2.7.1+git5d0a"), None, None, False),
    ],
)
def test_what_is_known_of_an_installed_torch(
    installed: Package, found: TorchBuild | None, cuda: str | None, *, without: bool
) -> None:
    torch = installed_torch_of(installed, TABLE, LINUX)

    assert (torch.build, torch.cuda, torch.without_cuda) == (found, cuda, without)
    assert torch.name == f"torch {installed.version}"
    assert torch.cudnn == (found.cudnn if found else None)
    assert installed_torch_of(installed, TABLE, "windows_x86_64").build is None


def test_a_build_that_has_its_libraries_inside_requires_no_wheel_of_nvidia_s() -> None:
    old = build(
        *("1.13.1", "cu117", "11.7"), pins=(), libraries="inside", wheels=wheels("torch", "1.13.1")
    )
    table = TorchTable(builds=(*BUILDS, old))

    assert installed_torch_of(package("1.13.1", "typing-extensions"), table, LINUX).build == old


def test_facts_that_are_written_by_hand_get_the_known_requirements() -> None:
    def requires(torch: Package, *others: str) -> tuple[str, ...]:
        rows = [Package(name=name, version="1") for name in others]
        known = installed_torch_of(torch, TABLE, LINUX)
        return with_known_requirements(torch, known, rows).requires

    assert requires(package("2.7.1")) == PINS
    assert requires(package("2.7.1", "nvidia-cublas-cu12")) == ("nvidia-cublas-cu12",)
    toolkit = "cuda-toolkit[cublas]==12.8"
    assert requires(package("2.7.1", toolkit)) == (toolkit, *PINS)
    assert requires(package("2.7.1", toolkit), "cuda-toolkit") == (toolkit,)
    assert requires(package("9.9")) == ()


def test_the_domain_library_that_was_made_for_a_torch() -> None:
    def matching(name: str, torch: TorchBuild, **machine: Any) -> str | None:
        found = matching_domain_library(name, torch, here(**machine))
        return found.version if found else None

    assert matching("torchvision", PYPI) == "0.22.1"
    assert matching("torchvision", OLDER) == "0.21.0"
    assert matching("torchvision", PYPI, python="3.12.1") is None
    # torchaudio 2.6 allows 2.7.1, and was made with one for CUDA 12.4 and 11.8 alone.
    assert matching("torchaudio", PYPI) is None
    assert matching("torchaudio", OLDER) == "2.6.0"
    assert matching("torchaudio", PYPI, python="3.12.1") == "2.7.1"
    assert matching("torchtext", PYPI) is None


@pytest.mark.parametrize("limit", ["==2.6.0", ">=2.6.0"])
def test_of_several_that_were_made_for_it_the_newest_is_taken(limit: str) -> None:
    rows = [library(number, limit, name="torchaudio") for number in ("2.6.0", "2.6.2", "2.6.1")]
    at = here()
    table = TABLE._replace(companions=tuple(rows))
    found = matching_domain_library(
        "torchaudio", OLDER, at._replace(matrix=MATRIX._replace(torch=table))
    )

    assert found is not None
    assert found.version == "2.6.2"


def test_a_wheel_comes_from_pypi_where_that_has_it_else_from_the_index_of_its_cuda() -> None:
    mirror = PlanOptions(torch_index="https://m.example/whl/")
    found = wheel_of_torch("torch", PYPI, "2.7.1", PYPI.wheels, here(options=mirror))
    assert (found.version, found.index_url, found.size) == ("2.7.1", "pypi", 5)

    for torch, python in ((CU126, "3.11.7"), (PYPI, "3.12.1")):
        at = here(options=mirror, python=python)
        other = wheel_of_torch("torch", torch, "2.7.1", PYPI.wheels, at)
        label = torch.local
        assert (other.version, other.index_url) == (
            *(f"2.7.1+{label}", f"https://m.example/whl/{label}"),
        )
        assert (other.file, other.size, other.sha256) == ("", 0, "")


def test_what_stays_is_named_with_the_index_that_it_is_from() -> None:
    def kept(name: str, version: str, torch: TorchBuild | None = None) -> tuple[str, str, str]:
        row = kept_wheel(Package(name=name, version=version), torch, here())
        return row.version, row.index_url.rpartition("/")[2], row.file

    assert kept("torch", "2.7.1+cu126") == ("2.7.1+cu126", "cu126", "")
    assert kept("torch", "2.0+cu118.with.pypi.cudnn") == ("2.0+cu118.with.pypi.cudnn", "cu118", "")
    assert kept("torch", "2.7.1", PYPI) == ("2.7.1", "pypi", "torch-2.7.1-cp311.whl")
    assert kept("torch", "2.7.1") == ("2.7.1", "pypi", "")
    assert kept("torchvision", "0.22.1", PYPI) == (
        *("0.22.1", "pypi", "torchvision-0.22.1-cp311.whl"),
    )
    assert kept("torchvision", "0.1") == ("0.1", "pypi", "")


def test_only_a_torch_for_cuda_is_kept_with_the_set() -> None:
    assert [row.version for row in kept_torch(here("torch 2.7.1"))] == ["2.7.1"]
    assert kept_torch(here("torch 2.7.1+cpu")) == ()
    assert kept_torch(here()) == ()


def refused(torch: str, version: str = "1.26.0", platform: str = LINUX) -> list[Any]:
    [row] = [row for row in MATRIX.builds if (row.version, row.platform) == (version, platform)]
    return [(why.code, values_of(why)) for why in against_torch(row, here(torch))]


def test_who_cannot_share_a_process() -> None:
    assert refused("torch 2.7.1") == []
    assert refused("torch 2.7.1+cpu") == []
    assert refused("torch 2.7.1", "1.31.0") == [
        ("torch-other-cuda", {"torch": "torch 2.7.1", "cuda": "12.8", "needs": "13"})
    ]
    other = MATRIX._replace(torch=TorchTable(builds=(PYPI._replace(cudnn="8.9.7"),)))
    at = situation_of(synthetic.facts("torch 2.7.1"), PlanOptions(), other)
    [row] = [row for row in MATRIX.builds if row.version == "1.26.0"]
    assert [(why.code, values_of(why)) for why in against_torch(row, at)] == [
        (
            "torch-other-cudnn",
            {"torch": "torch 2.7.1", "cudnn": "8.9.7", "needs": "9"},
        )
    ]


@pytest.mark.parametrize(
    ("cublas", "cudnn", "found"),
    [
        ("12.8.4", "9.1.0", []),
        ("12.0.1", "9.1.0", [("libcublas.so.12", "12.0.1", "12.2.0")]),
        ("12.2.0", "9.1.0", []),
    ],
)
def test_the_libraries_in_a_torch_must_have_every_symbol(
    cublas: str, cudnn: str, found: list[tuple[str, str, str]]
) -> None:
    inside = OTHER._replace(toolkit={"nvidia-cublas-cu12": cublas}, cudnn=cudnn)
    matrix = MATRIX._replace(torch=TorchTable(builds=(inside,)))
    at = situation_of(synthetic.facts("torch 2.7.1+cu128"), PlanOptions(), matrix)
    [row] = [row for row in MATRIX.builds if row.version == "1.26.0"]

    reasons = [values_of(why) for why in against_torch(row, at)]
    assert [(why["library"], why["found"], why["needs"]) for why in reasons] == found
    assert {why["torch"] for why in reasons} <= {"2.7.1+cu128"}


def test_of_a_torch_that_requires_its_libraries_those_count_that_are_installed() -> None:
    required = PYPI._replace(toolkit={"nvidia-cublas-cu12": "12.0.1"})
    matrix = MATRIX._replace(torch=TorchTable(builds=(required,)))
    at = situation_of(synthetic.facts("torch 2.7.1"), PlanOptions(), matrix)
    [row] = [row for row in MATRIX.builds if row.version == "1.26.0"]

    assert list(against_torch(row, at)) == []


@pytest.mark.parametrize(
    ("torch", "cudnn"), [("2.7.1", "9"), ("2.6.0+cu118", "8"), ("9+cu128", None)]
)
def test_a_torch_for_cuda_uses_it_and_the_cudnn_that_it_was_built_with(
    torch: str, cudnn: str | None
) -> None:
    (user,) = here(f"torch {torch}").consumers
    cuda = "11.8" if "cu118" in torch else "12.8"

    assert (user.name, user.version, user.cuda) == ("torch", torch, cuda.partition(".")[0])
    assert user.cudnn == cudnn
    assert (user.why.code, values_of(user.why)) == ("consumer-built", {"cuda": cuda})
    assert here("torch 2.7.1+cpu").consumers == ()


def test_why_a_torch_cannot_run_on_a_machine() -> None:
    def why(torch: TorchBuild, **machine: Any) -> str | None:
        refusal = against_machine(torch, here(**machine))
        return refusal.code if refusal else None

    assert why(PYPI) is None
    assert why(PYPI, python="3.12.1") == "no-wheel-python"
    assert why(PYPI, driver="11.8") == "driver-too-old"
    assert why(PYPI, gpus=("7.5",)) == "no-gpu-code"
    assert why(PYPI._replace(glibc="2.36")) == "glibc-too-old"
    assert without_code(PYPI, here(gpus=("8.6", "9.0"))) is None
    ptx = without_code(PYPI, here(gpus=("10.0",)))  # PTX does not count
    assert ptx is not None
    assert values_of(ptx)["gpu"] == "10.0"


def test_the_build_to_prefer_of_one_release() -> None:
    """The installed one; natively supported ones, the newest; then the oldest of the others."""

    def order(*packages: str, driver: str | None) -> list[str]:
        at = here(*packages, driver=driver)
        rows = sorted((CU126, PYPI, OTHER, CU118), key=lambda row: preference(row, at))
        return [row.local + ("" if row.wheels else " index") for row in rows]

    newest = ["cu128", "cu128 index", "cu126 index", "cu118 index"]
    assert order(driver="12.8") == newest
    assert order(driver="13.0") == newest
    assert order(driver=None) == newest  # where nothing is known of it
    assert order(driver="12.6") == ["cu126 index", "cu118 index", "cu128", "cu128 index"]
    assert order(driver="12.2") == ["cu118 index", "cu126 index", "cu128", "cu128 index"]
    assert order("torch 2.7.1+cu126", driver="12.8")[0] == "cu126 index"


def told(*packages: Any, wish: str = "keep", **machine: Any) -> dict[str, list[dict[str, str]]]:
    """Return severity, evidence and values of the findings about torch, by code."""
    facts = synthetic.facts(*packages, **machine)
    made = resolve(facts, PlanOptions(torch=wish), MATRIX, unlocking=False)
    found: dict[str, list[dict[str, str]]] = {}
    for row in made.findings:
        if row.code.startswith("torch-") or row.code == "two-cuda-majors":
            evidence = {"evidence": ", ".join(row.evidence)} if row.evidence else {}
            values = {"severity": row.severity, **evidence, **values_of(row)}
            found.setdefault(row.code, []).append(values)
    return found


SET = ("nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.1.0")
PINNED = {"name": "torch", "version": "2.7.1", "requires": [*PINS]}


def test_a_torch_that_fits_is_not_spoken_of() -> None:
    assert told(PINNED, *SET, driver="12.8") == {}


def test_a_torch_without_cuda_and_one_that_nobody_knows_are_worth_knowing() -> None:
    assert told("torch 2.7.1+cpu") == {
        "torch-without-cuda": [{"severity": "info", "torch": "torch 2.7.1+cpu"}]
    }
    assert told("torch 9.9") == {"torch-unknown": [{"severity": "info", "torch": "torch 9.9"}]}


def test_a_torch_that_cannot_run_is_told_with_the_one_that_can() -> None:
    [old] = told("torch 2.7.1", driver="11.8")["torch-driver-too-old"]
    assert old == {
        "severity": "warning",
        "torch": "torch 2.7.1",
        "cuda": "12.8",
        "floor": "525.60.13",
        "driver_cuda": "11.8",
        "instead": "torch 2.6.0+cu118, https://download.pytorch.org/whl/cu118",
    }
    [none] = told("torch 2.7.1", gpus=("7.5",))["torch-no-gpu-code"]
    assert none == {
        "severity": "warning",
        "torch": "torch 2.7.1",
        "gpu": "7.5",
        "carried": str(cause("gpu-code", sass=("8.0", "9.0"), ptx=("9.0",))),
        "instead": "-",
    }
    assert "torch-driver-too-old" not in told("torch 2.7.1", driver="12.0")


def test_who_holds_a_torch_that_cannot_run_is_named() -> None:
    exact = {"name": "app", "version": "1", "requires": ["torch==2.7.1"]}
    newer = {"name": "b", "version": "1", "requires": ["torch>2.6.0"]}
    rows = told("torch 2.7.1", exact, newer, driver="11.8")

    assert rows["torch-held"] == [
        {"severity": "warning", "by": "app 1 (torch==2.7.1), b 1 (torch>2.6.0)"}
    ]
    assert "torch-held" not in told("torch 2.7.1", driver="11.8")
    assert "torch-held" not in told("torch 2.7.1", exact, driver="12.8")


def test_a_wish_that_no_torch_meets_is_told_with_one_that_would_run() -> None:
    [row] = told(wish="==9.9", driver="12.8")["torch-wish-unfit"]

    assert row == {
        "severity": "error",
        "wish": "--torch 9.9",
        "instead": "torch 2.7.1, pypi",
    }
    assert "torch-wish-unfit" not in told(wish="==9.9", gpus=())
    assert "torch-wish-unfit" not in told(wish="==9.9", driver=None)


def test_libraries_for_another_cuda_beside_torch_are_named() -> None:
    rows = told(PINNED, *SET, "nvidia-cublas 13.0.2", "onnxruntime-gpu 1.31.0", driver="13.0")
    [row] = rows["two-cuda-majors"]

    what = "onnxruntime-gpu 1.31.0, nvidia-cublas 13.0.2"
    assert row == {
        "severity": "warning",
        "evidence": what,
        "torch": "torch 2.7.1",
        "cuda": "12.8",
        "other": "13",
        "what": what,
    }
    three = told(PINNED, *SET, "nvidia-cublas 13.0.2", "nvidia-cublas-cu11 11.11.3", driver="13.0")
    assert [one["other"] for one in three["two-cuda-majors"]] == ["11", "13"]


def test_what_only_an_import_of_torch_loads_is_told() -> None:
    whole = ("onnxruntime-gpu 1.26.0", "numpy 2.2.6", "flatbuffers 25.0")
    [row] = told(PINNED, *SET, *whole, driver="12.8")["torch-first"]

    assert row == {
        "severity": "info",
        "torch": "torch 2.7.1",
        "libraries": "libcublas.so.12, libcudnn.so.9",
    }
    loaded = {"name": "ortgpu-fix-libraries", "version": "1.26.0"}
    assert "torch-first" not in told(PINNED, *SET, *whole, loaded, driver="12.8")
    assert "torch-first" not in told(PINNED, *SET, *whole[1:], driver="12.8")
    system = [{"name": "LIBCUBLAS.so.12", "path": "/x"}]
    [one] = told(PINNED, *SET, *whole, libraries=system, driver="12.8")["torch-first"]
    assert one["libraries"] == "libcudnn.so.9"
    unpinned = {"name": "torch", "version": "2.7.1", "requires": ["nvidia-cublas-cu12==12.8.4"]}
    [part] = told(unpinned, *SET, *whole, driver="12.8")["torch-first"]
    assert part["libraries"] == "libcublas.so.12"
    assert "torch-first" not in told("torch 9.9+cu128", *SET, *whole, driver="12.8")
    inside = told("torch 2.7.1+cu128", *whole, driver="12.8")
    assert inside["torch-first"][0]["libraries"] == "libcublas.so.12, libcudnn.so.9"


def test_a_torch_for_another_cuda_loads_none_of_the_libraries_first() -> None:
    inside = CU118._replace(libraries="inside", pins=(), cudnn="9.1.0")
    facts = synthetic.facts("torch 2.6.0+cu118", "onnxruntime-gpu 1.26.0")
    made = resolve(facts, PlanOptions(), MATRIX._replace(torch=TorchTable(builds=(inside,))))

    assert {row.code for row in made.findings} >= {"two-cuda-majors"}
    assert "torch-first" not in {row.code for row in made.findings}
    older = OTHER._replace(cudnn="8.9.7")
    facts = synthetic.facts("torch 2.7.1+cu128", "onnxruntime-gpu 1.26.0")
    made = resolve(facts, PlanOptions(), MATRIX._replace(torch=TorchTable(builds=(older,))))
    assert "torch-first" not in {row.code for row in made.findings}


@pytest.mark.parametrize(
    ("cudnn", "code"), [("9.0.9", "older"), ("9.10.2", "newer"), ("9.1.0", None), (None, None)]
)
def test_a_cudnn_that_was_moved_under_torch(cudnn: str | None, code: str | None) -> None:
    rows = told(PINNED, *([f"nvidia-cudnn-cu12 {cudnn}"] if cudnn else []), driver="12.8")
    found = {name: row for name, row in rows.items() if name.startswith("torch-cudnn")}

    assert found == (
        {
            f"torch-cudnn-{code}": [
                {
                    "severity": "warning",
                    "torch": "torch 2.7.1",
                    "installed": f"nvidia-cudnn-cu12 {cudnn}",
                    "wanted": "9.1.0",
                }
            ]
        }
        if code
        else {}
    )


def test_who_was_compiled_against_a_torch_that_goes_is_named() -> None:
    bound = {"name": "flash", "version": "2", "requires": ["torch==2.6.0"]}
    loose = {"name": "loose", "version": "2", "requires": ["torch>=2"]}
    vision = {"name": "torchvision", "version": "0.21.0", "requires": ["torch==2.6.0"]}
    rows = told("torch 2.6.0", loose, vision, wish="==2.7.1", driver="12.8")
    assert "torch-bound" not in rows

    exact = {"name": "flash", "version": "2", "requires": ["torch==2.7.1"]}
    rows = told("torch 2.6.0", exact, loose, vision, wish="==2.7.1", driver="12.8")
    assert rows["torch-bound"] == [{"severity": "warning", "torch": "torch 2.6.0", "by": "flash 2"}]
    assert "torch-bound" not in told("torch 2.6.0", bound, driver="12.8")


def chosen(*packages: Any, wish: str = "match", **machine: Any) -> Plan:
    facts = synthetic.facts(*packages, **machine)
    return resolve(facts, PlanOptions(torch=wish), MATRIX, unlocking=False)


def torches(made: Plan) -> dict[str, str]:
    names = {"torch", "torchvision", "torchaudio"}
    return {row.name: row.version for row in made.selection if row.name in names}


def rejected(made: Plan) -> list[tuple[str, str]]:
    return [(row.version, row.reasons[0].code) for row in made.rejected if row.package == "torch"]


@pytest.mark.parametrize(
    ("packages", "wish", "driver", "version"),
    [
        (("torch 2.7.1",), "match", "12.8", "2.7.1"),
        (("torch 2.7.1+cu126",), "match", "12.8", "2.7.1+cu126"),
        # Of a release the build that the driver supports natively.
        ((), "==2.7.1", "12.6", "2.7.1+cu126"),
        ((), "==2.7.1", "12.8", "2.7.1"),
        # A label asks for the build of PyTorch's own index.
        ((), "==2.7.1+cu128", "12.8", "2.7.1+cu128"),
        ((), ">=2.6", "12.8", "2.7.1"),
        ((), "<2.7", "12.8", "2.6.0"),
    ],
)
def test_which_torch_is_taken(
    packages: tuple[str, ...], wish: str, driver: str, version: str
) -> None:
    made = chosen(*packages, wish=wish, driver=driver)

    assert torches(made) == {"torch": version}
    assert rejected(made) == []


def test_which_torches_were_passed_over_and_why() -> None:
    made = chosen("torch 2.7.1", driver="11.8")

    assert torches(made) == {"torch": "2.6.0+cu118"}
    assert rejected(made) == [
        ("2.7.1+cu128", "driver-too-old"),
        ("2.7.1+cu126", "driver-too-old"),
        ("2.6.0+cu124", "driver-too-old"),
    ]


def test_what_belongs_to_a_torch_moves_along() -> None:
    made = chosen("torch 2.6.0", "torchvision 0.21.0", wish="==2.7.1", driver="12.8")

    assert torches(made) == {"torch": "2.7.1", "torchvision": "0.22.1"}
    assert {"torch", "torchvision"} <= {row.name for row in made.install}
    kept = chosen("torch 2.7.1", "torchvision 0.22.1", driver="12.8")
    assert torches(kept) == {"torch": "2.7.1", "torchvision": "0.22.1"}
    assert not {"torch", "torchvision"} & {row.name for row in kept.install}


def test_where_nothing_that_belongs_to_it_fits_a_torch_is_passed_over() -> None:
    made = chosen("torch 2.6.0", "torchaudio 2.6.0", wish=">=2.6", driver="12.8")
    assert torches(made) == {"torch": "2.6.0", "torchaudio": "2.6.0"}

    none = chosen("torch 2.6.0", "torchaudio 2.6.0", wish="==2.7.1", driver="12.8")
    assert none.verdict == "impossible"
    assert ("2.7.1+cu128", "torch-without-companion") in rejected(none)


def test_who_requires_another_torch_is_in_the_way() -> None:
    app = {"name": "app", "version": "1", "requires": ["torch<2.7"]}
    made = chosen("torch 2.6.0", app, wish="==2.7.1", driver="12.8")

    assert made.verdict == "impossible"
    [row, *_] = [row for row in made.rejected if row.package == "torch"]
    assert values_of(row.reasons[0]) == {"by": "app 1", "requires": "torch<2.7"}


def test_a_torch_without_a_partner_is_told_as_that() -> None:
    options = PlanOptions(torch="==2.7.1", cuda="13")
    made = resolve(synthetic.facts(driver="13.0"), options, MATRIX, unlocking=False)

    assert made.verdict == "impossible"
    assert {code for _, code in rejected(made)} == {"torch-without-partner"}
    partners = [row for row in made.rejected if row.package == "onnxruntime-gpu"]
    assert "torch-none-fits" in {why.code for row in partners for why in row.reasons}


@pytest.mark.parametrize(
    ("packages", "wish", "code", "values"),
    [
        (("torch 2.7.1",), "match", "why-torch-kept", {"torch": "torch 2.7.1", "cuda": "12"}),
        ((), "==2.7.1", "why-torch-newest", {"torch": "torch 2.7.1", "cuda": "12"}),
        (
            ("torch 2.6.0",),
            "==2.7.1",
            "why-torch-nearest",
            {"torch": "torch 2.7.1", "cuda": "12", "before": "torch 2.6.0"},
        ),
    ],
)
def test_why_a_torch_was_taken(
    packages: tuple[str, ...], wish: str, code: str, values: dict[str, str]
) -> None:
    made = chosen(*packages, wish=wish, driver="12.8")

    assert [values_of(why) for why in made.why if why.code == code] == [values]
    others = {"why-torch-kept", "why-torch-newest", "why-torch-nearest"} - {code}
    assert not others & {why.code for why in made.why}


def test_a_newer_driver_gains_a_release_with_the_torch_that_it_then_gets() -> None:
    facts = synthetic.facts("torch 2.6.0+cu118", driver="11.8")
    made = resolve(facts, PlanOptions(torch="match"), MATRIX)
    gained = {row.change.code: gains(row) for row in made.unlock}

    assert made.release == "1.18.0"
    assert gained["newer-driver"] == "onnxruntime-gpu 1.26.0"


def test_what_is_installed_beside_a_chosen_torch_stays_and_counts() -> None:
    others = ("numpy 2.2.6", "flatbuffers 25.0")
    facts = synthetic.facts("torch 2.6.0+cu118", *others, driver="12.8")
    made = resolve(facts, PlanOptions(torch="match"), MATRIX)

    assert (made.release, made.requires) == ("1.26.0", ())
    assert "torch" in {wheel.name for wheel in made.install}
    assert "torch-wish-unfit" not in {row.code for row in made.findings}


def test_a_release_that_cannot_work_is_told_why_and_not_that_no_torch_fits() -> None:
    made = resolve(synthetic.facts(driver="11.8"), PlanOptions(torch="==9.9"), MATRIX)
    against = {row.version: [why.code for why in row.reasons] for row in made.rejected}

    assert against["1.18.0"] == ["torch-none-fits"]
    assert against["1.26.0"] == ["driver-too-old"]


def test_a_torch_that_holds_a_release_back_is_no_package_to_ask_pip_about() -> None:
    made = resolve(synthetic.facts(PINNED, *SET, driver="13.0"), PlanOptions(), MATRIX)

    assert "folder-owned" in {why.code for row in made.rejected for why in row.reasons}
    assert not {"other-cuda", "other-version", "match-torch"} & {
        row.change.code for row in made.unlock
    }


def test_the_build_that_is_there_is_judged_by_those_of_its_platform() -> None:
    [build] = [row for row in MATRIX.builds if row.platform == "linux_aarch64"]
    arm = build._replace(version="1.27.0")
    damaged = {"distribution": "onnxruntime-gpu", "version": "1.28.0", "intact": False}
    packages = (PINNED, *SET, "onnxruntime-gpu 1.28.0")
    facts = synthetic.facts(*packages, onnxruntime=damaged, driver="13.0")
    made = resolve(facts, PlanOptions(), MATRIX._replace(builds=(*MATRIX.builds, arm)))

    assert "two-cuda-majors" not in {row.code for row in made.findings}


def test_a_check_tells_the_verdict_with_the_torch_that_it_would_take() -> None:
    asked = synthetic.facts("torch 2.6.0+cu118", driver="12.8"), PlanOptions(torch="match"), MATRIX
    whole, check = resolve(*asked), resolve_for_check(*asked)

    assert (check.verdict, check.release) == (whole.verdict, whole.release)
    assert check.unlock == ()
    low = synthetic.facts("torch 2.6.0+cu118", driver="11.8"), PlanOptions(torch="match"), MATRIX
    assert resolve(*low).unlock
    assert resolve_for_check(*low).unlock == ()


def test_who_holds_the_torch_that_is_there_is_named_where_another_is_wished_for() -> None:
    app = {"name": "app", "version": "1", "requires": ["torch==2.7.1"]}
    rows = told(PINNED, *SET, app, wish="==2.6.0", driver="12.8")

    assert "torch-wish-unfit" in rows
    assert rows["torch-held"] == [{"severity": "warning", "by": "app 1 (torch==2.7.1)"}]


@pytest.mark.parametrize(
    ("wish", "installed", "found"),
    [
        (">2.7.1", "2.7.1", "2.9.0"),  # the installed one is not wished for: the newest
        (">=2.7.1", "2.6.0", "2.9.0"),
        (">=2.6.0", "2.6.0", "2.6.0"),
        (">=2.6.0,!=2.7.1", "2.7.0", "2.8.0"),  # the nearest, of two as far the newer
    ],
)
def test_which_release_is_taken_of_those_that_are_wished_for(
    wish: str, installed: str, found: str
) -> None:
    newer = (build("2.8.0", "cu128", "12.8"), build("2.9.0", "cu128", "12.8"))
    matrix = MATRIX._replace(torch=TorchTable(builds=(*BUILDS, *newer)))
    facts = synthetic.facts(f"torch {installed}", driver="12.8")
    made = resolve(facts, PlanOptions(torch=wish), matrix, unlocking=False)
    [torch] = [wheel for wheel in made.selection if wheel.name == "torch"]

    assert torch.version.partition("+")[0] == found


def test_an_installed_torch_of_the_own_index_is_kept_though_pypi_has_its_twin() -> None:
    facts = synthetic.facts("torch 2.7.1+cu128", driver="12.8")
    made = resolve(facts, PlanOptions(torch="match"), MATRIX)

    assert "torch" not in {wheel.name for wheel in made.install}
    assert ("torch", "2.7.1+cu128") in {(row.name, row.version) for row in made.selection}


def test_a_project_is_told_only_what_pypi_has() -> None:
    document = synthetic.document("torch 2.7.1+cu126", driver="12.6")
    document["python"] |= {"project": "uv"}
    made = resolve(facts_json.from_json(document), PlanOptions(torch="match"), MATRIX)
    [row] = [row for row in made.findings if row.code == "managed-by-uv"]

    assert {wheel.name for wheel in made.selection if wheel.index_url != "pypi"} >= {"torch"}
    assert "onnxruntime-gpu==" in values_of(row)["lines"]
    assert "torch==" not in values_of(row)["lines"]
