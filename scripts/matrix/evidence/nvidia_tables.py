"""`data/nvidia.toml`: NVIDIA's component wheels, their libraries and their GPU code."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from ortgpu_fix.evidence.wheels import PLATFORMS
from ortgpu_fix.guests.update import nvidia
from ortgpu_fix.guests.update.spread import by_bisection, each
from ortgpu_fix.utils.toml_writer import Rows, Value, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ortgpu_fix.guests.update.nvidia import ReadRelease
    from ortgpu_fix.guests.update.reader import Reader


def tables(reader: Reader, known: dict[str, list[ReadRelease]], threads: int) -> list[str]:
    """Return the file's tables: per distribution the releases, files and GPU code."""
    places = [
        (name, [release for release in known[name] if release.wheel.platform == platform])
        for name in sorted(known)
        for platform in PLATFORMS
    ]
    # The longest first, so that no thread begins one when the others are done.
    longest = sorted(
        range(len(places)), key=lambda at: -sum(release.size for release in places[at][1])
    )
    texts = dict(
        zip(longest, each(lambda at: _describe(reader, *places[at]), longest, threads), strict=True)
    )
    parts = []
    for name in sorted(known):
        if not known[name]:
            continue
        mine = [at for at, (distribution, _) in enumerate(places) if distribution == name]
        rows = Rows(nvidia.release_row(release) for release in known[name])
        parts.append(
            table(
                "distribution", {"name": name, "cuda": nvidia.DISTRIBUTIONS[name], "releases": rows}
            )
        )
        parts += [text for at in mine for text in texts[at][0]]
        parts += [text for at in mine for text in texts[at][1]]
    return parts


def _describe(
    reader: Reader, distribution: str, here: Sequence[ReadRelease]
) -> tuple[list[str], list[str]]:
    code = _code_ranges(reader, distribution, here)  # first: it reads what `uses` then knows
    return _file_groups(reader, here), code


def _code_ranges(reader: Reader, distribution: str, here: Sequence[ReadRelease]) -> list[str]:
    """Return the tables of one platform's releases with the same GPU code, edges by bisection."""
    if nvidia.component(distribution) not in nvidia.JUDGED:
        return []
    codes = by_bisection(here, lambda release: nvidia.gpu_code(reader, distribution, release))
    tables = []
    pairs = zip(here, codes, strict=True)
    for (sass, ptx), run in groupby(pairs, key=lambda pair: pair[1]):
        members = [release for release, _ in run]
        tables.append(
            table(
                "distribution.code",
                {
                    "platform": members[0].wheel.platform,
                    "first": str(members[0].wheel.version),
                    "last": str(members[-1].wheel.version),
                    "sass": list(sass),
                    "ptx": list(ptx),
                },
            )
        )
    return tables


def _file_groups(reader: Reader, here: Sequence[ReadRelease]) -> list[str]:
    """Return the tables of what one platform's wheels hold, link and load; equal rows share one.

    What is linked and loaded is read where it changes, by bisection among the releases that hold
    the same libraries.
    """
    versions: dict[str, list[str]] = {}
    rows: dict[str, dict[str, Value]] = {}
    for libraries, run in groupby(here, key=lambda release: release.libraries):
        members = list(run)
        for member, (links, loads) in zip(
            members, nvidia.external_uses(reader, members), strict=True
        ):
            row: dict[str, Value] = {
                "libraries": libraries,
                "links": list(links),
                "loads": list(loads),
            }
            rows[repr(row)] = row
            versions.setdefault(repr(row), []).append(str(member.wheel.version))
    platform = here[0].wheel.platform if here else ""
    return [
        table("distribution.files", {"platform": platform, "versions": versions[key], **row})
        for key, row in rows.items()
    ]
