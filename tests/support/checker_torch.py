"""An independent judge of the torch in a plan, asked of the raw tables by trying everything.

It shares no code with the program. A torch that stays is judged by `checker` alone; one that may
move by putting it there first, and by trying every build that comes before it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping

from checker import check
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from raw_tables import ORT, Machine, Row, dotted, machine_code, meets
from raw_torch import installed_torch, pinned_by, raw_builds

BASE = "https://download.pytorch.org/whl"
BESIDE = ("torchaudio", "torchvision")


def check_torch(document: Row, plan: Row, tables: Mapping[str, Row], wish: str) -> list[str]:
    """Return what is wrong with `plan` for the facts `document` and `--torch wish`, in words."""
    if wish == "keep":
        moved = {row["name"] for row in plan["install"]} & {"torch", *BESIDE}
        return [*check(document, plan, tables), *(f"{name} moves" for name in sorted(moved))]
    return list(TorchJudge(document, tables, wish).violations(plan))


class TorchJudge:
    """Looks for what is wrong with a plan that may move torch."""

    def __init__(self, document: Row, tables: Mapping[str, Row], wish: str) -> None:
        self.document, self.tables, self.wish = document, tables, wish
        self.machine = Machine(document, tables, {})
        self.installed = {row["name"]: row for row in document["packages"]}
        self.here = builds_of(tables, self.machine.platform)
        there = self.installed.get("torch")
        self.before, self.cuda = (
            installed_torch(there, tables, self.machine.platform) if there else (None, None)
        )

    def violations(self, plan: Row) -> Iterator[str]:
        """Yield everything that is wrong, in words."""
        if plan["verdict"] == "impossible":
            for other in self.wished():
                if self.partners(other):
                    yield f"not impossible: {name_of(other)} with {self.partners(other)}"
            return
        rows = {row["name"]: row for row in plan["selection"]["packages"]}
        chosen = self.found(rows["torch"])
        if chosen is None:
            yield f"no such torch: {rows['torch']}"
            return
        build = chosen
        yield from self._is_the_best(build, rows[ORT]["version"])
        yield from self._wheels(build, rows, plan)
        after = self.after(build)
        gone = self.orphans(build)
        if not gone <= set(plan["uninstall"]):
            yield f"leaves {sorted(gone - set(plan['uninstall']))} of {self.installed['torch']}"
        beside = {"torch", *BESIDE}
        rest = {
            **plan,
            "rejected": [row for row in plan["rejected"] if row["package"] == ORT],
            "install": [row for row in plan["install"] if row["name"] not in beside],
            "uninstall": [name for name in plan["uninstall"] if name not in gone],
            "selection": {
                **plan["selection"],
                "packages": [row for name, row in rows.items() if name not in beside],
            },
        }
        changes = [rest[key] for key in ("install", "uninstall", "companions", "requires")]
        rest["verdict"] = "fixable" if any(changes) else "healthy"
        kept = {**after, "packages": [row for row in after["packages"] if row["name"] not in gone]}
        yield from check(kept, rest, self.tables)

    def found(self, row: Row) -> Row | None:
        """Return the build that a row of the selection names."""
        if self.before is not None and row["version"] == self.installed["torch"]["version"]:
            return self.before
        label = "pypi" if row["index"] == "pypi" else row["index"].removeprefix(f"{BASE}/")
        for build in self.here:
            release = build["release"] + ("" if label == "pypi" else f"+{build['label']}")
            if build["index"] == label and release == row["version"]:
                return build
        return None

    def _is_the_best(self, build: Row, ort: str) -> Iterator[str]:
        if ort not in self.partners(build):
            yield f"{name_of(build)} does not go with {ort}"
            return
        mine = self.rank(build)
        for other in self.wished():
            if other["release"] != build["release"] and self.rank(other) < mine:
                if self.partners(other):
                    yield f"{name_of(other)} comes before {name_of(build)} and works"
            elif other["release"] == build["release"]:
                partners = self.partners(other)
                better = [one for one in partners if self.preferred(one) > self.preferred(ort)]
                if better:
                    yield f"{name_of(other)} goes with {better}, not only {ort}"
                elif ort in partners and self.taste(other) < self.taste(build):
                    yield f"{name_of(other)} is to be taken before {name_of(build)}"

    def preferred(self, ort: str) -> tuple[bool, Version]:
        """Return the key of a release of onnxruntime-gpu: the installed one, else the newest."""
        return ort == self.installed.get(ORT, {}).get("version"), Version(ort)

    def wished(self) -> list[Row]:
        """Return every build with CUDA that the wish allows."""
        wanted = SpecifierSet("" if self.wish == "match" else self.wish)
        return [row for row in self.here if row.get("cuda") and meets(name_of(row), wanted)]

    def rank(self, build: Row) -> tuple[object, ...]:
        """Return the place of a release: the installed one, its neighbours, the newest first."""
        releases = sorted({row["release"] for row in self.here if row.get("cuda")}, key=Version)
        minors = sorted({Version(one).release[:2] for one in releases})
        at = Version(build["release"])
        newest = -releases.index(build["release"])
        if "torch" not in self.installed:
            return (newest,)
        own = Version(Version(self.installed["torch"]["version"]).public)
        if self.wish != "match" and not meets(
            self.installed["torch"]["version"], SpecifierSet(self.wish)
        ):
            return (newest,)
        between = [
            one
            for one in minors
            if min(at, own).release[:2] < one <= max(at, own).release[:2]
            or max(at, own).release[:2] > one >= min(at, own).release[:2]
        ]
        away = 0 if at.release[:2] == own.release[:2] else len(between)
        return (at != own, away, at.release[:2] < own.release[:2], newest)

    def taste(self, build: Row) -> tuple[object, ...]:
        """Return the place of a build among those of its release."""
        speaks, made = self.machine.driver[:2], dotted(build["cuda"])
        native = speaks >= made
        newest = tuple(-number for number in made) if native else made
        kept = self.before is not None and (build["release"], build["index"]) == (
            self.before["release"],
            self.before["index"],
        )
        return (not kept, not native, newest, build["index"] != "pypi")

    def runs(self, build: Row) -> bool:
        """Tell whether the machine and its Python run a build of torch."""
        return (
            self.machine.abi in build["pythons"]
            and self.machine.old_enough(build.get("glibc"))
            and self.machine.driver[:1] >= dotted(build["cuda"])[:1]
            and all(machine_code(build["sass"], gpu) for gpu in self.machine.gpus or () if gpu)
        )

    @functools.cache  # noqa: B019 - a judge lives for one plan
    def _partners(self, release: str, index: str) -> tuple[str, ...]:
        build = next(row for row in self.here if (row["release"], row["index"]) == (release, index))
        if not self.runs(build) or any(
            name in self.installed and not self.companions(name, build) for name in BESIDE
        ):
            return ()
        after = Machine(self.after(build), self.tables, {})
        return tuple(row["version"] for row in after.builds if after.possible(row))

    def partners(self, build: Row) -> tuple[str, ...]:
        """Return the releases of onnxruntime-gpu that work here with a build of torch."""
        return self._partners(build["release"], build["index"])

    def companions(self, name: str, build: Row) -> list[Row]:
        """Return the releases of torchvision or torchaudio that may stand beside a build."""
        rows = [
            row
            for row in self.tables["torch"]["companion"]
            if row["name"] == name
            and row["platform"] == self.machine.platform
            and meets(build["release"], SpecifierSet(row["torch"]))
            and {wheel["python"] for wheel in row["wheels"]} & {self.machine.abi, "py3"}
        ]
        return [row for row in rows if row["torch"].startswith("==") or self._same_cuda(row, build)]

    def _same_cuda(self, row: Row, build: Row) -> bool:
        own = row["torch"].lstrip("<>=!~ ") or row["version"]
        minor = Version(own).release[:2]
        return any(
            one["label"] == build["label"] and Version(one["release"]).release[:2] == minor
            for one in self.here
        )

    def _wheels(self, build: Row, rows: Mapping[str, Row], plan: Row) -> Iterator[str]:
        kept = self.found(rows["torch"]) is self.before and self.before is not None
        installing = {row["name"]: row for row in plan["install"]}
        for name in ("torch", *BESIDE):
            if (name in rows) != (name == "torch" or name in self.installed):
                yield f"{name} is selected: {name in rows}"
            if name not in rows:
                continue
            if kept:
                same = rows[name]["version"] == self.installed[name]["version"]
                if name in installing or not same:
                    yield f"{name} {rows[name]['version']} is not what was there, and torch stays"
                continue
            yield from self._wheel(name, build, rows[name], installing.get(name))

    def _wheel(self, name: str, build: Row, row: Row, wheel: Row | None) -> Iterator[str]:
        release, _, label = row["version"].partition("+")
        known = [build] if name == "torch" else self.companions(name, build)
        own = "release" if name == "torch" else "version"
        known = [one for one in known if one[own] == release]
        if not known:
            yield f"{name} {row['version']} does not go with {name_of(build)}"
            return
        wanted = "pypi" if build["index"] == "pypi" else f"{BASE}/{build['label']}"
        if row["index"] != wanted or bool(label) != (build["index"] != "pypi"):
            yield f"{name} {row['version']} from {row['index']}, not {wanted}"
        if wheel is None:
            if self.installed.get(name, {}).get("version") != row["version"]:
                yield f"{name} {row['version']} is not installed"
        elif build["index"] == "pypi":
            hashes = [one["sha256"] for one in known[0]["wheels"]]
            if wheel["sha256"] not in hashes or not wheel["size"] or not wheel["file"]:
                yield f"no such wheel: {wheel}"
        elif wheel["sha256"] is not None or wheel["size"] is not None or "file" in wheel:
            yield f"says more than is known: {wheel}"

    def after(self, build: Row) -> Row:
        """Return the facts as if `build` were installed, and its companions."""
        if build is self.before:
            return self.document
        label = "" if build["index"] == "pypi" else f"+{build['label']}"
        packages = [{"name": "torch", "version": f"{build['release']}{label}"}]
        packages += [{"name": name, "version": "0"} for name in BESIDE if name in self.installed]
        names = {row["name"] for row in packages}
        packages += [row for name, row in self.installed.items() if name not in names]
        return json_copy({**self.document, "packages": packages})

    def orphans(self, build: Row) -> set[str]:
        """Return NVIDIA's wheels that the torch before brought, for a CUDA major that goes."""
        if build is self.before or self.cuda is None:
            return set()
        if dotted(self.cuda)[0] == dotted(build["cuda"])[0]:
            return set()
        lines = list(self.installed["torch"].get("requires", ()))
        lines = lines or (pinned_by(self.before, self.tables) if self.before else [])
        named = {line.split("=")[0].split(" ")[0].split("<")[0].split(">")[0] for line in lines}
        return {name for name in named if name.startswith("nvidia-")} & self.installed.keys()


def name_of(build: Row) -> str:
    return f"{build['release']}+{build['label']}"


def json_copy(value: Row) -> Row:
    copied: Row = json.loads(json.dumps(value))
    return copied


_BUILDS: dict[tuple[int, str], list[Row]] = {}


def builds_of(tables: Mapping[str, Row], platform: str) -> list[Row]:
    """Return every build for a platform, read once."""
    key = id(tables), platform
    if key not in _BUILDS:
        _BUILDS[key] = list(raw_builds(tables, platform))
    return _BUILDS[key]
