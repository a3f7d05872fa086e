"""What a machine and an environment say of what a log says.

In: explanations, facts, and the plan that was made from them; out: whether each cause is confirmed
here, is not so here, or cannot be seen here, with what was seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from packaging.specifiers import SpecifierSet

from ...facts.model import GPU_BUILD, OTHER_PACKAGES, PACKAGE_FILES, TEXT, Driver, Facts
from ...log_lines.explanations import Explanation
from ...log_lines.failures import RELEASE, Failure, FailureTable
from ...log_lines.wordings import LibraryName, reader_of
from ...matrix.torch import TORCH
from ...plan.model import Plan
from ...plan.reasons import Finding, Reason, reason
from ...versions import major, newest_first, numbers

State = Literal["confirmed", "not-so", "unseen"]

ANY = "*"
"""In `Failure.findings`: whatever is wrong here."""
LIBRARIES = frozenset({"libraries", "cudnn", "zlib", "msvc"})
WINDOWS_ONLY = frozenset({"zlib", "msvc"})
NO_WHEEL = frozenset({"no-wheel-python", "no-wheel-platform", "glibc-too-old", "musl", "jetson"})
"""Why the index has no wheel of a release for this Python and system."""
MISSING = frozenset(
    {"gpu-build-missing", "library-missing", "requirement-missing", "tensorrt-missing"}
)
"""Findings of what is not there: no text that lists no packages shows that."""
IN_PLACE = {"onnxruntime-shadowed": "here-not-shadowed", "environment-moved": "here-in-place"}
"""What is said of an environment that was looked at, and has no such failure."""

CUDNN = "nvidia-cudnn"
"""How the wheels of cuDNN are called."""
FAMILIES = {"curand": "nvidia-curand", "cudnn": CUDNN, "cudnn-part": CUDNN}
"""How the wheels begin that bring a part which several majors of CUDA have under one name."""
OTHERS_CUDNN = "here-others-cudnn"
"""Why it is so here where an installed package wants another cuDNN than the plan has."""
DRIVER_UNSEEN = "here-driver-unseen"
"""Why it is not so here where the driver is new enough, and the program did not see it."""

_GLIBC = re.compile(r"GLIBC_(\d{1,2}\.\d{1,3})")
_INSUFFICIENT = re.compile("driver version is insufficient")
_FILE_MAJOR = re.compile(r"(?:\.so\.|64_)(\d{1,2})(?!\d)")
"""`8` in `libcudnn_ops_infer.so.8` and `cudnn_ops_infer64_8.dll`: the major of its wheel."""


class Observation(NamedTuple):
    """What the machine says of one explanation."""

    state: State
    findings: tuple[Finding, ...] = ()
    """What confirms it."""
    why: Reason | None = None
    """What is there instead, or why it cannot be seen: a label of the texts."""


def observe(
    explanations: Sequence[Explanation],
    table: FailureTable,
    facts: Facts,
    plan: Plan,
    releases: Collection[str] = (),
) -> tuple[Observation, ...]:
    """Return what the machine says of each explanation; `releases`: those that the matrix holds."""
    return tuple(_observe(each, table, facts, plan, releases) for each in explanations)


def _observe(
    explanation: Explanation,
    table: FailureTable,
    facts: Facts,
    plan: Plan,
    releases: Collection[str],
) -> Observation:
    row = table.by_code[explanation.code]
    elsewhere = _elsewhere(explanation, row, facts)
    if elsewhere is not None:
        return elsewhere
    if row.about == "packages":
        return _of_index(explanation, plan, releases)
    if row.about == "system":
        found = _of_plan(explanation, table, facts, plan)  # of the release that is installed
        return found if found.state != "unseen" else _of_libc(_floor(explanation), facts)
    for by in filter(None, (each.by_release for each in table.failures)):
        if by.inside == row.code:
            return _of_release(by.releases, facts)
    return _of_plan(explanation, table, facts, plan)


def _elsewhere(explanation: Explanation, row: Failure, facts: Facts) -> Observation | None:
    """Return what is said where such a failure cannot be here, or not be seen; else None."""
    if explanation.origin is not None:
        return Observation("unseen", why=reason("here-other-program"))
    if row.about == "memory":
        return Observation("unseen", why=reason("here-memory"))
    if row.about in WINDOWS_ONLY and facts.platform.system != "windows":
        return Observation("not-so", why=reason("here-linux"))
    if row.about == "platform":  # facts are of Linux and of Windows alone
        return Observation(
            "not-so", why=reason("here-system", system=facts.platform.system.title())
        )
    if row.about == "torch" and facts.package(TORCH) is None:
        if OTHER_PACKAGES in facts.sources:
            return Observation("unseen", why=reason("here-no-list"))
        return Observation("not-so", why=reason("here-without", name=TORCH))
    if row.glibc and _of_libc(row.glibc, facts).state == "confirmed":  # older: it is not seen there
        return _of_libc(row.glibc, facts)._replace(state="not-so")
    return None


def _of_plan(
    explanation: Explanation, table: FailureTable, facts: Facts, plan: Plan
) -> Observation:
    """Say whether the plan has the findings that a row names, of the libraries that a log names."""
    row = table.by_code[explanation.code]
    known = tuple(
        each
        for each in plan.findings
        if each.code in row.findings or (ANY in row.findings and each.severity != "info")
    )
    named = [*map(reader_of(table.libraries), explanation.libraries)]
    lacks = not named or any(_comes(library, plan) for library in named)
    shown = tuple(each for each in known if each.code != "library-missing" or lacks)
    user = next((each for each in plan.consumers if {*each.needs} & {*explanation.libraries}), None)
    if user is not None and user.cudnn not in {None, *_cudnn_majors(plan)}:
        values = {"name": user.name, "version": user.version, "cudnn": str(user.cudnn)}
        return Observation("confirmed", why=reason(OTHERS_CUDNN, **values))
    if shown and OTHER_PACKAGES in facts.sources:
        shown = tuple(each for each in shown if each.code not in MISSING)
        if not shown:
            return Observation("unseen", why=reason("here-no-list"))
    if shown:
        return Observation("confirmed", findings=shown)
    if known:
        return Observation("unseen", why=reason("here-only-there"))
    if row.code == "libraries-mixed" and (before := _on_search_path(facts)):
        return Observation("confirmed", why=reason("here-search-path", path=before))
    if not row.findings:
        return Observation("unseen", why=reason("here-only-there"))
    if row.code == "device-id-invalid" and facts.gpus:
        return Observation("unseen", why=reason("here-gpus", count=str(len(facts.gpus))))
    if row.code == "driver-too-old" and _is_driver_unseen(explanation, facts, plan):
        return Observation("not-so", why=reason(DRIVER_UNSEEN))
    instead = _instead(row, facts, plan)
    return (
        Observation("not-so", why=instead)
        if instead
        else Observation("unseen", why=_unseen(row, facts, plan))
    )


def _comes(library: LibraryName, plan: Plan) -> bool:
    """Return whether `plan` brings the wheel of `library`, or what a provider or NVRTC may lack.

    No name says which wheel has a part of NVRTC.
    """
    if library.part.startswith(("provider", "nvrtc")):
        return bool(plan.install)
    number, family = _FILE_MAJOR.search(library.name), FAMILIES.get(library.part, ANY)
    return any(
        wheel.name == library.distribution
        or (wheel.name.startswith(family) and (not number or number[1] == major(wheel.version)))
        for wheel in plan.install
    )


def _cudnn_majors(plan: Plan) -> set[str]:
    """Return the major of the cuDNN that the plan has."""
    return {each.version.split(".")[0] for each in plan.selection if each.name.startswith(CUDNN)}


def _on_search_path(facts: Facts) -> str | None:
    """Return a library of CUDA that LD_LIBRARY_PATH puts before those of the environment."""
    folders = facts.environment.get("LD_LIBRARY_PATH", "").split(":")
    paths = (library.path or "" for library in facts.libraries)
    return next((path for path in paths if path.rpartition("/")[0] in {*folders} - {""}), None)


def _instead(row: Failure, facts: Facts, plan: Plan) -> Reason | None:
    """Return what is there instead of a failure that was looked for and not found."""
    build = facts.onnxruntime
    seen = PACKAGE_FILES not in facts.sources
    if build is not None and (build.distribution != GPU_BUILD or not build.intact):
        build = None
    if row.about == "driver" and facts.driver is not None and not facts.driver.error:
        return _driver_here(facts.driver, facts.sources.get("driver", ""))
    if row.code in IN_PLACE and facts.python.executable is not None:
        return reason(IN_PLACE[row.code])
    if seen and row.about in {"build", "native", "system"} and build is not None:
        return reason("here-build", version=build.version or "?", cuda=build.cuda or "?")
    looked_for = plan.verdict != "impossible"  # they are those of the release that is chosen
    if seen and row.about in LIBRARIES and build is not None and looked_for:
        return reason("here-libraries", version=build.version or "?")
    package = facts.package(row.about) if row.about in {"numpy", TORCH} else None
    known = not any(each.code == "torch-unknown" for each in plan.findings)
    if row.code == "torch-without-this-gpu":  # what code it has is known of the builds with a cuDNN
        known = any(each.name == TORCH and each.cudnn for each in plan.consumers)
    if package is not None and known:
        return reason("here-package", name=package.name, version=package.version)
    if row.about == "gpu-code" and facts.gpus and build is not None:
        return reason("here-gpu-code", version=build.version or "?")
    healthy = seen and plan.verdict == "healthy" and not plan.unfixable
    return reason("here-healthy") if healthy else None


def _driver_here(driver: Driver, source: str) -> Reason | None:
    """Say which driver works here. A text says which is installed, not what its program met."""
    version = driver.version or "?"
    if source.startswith(TEXT):
        return None
    if driver.cuda is None:
        return reason("here-driver-there", version=version)
    return reason("here-driver", version=version, cuda=driver.cuda)


def _is_driver_unseen(explanation: Explanation, facts: Facts, plan: Plan) -> bool:
    """Return whether the driver of a text runs the release there, or any where it names none.

    CUDA says the same where it finds no driver at all.
    """
    named = facts.package(GPU_BUILD) is not None  # it is no finding, so it works
    newer = any(
        each.code == "driver-too-old" for rejection in plan.rejected for each in rejection.reasons
    )
    described = facts.sources.get("driver", "").startswith(TEXT) and plan.verdict != "impossible"
    either = any(map(_INSUFFICIENT.search, _lines(explanation)))
    return described and either and (named or not newer)


def _unseen(row: Failure, facts: Facts, plan: Plan) -> Reason:
    build = facts.onnxruntime
    if row.about != "driver" and (build is None or build.distribution != GPU_BUILD):
        return reason("here-no-gpu-build")
    if row.about in LIBRARIES and plan.verdict == "impossible":
        return reason("here-nothing-works")
    return reason("here-no-files" if PACKAGE_FILES in facts.sources else "here-only-there")


def _of_release(releases: SpecifierSet, facts: Facts) -> Observation:
    """Return what is said of a failure that only some releases of onnxruntime-gpu have."""
    build = facts.onnxruntime
    if build is None or build.version is None:
        return Observation("unseen", why=reason("here-no-gpu-build"))
    state: State = "confirmed" if releases.contains(build.version) else "not-so"
    return Observation(state, why=reason("here-release", version=build.version))


def _of_libc(floor: str | None, facts: Facts) -> Observation:
    """Say whether the C library here is older than the glibc that a log names."""
    found = facts.platform.c_library
    if floor is None or found is None:
        return Observation("unseen", why=reason("here-only-there"))
    kind, version = found
    newer = kind == "glibc" and version >= numbers(floor)
    libc = str(facts.platform.libc)
    return Observation("not-so" if newer else "confirmed", why=reason("here-libc", libc=libc))


def _floor(explanation: Explanation) -> str | None:
    named = [found for line in _lines(explanation) for found in _GLIBC.findall(line)]
    return max(named, key=numbers) if named else None


def _lines(explanation: Explanation) -> list[str]:
    return [seen.line for seen in explanation.evidence]


def _of_index(explanation: Explanation, plan: Plan, releases: Collection[str]) -> Observation:
    """Say whether the index has the release that a log asks for, for this Python and system."""
    if explanation.code != "no-wheel":
        network = explanation.code == "index-unreachable"
        return Observation("unseen", why=reason("here-network" if network else "here-installing"))
    named = [found["release"] for line in _lines(explanation) for found in RELEASE.finditer(line)]
    version = named[0] if named else plan.release
    if version is None or not releases:
        return Observation("unseen", why=reason("here-installing"))
    if version not in releases:
        newest = max(releases, key=newest_first)
        state: State = "confirmed" if numbers(version) < numbers(newest) else "unseen"
        why = reason("here-no-release", version=version, date=plan.matrix_date)
        return Observation(state, why=why)
    against = [
        each
        for rejection in plan.rejected
        if rejection.version == version
        for each in rejection.reasons
    ]
    wheel = next((each for each in against if each.code in NO_WHEEL), None)
    if wheel is not None:
        return Observation("confirmed", why=wheel)
    return Observation("not-so", why=reason("here-wheel", version=version))
