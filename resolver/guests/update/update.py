"""What an index has and the matrix lacks, read from its wheels: rows as the shipped ones.

The same readers make the shipped tables. Only what is new is read: of a new release of an NVIDIA
distribution its files and its GPU code where those of its known neighbours do not show them, of a
new onnxruntime-gpu its provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from ...errors import Error
from ...evidence.wheels import IndexWheel
from ...index.page import without_credentials
from . import nvidia, onnxruntime, onnxruntime_rows, plugins, torch_rows
from .catalogue import Catalogue, wanted
from .nvidia import CodeTargets, ReadRelease
from .reader import Reader
from .spread import by_bisection, each, gaps

if TYPE_CHECKING:
    from .index_source import IndexSource
    from .onnxruntime import ReadBuild
    from .reader import ReadingCache

Tables = Mapping[str, Mapping[str, Any]]
"""The tables of `data/`, by name."""
Uses = tuple[tuple[str, ...], tuple[str, ...]]
"""The CUDA libraries that a release links, and those that it loads."""
_ORT = "onnxruntime-gpu"


class UnknownWheels:
    """The wheels of an index that the matrix does not know, for some platforms."""

    def __init__(
        self, source: IndexSource, tables: Tables, platforms: Sequence[str], *, other_index: bool
    ) -> None:
        self._source = source
        self._platforms = {*platforms, "any"}
        rows = [
            *((_ORT, row) for row in tables["onnxruntime"]["build"]),
            *(("torch", row) for row in tables["torch"]["torch"]),
            *((row["name"], row) for row in tables["torch"]["companion"]),
            *((row["name"], one) for row in _distributions(tables) for one in row["releases"]),
            *((row["name"], row) for row in tables["plugins"]["plugin"]),
            *(("onnxruntime", row) for row in tables["plugins"]["wheel"]),
        ]
        self._known = {(name, row["version"], row["platform"]) for name, row in rows}
        known = {("cuda-toolkit", row["version"], "any") for row in tables["toolkits"]["toolkit"]}
        self._known = set() if other_index else self._known | known

    def wheels(self, index_url: str, distribution: str) -> list[IndexWheel]:
        """Return the wheels of a project page that are new, and for one of the platforms.

        Raises Error `index-no-hash`: an apply would refuse the row of such a wheel.
        """
        found = [
            wheel
            for wheel in self._source.wheels(index_url, distribution)
            if wheel.platform in self._platforms
            and (distribution, str(wheel.version), wheel.platform) not in self._known
        ]
        for wheel in found:
            if not wheel.sha256:
                address = self._source.address(index_url)
                raise Error("index-no-hash", file=wheel.file, url=address)
        return found

    def get_range(self, url: str, byte_range: str) -> tuple[bytes, int]:
        """Return part of a file."""
        return self._source.get_range(url, byte_range)


class MatrixReader:
    """Reads what is new on an index into rows."""

    def __init__(
        self,
        source: IndexSource,
        cache: ReadingCache,
        tables: Tables,
        platforms: Sequence[str],
        *,
        index_url: str,
        progress: Callable[[str], None],
        threads: int = 8,
    ) -> None:
        self._tables = tables
        self._index_url = index_url
        self._platforms = platforms
        self._threads = threads
        self._all = Reader(source, cache, "", progress)
        unknown = UnknownWheels(source, tables, platforms, other_index=bool(index_url))
        self._new = Reader(unknown, cache, index_url, progress)

    def read(self) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """Return the new rows, by table and kind. Raises `EvidenceError` and what `source` does."""
        names = sorted(nvidia.DISTRIBUTIONS)
        listed = each(
            lambda name: nvidia.releases(self._new, name, self._threads), names, self._threads
        )
        fresh = dict(zip(names, listed, strict=True))
        # The largest first, so that no thread begins one when the others are done.
        names.sort(key=lambda name: -sum(release.size for release in fresh[name]))
        with ThreadPoolExecutor(3) as beside:
            builds = beside.submit(onnxruntime.builds, self._new, self._threads)
            torch = beside.submit(torch_rows.rows, self._new, self._threads)
            beside_onnxruntime = beside.submit(
                plugins.rows, self._new, self._threads, known=self._all
            )
            described = each(
                lambda name: self._distribution(name, fresh[name]), names, self._threads
            )
            rows = self.builds(builds.result(), fresh)
        known = {name: [*self._known(name), *fresh[name]] for name in names}
        described.sort(key=lambda row: str(row["name"]))
        return {
            "onnxruntime": {"build": rows},
            "nvidia": {"distribution": [row for row in described if row["releases"]]},
            "toolkits": {"toolkit": self._toolkits(known)},
            "torch": torch.result(),
            "plugins": beside_onnxruntime.result(),
        }

    def _toolkits(self, known: dict[str, list[ReadRelease]]) -> list[dict[str, Any]]:
        """Return the rows of the new toolkit releases; of other platforms nothing is missing."""
        rows = nvidia.toolkits(self._new, known)
        for row in rows:
            lacking = {
                name: [place for place in places if place in self._platforms]
                for name, places in row.pop("missing", {}).items()
            }
            if any(lacking.values()):
                row["missing"] = {name: places for name, places in lacking.items() if places}
        return rows

    def read_builds_of_index(self) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """Return the builds of onnxruntime-gpu of another index alone, with that index in each.

        They have numbers that PyPI's builds have, too.
        """
        read = onnxruntime.builds(self._new, self._threads)
        address = without_credentials(self._index_url)
        builds = [row | {"index_url": address} for row in self.builds(read, {})]
        return {
            "onnxruntime": {"build": builds},
            "nvidia": {"distribution": []},
            "toolkits": {"toolkit": []},
            "torch": {"torch": [], "companion": []},
            "plugins": {"plugin": [], "wheel": []},
        }

    def builds(
        self, read: Sequence[ReadBuild], fresh: Mapping[str, Sequence[ReadRelease]]
    ) -> list[dict[str, Any]]:
        """Return the rows of the new builds of onnxruntime-gpu; `fresh` are new NVIDIA releases."""
        if not read:
            return []
        majors = {build.major for build in read}
        names = [name for name, major in nvidia.DISTRIBUTIONS.items() if major in majors]
        addresses = each(self._addresses, names, self._threads)
        holding = {
            name: sorted(
                (*self._known(name, urls), *fresh.get(name, ())),
                key=lambda release: release.wheel.version,
            )
            for name, urls in zip(names, addresses, strict=True)
        }
        catalogue = Catalogue(self._all, holding, wanted(read), self._threads)
        return onnxruntime_rows.rows(read, catalogue)

    def _addresses(self, name: str) -> dict[str, str]:
        return {wheel.file: wheel.url for wheel in self._all.wheels(name)}

    def _known(self, name: str, urls: Mapping[str, str] | None = None) -> list[ReadRelease]:
        """Return the known releases; those of `urls` (file to address) alone, where it is given."""
        rows = next((row for row in _distributions(self._tables) if row["name"] == name), None)
        if rows is None:
            return []
        libraries = {
            (block["platform"], version): block["libraries"]
            for block in rows.get("files", ())
            for version in block["versions"]
        }
        return [
            ReadRelease(
                wheel=_wheel(row, (urls or {}).get(row["file"], "")),
                size=row["size"],
                requires=tuple(row.get("requires", ())),
                libraries=libraries.get((row["platform"], row["version"]), {}),
            )
            for row in rows["releases"]
            if urls is None or (row["file"] in urls and row["platform"] in self._platforms)
        ]

    def _distribution(self, name: str, fresh: Sequence[ReadRelease]) -> dict[str, Any]:
        files, code = [], []
        for platform in self._platforms:
            new = [release for release in fresh if release.wheel.platform == platform]
            if new:
                known = [row for row in self._known(name) if row.wheel.platform == platform]
                order = sorted([*known, *new], key=lambda release: release.wheel.version)
                code += self._code(name, platform, order, new)  # it reads what the files then know
                files += self._files(name, platform, order, new)
        return {
            "name": name,
            "cuda": nvidia.DISTRIBUTIONS[name],
            "releases": [nvidia.release_row(release) for release in fresh],
            "files": files,
            "code": code,
        }

    def _files(
        self, name: str, platform: str, order: Sequence[ReadRelease], new: Sequence[ReadRelease]
    ) -> list[dict[str, Any]]:
        blocks = {
            version: (tuple(block["links"]), tuple(block["loads"]))
            for block in self._rows(name, "files", platform)
            for version in block["versions"]
        }
        rows = []
        for _, run in groupby(order, key=lambda release: repr(release.libraries)):
            members = list(run)
            for release, (links, loads) in self._uses(members, blocks, new):
                rows.append(
                    {
                        "platform": platform,
                        "versions": [str(release.wheel.version)],
                        "libraries": dict(release.libraries),
                        "links": list(links),
                        "loads": list(loads),
                    }
                )
        return rows

    def _uses(
        self,
        members: Sequence[ReadRelease],
        blocks: Mapping[str, Uses],
        new: Sequence[ReadRelease],
    ) -> Iterator[tuple[ReadRelease, Uses]]:
        """Yield what each new release of `members`, which hold the same libraries, uses."""
        for gap in gaps([release not in new for release in members]):
            fresh = [members[at] for at in gap.items]
            before, after = (
                None if at is None else blocks.get(str(members[at].wheel.version))
                for at in (gap.before, gap.after)
            )
            if before is not None and after is None and gap.after is None:
                [after] = nvidia.external_uses(self._new, fresh[-1:], self._threads)
            if before is not None and before == after:
                yield from ((release, before) for release in fresh)
            else:
                read = nvidia.external_uses(self._new, fresh, self._threads)
                yield from zip(fresh, read, strict=True)

    def _code(
        self, name: str, platform: str, order: Sequence[ReadRelease], new: Sequence[ReadRelease]
    ) -> list[dict[str, Any]]:
        """Return the blocks of GPU code of the new releases, but for those within a known block."""
        if nvidia.component(name) not in nvidia.JUDGED:
            return []
        known: dict[str, CodeTargets] = {}
        for release in order:
            for block in self._rows(name, "code", platform):
                if Version(block["first"]) <= release.wheel.version <= Version(block["last"]):
                    known[str(release.wheel.version)] = tuple(block["sass"]), tuple(block["ptx"])

        def code_of(release: ReadRelease) -> CodeTargets:
            code = known.get(str(release.wheel.version))
            return code or nvidia.gpu_code(self._new, name, release, self._threads)

        rows = []
        for gap in gaps([str(release.wheel.version) in known for release in order]):
            ends = [at for at in (gap.before, *gap.items, gap.after) if at is not None]
            facts = dict(zip(ends, by_bisection([order[at] for at in ends], code_of), strict=True))
            for at in gap.items:
                if order[at] in new:
                    version = str(order[at].wheel.version)
                    sass, ptx = facts[at]
                    row = {"platform": platform, "first": version, "last": version}
                    rows.append(row | {"sass": list(sass), "ptx": list(ptx)})
        return rows

    def _rows(self, name: str, kind: str, platform: str) -> list[dict[str, Any]]:
        """Return the known blocks (`files`, `code`) of a distribution on a platform."""
        rows = next((row for row in _distributions(self._tables) if row["name"] == name), {})
        return [row for row in rows.get(kind, ()) if row["platform"] == platform]


def _distributions(tables: Tables) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = tables["nvidia"]["distribution"]
    return rows


def _wheel(row: Mapping[str, Any], url: str) -> IndexWheel:
    return IndexWheel(
        file=row["file"],
        url=url,
        sha256=row["sha256"],
        version=Version(row["version"]),
        python="py3",
        platform=row["platform"],
        glibc=row.get("glibc"),
    )
