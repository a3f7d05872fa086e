"""What the look-up page shows: each build with what it runs on, and how each of that is known.

The rules are those of a plan: which drivers and GPUs, and which torch, a build goes with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ortgpu_fix.facts.model import Gpu, Package
from ortgpu_fix.matrix.model import Build, Matrix
from ortgpu_fix.matrix.torch import TORCH, TomlTable, TorchBuild
from ortgpu_fix.report.matrix import builds_in_order, floor, pythons
from ortgpu_fix.report.supported import elsewhere
from ortgpu_fix.resolve.candidate import without_wheels
from ortgpu_fix.resolve.gpu_code import runs_on
from ortgpu_fix.resolve.rules import BUILD_RULES, is_usable
from ortgpu_fix.resolve.situation import Situation
from ortgpu_fix.resolve.torch_installed import installed_torch_of
from ortgpu_fix.resolve.torch_rules import against_torch
from ortgpu_fix.versions import major, newest_first, numbers

OLDEST_BRANCH = 450
"""The branches before it run no CUDA that a build of today's index is made for."""


class Generation(NamedTuple):
    """A generation of GPUs."""

    name: str
    """`Ada Lovelace`."""
    capabilities: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]]
    """By compute capability: the products."""


class GenerationCode(NamedTuple):
    """The GPUs of a generation that a build has code for."""

    sass: tuple[str, ...]
    ptx: tuple[str, ...]
    """Those that it has PTX for alone, which the driver compiles."""


class KnownValue(NamedTuple):
    """What is known of a build, from where, and since when."""

    label: str
    """Of the site's texts: `lookup-cuda`."""
    value: str
    source: str
    since: str


class LookedUp(NamedTuple):
    """A build in the look-up page."""

    build: Build
    driver: str
    pythons: str
    code: tuple[GenerationCode, ...]
    """For each generation."""
    torch: tuple[TorchBuild, ...]
    """The builds of torch that it shares a process with, the oldest first."""
    runs: Mapping[str, tuple[int, int]]
    """By compute capability: the first and the last driver branch that it runs with."""
    facts: tuple[KnownValue, ...]


class LookUp(NamedTuple):
    """All that the page shows."""

    rows: tuple[LookedUp, ...]
    generations: tuple[Generation, ...]
    branches: Mapping[int, str]
    """Driver branch to its CUDA, the newest first."""
    torch: tuple[str, ...]
    """The names of all builds of torch that some row goes with, the newest first."""
    gone: Mapping[str, str]
    date: str
    digest: str


class SourceTables(NamedTuple):
    """What the parsed matrix does not keep: the tables with their sources and dates."""

    builds: Sequence[TomlTable]
    floors: Sequence[TomlTable]
    families: Sequence[TomlTable]
    arm: Sequence[str]
    """The compute capabilities of GPUs whose board has an Arm processor."""
    read: str
    """When the wheels of onnxruntime-gpu were read."""
    torch_read: str


def look_up(matrix: Matrix, tables: SourceTables) -> LookUp:
    """Return what the page shows of `matrix`, which has the table of torch."""
    generations = _generations(tables.families)
    branches = {
        branch: matrix.branches[branch]
        for branch in sorted(matrix.branches, reverse=True)
        if branch >= OLDEST_BRANCH
    }
    by_key = {(row["version"], row["platform"]): row for row in tables.builds}
    known: dict[object, tuple[dict[str, tuple[int, int]], tuple[TorchBuild, ...]]] = {}
    rows: list[LookedUp] = []
    for build in builds_in_order(matrix):
        code = tuple(_code(build, each, tables.arm) for each in generations)
        alike = build._replace(version="", wheels=(), requires=())
        if alike not in known:
            served = [each for row in code for each in (*row.sass, *row.ptx)]
            runs = _runs(build, matrix, served, sorted(branches))
            known[alike] = runs, tuple(_torch(build, matrix))
        runs, torch = known[alike]
        row = by_key[build.version, build.platform]
        facts = tuple(_facts(build, row, torch, matrix, tables))
        driver = floor(build, matrix)
        rows.append(LookedUp(build, driver, pythons(build), code, torch, runs, facts))
    names = {each.name for row in rows for each in row.torch}
    newest = sorted(names, key=lambda name: (newest_first(name.partition("+")[0]), name))
    return LookUp(
        tuple(rows),
        generations,
        branches,
        tuple(reversed(newest)),
        matrix.gone,
        matrix.date,
        matrix.digest,
    )


def _generations(families: Sequence[TomlTable]) -> tuple[Generation, ...]:
    """Return the generations of GPUs, the newest first."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in sorted(families, key=lambda row: numbers(row["compute_capability"]), reverse=True):
        names = found.setdefault(row["architecture"], {})
        names.setdefault(row["compute_capability"], []).extend(row["names"])
    return tuple(
        Generation(name, tuple(reversed(of)), {key: tuple(sorted(of[key])) for key in of})
        for name, of in found.items()
    )


def _code(build: Build, generation: Generation, arm: Sequence[str]) -> GenerationCode:
    how = {
        each: runs_on(build.sass, build.ptx, each)
        for each in generation.capabilities
        if each not in arm or build.platform.endswith("aarch64")
    }
    sass, ptx = (tuple(each for each in how if how[each] == kind) for kind in ("sass", "ptx"))
    return GenerationCode(sass, ptx)


def _runs(
    build: Build, matrix: Matrix, capabilities: Sequence[str], branches: Sequence[int]
) -> dict[str, tuple[int, int]]:
    """Return the driver branches that each GPU runs `build` with: no rule of a plan rejects it.

    They lie side by side: an old branch lacks the CUDA, and a new one drops an old GPU. Of each
    branch the newest release is asked; Windows' go on up to the next branch (527.41 is of 525). The
    rules that choose wheels are slow, and are asked at both ends alone: what they reject with the
    newest driver they reject with all.
    """
    found: dict[str, tuple[int, int]] = {}
    newest = [*(f"{after - 1}.99" for after in branches[1:]), f"{branches[-1]}.99"]
    machines = [elsewhere(build, matrix, driver, ()) for driver in newest]
    for capability in capabilities:
        gpus = (Gpu(compute_capability=capability),)
        here = [each._replace(gpus=gpus) for each in machines]
        fit = [at for at, each in enumerate(here) if _fits(build, each)]
        if not fit or not is_usable(build, here[fit[-1]]):
            continue
        first = next(at for at in fit if is_usable(build, here[at]))
        found[capability] = branches[first], branches[fit[-1]]
    return found


def _fits(build: Build, situation: Situation) -> bool:
    candidate = without_wheels(build, situation)
    return not any(True for rule in BUILD_RULES for _ in rule(candidate, situation))


def _torch(build: Build, matrix: Matrix) -> Iterator[TorchBuild]:
    """Yield the builds of torch that `build` shares a process with."""
    here = elsewhere(build, matrix, "1", ())
    for torch in matrix.torch.of(build.platform):
        if torch.cuda is not None:
            package = Package(name=TORCH, version=torch.name)
            installed = installed_torch_of(package, matrix.torch, build.platform)
            if not any(True for _ in against_torch(build, here._replace(torch=installed))):
                yield torch


def _facts(
    build: Build,
    row: TomlTable,
    torch: Sequence[TorchBuild],
    matrix: Matrix,
    tables: SourceTables,
) -> Iterator[KnownValue]:
    """Yield what is known of `build`, each with its source and the day on which it was read."""
    file = build.wheels[-1].file
    added = [each for each in matrix.added if f"onnxruntime-gpu {build.version}" in each.releases]
    read = added[0].read if added else tables.read
    yield KnownValue("lookup-cuda", build.cuda, row.get("cuda_source", file), read)
    linked = [each.library for each in build.needs if "cudnn" in each.library]
    yield KnownValue("lookup-cudnn", build.cudnn, ", ".join([*linked, file]), read)
    known = next((each for each in tables.floors if each["cuda"] == major(build.cuda)), {})
    driver = f">= {floor(build, matrix)}"
    yield KnownValue("lookup-driver", driver, known.get("source", "?"), known.get("checked", "?"))
    yield KnownValue("lookup-code", " ".join(build.sass), file, read)
    if build.ptx:
        yield KnownValue("lookup-ptx", " ".join(build.ptx), file, read)
    if build.glibc:
        yield KnownValue("lookup-glibc", f">= {build.glibc}", file, read)
    yield KnownValue("lookup-python", pythons(build), ", ".join(w.file for w in build.wheels), read)
    for need in build.needs:
        if need.distribution:
            brings = f"{need.distribution} >= {need.since}" if need.since else need.distribution
            yield KnownValue("lookup-library", f"{need.library}: {brings}", file, read)
    if torch:
        names = ", ".join(dict.fromkeys(each.name for each in torch))
        on_pypi = [each for each in torch if each.wheels]
        source = on_pypi[-1].wheels[-1].file if on_pypi else "https://download.pytorch.org/whl"
        yield KnownValue("lookup-torch", names, source, tables.torch_read)
