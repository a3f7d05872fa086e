"""The findings of a plan: what is wrong here, and what is worth knowing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packaging.specifiers import SpecifierSet

from ..companions.contents import LIBRARIES, LINE, PLACEHOLDER
from ..errors import cause
from ..facts.model import CPU_BUILD, GPU_BUILD, OPERATING_SYSTEM
from ..facts.project_tool import LOCKS, RECEIPTS
from ..facts.target import CONDA_TOOLS
from ..matrix.model import Build
from ..messages.sections import size
from ..plan.model import COMMAND_ELSEWHERE, SHADOWED, Rejected
from ..plan.reasons import Finding, Named, Severity, Values, finding
from ..plan.wheels import PYPI, Wheel, oldest_python, short_name
from ..versions import allows, major, newest_first
from . import msvc
from .applications import application_findings
from .candidate import Candidate
from .changes import Changes, lying_in_wheels, not_in_system
from .environment import required_name
from .findings_machine import WITHOUT_A_DRIVER, machine_findings
from .findings_others import (
    conflict_findings,
    consumer_findings,
    cudnn_findings,
    held_findings,
    kept_findings,
    pin_findings,
    removal_findings,
)
from .findings_torch import in_torch_findings, torch_findings
from .options import RTX
from .plugins import plugin_findings
from .situation import Situation
from .tensorrt import tensorrt_findings
from .torch_choice import TorchSearch
from .unknown_releases import UnknownRelease


def findings(
    situation: Situation,
    best: Candidate | None,
    changes: Changes | None,
    rejected: Sequence[Rejected],
    works: Sequence[Candidate],
    *,
    search: TorchSearch | None,
    unknown: Sequence[UnknownRelease] = (),
) -> tuple[Finding, ...]:
    """Return the findings, the worst first.

    `best` is the candidate that the plan takes and `changes` what it does for it; both are None
    where nothing works. `works` are all candidates that work, newest first.
    """
    found = [
        *_change_findings(situation),
        *_shadowing_findings(situation),
        *machine_findings(situation),
        *_wish_findings(situation),
        *(_owner_findings(situation) if changes else ()),
        *_provider_findings(situation, best),
        *_installed_release_findings(situation, rejected),
        *_unknown_release_findings(situation, unknown),
        *consumer_findings(situation, rejected),
        *cudnn_findings(situation, changes),
    ]
    if best is None or changes is None:
        found += torch_findings(situation, search)
    else:
        found += [
            *_library_findings(situation, best, changes),
            *torch_findings(situation, search),
            *in_torch_findings(situation, changes.selection),
            *_windows_findings(situation, best, changes),
            *(() if best.plugin else _companion_findings(situation, best, changes)),
            *_project_findings(situation, best, changes),
            *pin_findings(situation, best, coming=bool(changes)),
            *conflict_findings(situation, best, changes),
            *held_findings(situation, changes),
            *application_findings(situation),
            *tensorrt_findings(situation, best.build, best.tensorrt),
        ]
        same = situation.installed_release == best.version and not situation.alternative_provider
        if same and works[0].version != best.version:
            found.append(
                finding("newer-works", "info", version=works[0].version, kept=best.version)
            )
        elif works[0].version != best.version and not situation.alternative_provider:
            by = tuple(
                consumer.by
                for consumer in situation.consumers
                if consumer.cuda == major(best.build.cuda)
            )
            newer = {"version": works[0].version, "chosen": best.version}
            found.append(finding("newer-for-another-cuda", "info", **newer, by=by))
    order = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(found, key=lambda each: order[each.severity]))


def findings_around(situation: Situation, best: Build | None) -> tuple[Finding, ...]:
    """Return what no package fixes: of the machine, the environment, and TensorRT for `best`."""
    other = tensorrt_findings(situation, best) if best else ()
    return (*_shadowing_findings(situation), *machine_findings(situation), *other)


def _wish_findings(situation: Situation) -> Iterator[Finding]:
    """Say where the matrix ends if it holds no release that `--ort` allows."""
    wish = situation.options.onnxruntime
    versions = [build.version for build in situation.matrix.builds]
    if not any(allows(SpecifierSet(wish), version) for version in versions):
        newest = max(versions, key=newest_first, default="-")
        yield finding(
            "release-not-in-matrix",
            "error",
            wish=f"--ort {wish}",
            newest=newest,
            date=situation.matrix.date,
        )


def _change_findings(situation: Situation) -> Iterator[Finding]:
    python = situation.facts.python
    if python.change is not None:
        severities: dict[str, Severity] = {"unfinished": "error", "stale": "warning"}
        severity = severities.get(python.change, "info")
        yield finding(f"change-{python.change}", severity, size=size(python.change_size))


def _shadowing_findings(situation: Situation) -> Iterator[Finding]:
    """Say what a program started here would take in place of the environment."""
    path = situation.facts.python.shadow
    if path is not None:
        pythonpath = situation.facts.environment.get("PYTHONPATH")
        evidence = [f"PYTHONPATH={pythonpath}"] if pythonpath else []
        yield finding(SHADOWED, "error", *evidence, path=path)
    if situation.facts.python.command is not None:
        yield finding(COMMAND_ELSEWHERE, "error", path=situation.facts.python.command)
    if situation.facts.python.moved_from is not None:
        yield finding("environment-moved", "info", path=situation.facts.python.moved_from)


def _owner_findings(situation: Situation) -> Iterator[Finding]:
    """Say why `--apply` refuses the environment."""
    python = situation.facts.python
    if python.externally_managed:
        yield finding(
            "externally-managed", "warning", owner=cause(python.managed_by or OPERATING_SYSTEM)
        )
    if python.environment in {"conda", "user"}:
        tool = "pixi" if python.managed_by == "pixi" else python.environment
        yield finding(f"{tool}-environment", "warning")
    if python.read_only and python.environment != "user":  # else it is reported already
        yield finding("environment-read-only", "warning")


def _provider_findings(situation: Situation, best: Candidate | None) -> Iterator[Finding]:
    """Say what provides the GPU, or what is wrong with onnxruntime-gpu."""
    kept = (
        situation.alternative_provider
        if best and situation.uses_alternative_provider(best.build)
        else None
    )
    if situation.options.provider != RTX:
        yield from kept_findings(kept) if kept else _build_findings(situation)
    elif best and best.plugin:
        yield from plugin_findings(situation, best.plugin)


def _build_findings(situation: Situation) -> Iterator[Finding]:
    """Compare the folder `onnxruntime` with the distributions that own it."""
    facts = situation.facts
    if (
        situation.alternative_provider
    ):  # whole and alone there; what is wrong with it is a reason of the rules
        return
    build = facts.onnxruntime
    gpu = facts.package(GPU_BUILD)
    for package in facts.packages:
        if package.provided or package.name not in situation.matrix.owners - {GPU_BUILD}:
            continue
        if package.outside:
            if facts.python.shadow is None:  # else the environment's own is not imported first
                name = f"{package.name} {package.version}"
                yield finding("copy-outside", "info", distribution=name)
            continue
        code = "cpu-build-installed" if package.name == CPU_BUILD else "other-build-installed"
        evidence = [f"onnxruntime/: {build.distribution} {build.version}"] if build else []
        yield finding(code, "error", *evidence, distribution=f"{package.name} {package.version}")
    if gpu is None:
        yield finding("gpu-build-missing", "error")
        return
    if build is None:
        yield finding("folder-gutted", "error", distribution=f"{gpu.name} {gpu.version}")
    elif build.distribution not in {None, GPU_BUILD}:
        yield finding(
            "folder-overwritten",
            "error",
            distribution=f"{gpu.name} {gpu.version}",
            by=f"{build.distribution} {build.version or ''}".strip(),
        )
    elif not build.intact or build.version not in {None, gpu.version}:
        folder = f"onnxruntime/: {build.distribution or gpu.name} {build.version or ''}".strip()
        yield finding("folder-damaged", "error", folder, distribution=f"{gpu.name} {gpu.version}")


def _installed_release_findings(
    situation: Situation, rejected: Sequence[Rejected]
) -> Iterator[Finding]:
    """Say why the installed release cannot be used: with the reasons of the rules.

    What follows from an error of the machine is left out: that is said already.
    """
    if situation.onnxruntime is None:
        return
    installed = situation.onnxruntime.packages[-1]
    if not situation.alternative_provider and installed.version in situation.matrix.gone:
        yield finding("release-gone", "info", version=installed.version)
    name = installed.name, installed.version
    for rejection in [
        rejection for rejection in rejected if (rejection.package, rejection.version) == name
    ][:1]:
        for why in rejection.reasons:
            if why.code in WITHOUT_A_DRIVER:
                continue
            values: Values = (("build", Named(*name)), *why.values)
            yield Finding(code=why.code, severity="error", values=values)


def _unknown_release_findings(
    situation: Situation, unknown: Sequence[UnknownRelease]
) -> Iterator[Finding]:
    """Name what was judged without a row of the matrix, and what it is taken to be like."""
    build = situation.facts.onnxruntime
    unread = situation.installed_build is None and any(
        release.name == GPU_BUILD for release in unknown
    )
    if unread and build and build.intact and build.distribution in {None, GPU_BUILD}:
        yield finding("release-unread", "error", version=build.version or "")
    if unknown:
        evidence = (
            f"{release.name} {release.version}: like {release.like or '-'}" for release in unknown
        )
        releases = tuple(f"{release.name} {release.version}" for release in unknown)
        yield finding(
            "unknown-release", "info", *evidence, releases=releases, date=situation.matrix.date
        )


def _library_findings(situation: Situation, best: Candidate, changes: Changes) -> Iterator[Finding]:
    installing = {wheel.name: wheel for wheel in changes.install}
    missing: dict[str, list[str]] = {}
    lacking = not_in_system(best, situation)
    for component in best.components.chosen:
        name, version = component.release.name, component.release.version
        installed = situation.package(name)
        if name not in installing:
            continue
        if installed is None:
            needed = [need.library for need in best.build.needs if need.distribution == name]
            if name in lacking:
                missing[name] = needed
            continue
        yield finding(
            "library-unfit" if installed.intact else "library-gutted",
            "error",
            installed=f"{name} {installed.version}",
            distribution=f"{name} {version}",
        )
    if missing:
        yield finding(
            "library-missing",
            "error",
            *(library for needed in missing.values() for library in needed),
            names=tuple(map(short_name, missing)),
            cuda=major(best.build.cuda),
        )
    for library in sorted(changes.system.keys() - lying_in_wheels(changes.system, best, situation)):
        system = changes.system[library]
        values = {"path": system.path or "", "version": system.version or ""}
        yield finding("system-library", "info", library=library, **values)
    yield from _requirement_findings(situation, best, changes)
    numpy = situation.package("numpy")
    if numpy is not None and numpy.name in installing:
        old = newest_first(numpy.version) < newest_first(installing[numpy.name].version)
        code = "numpy-too-old" if old else "numpy-too-new"
        yield finding(code, "error", installed=numpy.version, version=best.version)
    yield from removal_findings(situation, changes)


def _requirement_findings(
    situation: Situation, best: Candidate, changes: Changes
) -> Iterator[Finding]:
    """Say what onnxruntime requires that is not there, or of which files are gone."""
    gutted = [package for line in changes.requires if (package := _gutted_package(line, situation))]
    for package in gutted:
        yield finding("library-gutted", "error", installed=str(package), distribution=str(package))
    listed = tuple(line for line in changes.requires if not _gutted_package(line, situation))
    if listed:
        by = situation.distributions_of(best.build)[0].name
        yield finding("requirement-missing", "error", by=by, requirements=listed)


def _gutted_package(line: str, situation: Situation) -> Named | None:
    """Return what is to be installed again by this requirement: files of it are gone."""
    name = required_name(line)[0]
    installed = situation.package(name)
    if installed is None or installed.intact or line != f"{name}=={installed.version}":
        return None
    return Named(name, installed.version)


def _windows_findings(situation: Situation, best: Candidate, changes: Changes) -> Iterator[Finding]:
    """Look for Microsoft's runtime, and for the zlib that a cuDNN 8 without a wheel needs.

    cuDNN 8.3 to 8.9 links zlibwapi.dll; in all six wheels for Windows (8.9.4.25 to 8.9.7.29) zlib
    is a part of cudnn_cnn_infer64_8.dll, and torch has the file beside its cuDNN.
    """
    yield from msvc.msvc_findings(best.build, best.runtime, situation)
    libraries = {library.name.lower() for library in situation.facts.libraries}
    windows = situation.facts.platform.system == "windows"
    wheels = [wheel for wheel in changes.selection if wheel.name.startswith("nvidia-cudnn")]
    own = best.build.cudnn == "8" and not wheels and situation.torch is None
    if windows and own and "zlibwapi.dll" not in libraries:
        yield finding("zlibwapi-needed", "warning", version=best.version)


def _companion_findings(
    situation: Situation, best: Candidate, changes: Changes
) -> Iterator[Finding]:
    """Say who does not load the libraries, and who would install the CPU build again."""
    names = [companion.name for companion in changes.companions]
    if LIBRARIES in names and not changes.install:
        yield finding("libraries-not-loaded", "error")
    if (
        PLACEHOLDER in names
        and situation.environment.demanded(PLACEHOLDER)
        and PLACEHOLDER not in changes.uninstall
    ):
        by = tuple(
            sorted((demand.by for demand in situation.environment.demanded(PLACEHOLDER)), key=str)
        )
        yield finding("onnxruntime-not-provided", "warning", by=by)
    if (
        situation.facts.python.autoload is False
        and situation.options.autoload
        and not changes.system
    ):
        yield finding("autoload-needs-line", "warning", line=LINE)
    elif not (situation.options.autoload or changes.system or situation.package(LIBRARIES)):
        code = "preload-line" if best.build.preload_dlls else "preload-none"
        yield finding(code, "warning", version=best.version)


def _project_findings(situation: Situation, best: Candidate, changes: Changes) -> Iterator[Finding]:
    """Name the tool that would undo the fix, and what it needs to install the packages itself.

    The files of uv, Poetry, PDM and Pipenv are written by `--apply --write`.
    """
    tool, locked = situation.facts.python.project, situation.facts.python.locked
    fixed = changes or tool in LOCKS or situation.package(LIBRARIES) is not None
    if tool is None or not fixed or (not changes and locked == best.version):
        return
    wheels = [wheel for wheel in changes.selection if wheel.index_url == PYPI]
    wheels.sort(key=lambda wheel: wheel.name != GPU_BUILD)
    python = oldest_python([best.build], wheels, situation.markers["python_version"])

    def since(wheel: Wheel) -> str:
        return "" if wheel.every_python else f"; python_version >= '{python}'"

    yield finding(
        f"managed-by-{tool if tool in {*LOCKS, *RECEIPTS, *CONDA_TOOLS} else 'another'}",
        "warning",
        tool=tool,
        lines=", ".join(f'"{wheel.name}=={wheel.version}{since(wheel)}"' for wheel in wheels),
        pins=" ".join(f"{wheel.name}=={wheel.version}" for wheel in wheels),
        table=", ".join(f'{wheel.name} = "=={wheel.version}"' for wheel in wheels),
    )
