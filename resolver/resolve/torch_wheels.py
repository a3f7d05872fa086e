"""What belongs to a torch: its wheel, its companions, and what goes when it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..facts.model import Package
from ..matrix.torch import TORCH, DomainLibrary, PypiWheel, TorchBuild
from ..plan.wheels import Wheel, on_pypi
from ..versions import allows, major, newest_first
from .situation import Situation


def matching_domain_library(name: str, build: TorchBuild, here: Situation) -> DomainLibrary | None:
    """Return the release of the companion `name` that was made for `build`.

    The one that requires this torch exactly; else the newest that allows it and was made with a
    release of torch for the same CUDA: the index has it for no other.
    """
    rows = [
        row
        for row in here.matrix.torch.companions
        if row.name == name
        and row.platform == here.platform
        and allows(row.torch, build.version)
        and _fitting(row.wheels, here)
    ]
    rows.sort(key=lambda row: newest_first(row.version), reverse=True)
    exact = [row for row in rows if any(each.operator == "==" for each in row.torch)]
    return next(
        (row for row in (*exact, *rows) if row in exact or build.local in _made_for(row, here)),
        None,
    )


def _made_for(companion: DomainLibrary, here: Situation) -> set[str]:
    """Return the labels of the torch release that a companion without an exact pin was made with.

    torchvision names it as the oldest it takes, torchaudio has its number.
    """
    made = next((each.version for each in companion.torch), companion.version)
    minor = made.rpartition(".")[0]
    builds = here.matrix.torch.of(here.platform)
    return {build.local for build in builds if build.version.rpartition(".")[0] == minor}


def _fitting(wheels: Sequence[PypiWheel], here: Situation) -> PypiWheel | None:
    """Return the wheel for the Python of `here`, or for every Python."""
    return next((row for row in wheels if row.python in {here.abi, "py3"}), None)


def wheel_of_torch(
    name: str, build: TorchBuild, release: str, wheels: Sequence[PypiWheel], here: Situation
) -> Wheel:
    """Return the wheel of torch or a companion: PyPI's, or what the index for its CUDA has."""
    row = _fitting(wheels, here)
    if build.wheels and row is not None:
        return on_pypi(name, release, row)
    return _from_index(name, f"{release}+{build.local}", build.local, here)


def _from_index(name: str, release: str, label: str, here: Situation) -> Wheel:
    index = f"{here.options.torch_index.rstrip('/')}/{label}"
    return Wheel(name=name, version=release, index_url=index, file="", size=0, sha256="")


def kept_wheel(package: Package, build: TorchBuild | None, here: Situation) -> Wheel:
    """Return the wheel of what is installed and stays; `build` is None for one not known."""
    if "+" in package.version:
        label = package.version.partition("+")[2].partition(".")[0]  # cu121.with.pypi.cudnn
        return _from_index(package.name, package.version, label, here)
    wheels: Sequence[PypiWheel] = build.wheels if build else ()
    if package.name != TORCH:
        wheels = next(
            (
                row.wheels
                for row in here.matrix.torch.companions
                if (row.name, row.version, row.platform)
                == (package.name, package.version, here.platform)
            ),
            (),
        )
    return on_pypi(package.name, package.version, _fitting(wheels, here))


def kept_torch(here: Situation) -> tuple[Wheel, ...]:
    """Return the installed torch where it has a say in the set: where it is for CUDA."""
    package = here.facts.package(TORCH)
    if package is None or here.torch is None or here.torch.cuda is None:
        return ()
    return (kept_wheel(package, here.torch.build, here),)


def orphaned_distributions(here: Situation, there: Situation) -> Iterator[str]:
    """Yield NVIDIA's wheels that torch alone required, for a CUDA major that it leaves.

    They would own files that wheels for the other major need, or lie there unused.
    """
    before, after = here.torch, there.torch
    package = here.facts.package(TORCH)
    if (
        before is None
        or after is None
        or package is None
        or before.cuda is None
        or after.cuda is None
        or major(before.cuda) == major(after.cuda)
    ):
        return
    own = {
        f"{row.name} {row.version}" for row in (package, here.facts.package("cuda-toolkit")) if row
    }
    for name, demands in here.demands.items():
        if (
            name.startswith("nvidia-")
            and here.facts.package(name) is not None
            and {demand.by for demand in demands} <= own
        ):
            yield name
