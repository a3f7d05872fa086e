"""An independent judge of plans: the contract, asked of the raw tables.

`check` shares no code with the program. It does not build a plan; it takes one as `--json` prints
it and looks for whatever the contract forbids.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from raw_small import SmallSets
from raw_tables import (
    ORT,
    Machine,
    Row,
    dotted,
    meets,
    prefix_at_least,
    requirement,
    satisfiable,
    version,
)

RUNTIME = "msvc-runtime"


def check(
    document: Row, plan: Row, tables: Mapping[str, Row], options: Row | None = None
) -> list[str]:
    """Return what is wrong with `plan` for the machine of the facts `document`, in words.

    `tables` are the parsed TOML files by name; `options` may hold `onnxruntime` (a specifier),
    `latest`, `cuda` and `ignored` (compute capabilities); `usual`, for a plan of `--prefer small`:
    the releases of the plan without it, by distribution.
    """
    return list(Judge(document, tables, options or {}).violations(plan))


class Judge(Machine):
    """Looks for what is wrong with a plan for a machine."""

    def violations(self, plan: Row) -> Iterator[str]:
        """Yield everything that the contract forbids, in words."""
        possible = {row["version"] for row in self.builds if self.possible(row)}
        known = {row["version"] for row in self.tables["onnxruntime"]["build"]}
        yield from self._rejections_are_right(plan, known, possible)
        told = {row["name"] for row in plan["consumers"]} - {"torch"}
        if told != {user.name for user in self.users}:
            yield f"uses CUDA: {sorted(told)}, must {sorted(user.name for user in self.users)}"
        changes = [
            name for name in ("uninstall", "install", "companions", "requires") if plan[name]
        ]
        if plan["verdict"] == "impossible":
            if possible or plan["selection"] is not None or changes:
                yield f"not impossible: {sorted(possible)}, {plan['selection']}, {changes}"
            return
        if (plan["verdict"] == "healthy") == bool(changes):
            yield f"{plan['verdict']} with {changes}"
        selected = {row["name"]: row["version"] for row in plan["selection"]["packages"]}
        if len(selected) != len(plan["selection"]["packages"]) or ORT not in selected:
            yield f"no set: {selected}"
            return
        if selected[ORT] not in known:
            # Its own files decide, which are not in the tables; nobody can install it anew.
            if selected[ORT] != self.installed.get(ORT, {}).get("version"):
                yield f"nobody knows {selected[ORT]}"
            return
        yield from self._release_is_right(selected[ORT], possible)
        build = next((row for row in self.builds if row["version"] == selected[ORT]), None)
        if build is None or plan["selection"]["cuda"] != str(dotted(build["cuda"])[0]):
            yield f"{selected[ORT]} is no build of CUDA {plan['selection']['cuda']} here"
            return
        yield from self._wheels_are_right(plan, selected, build)
        yield from self._libraries_are_there(plan, selected, build)
        if "usual" in self.options:
            yield from SmallSets(self, build, self.options["usual"]).wrong(selected)
        else:
            yield from self._one_toolkit(selected, build, self.in_torch(plan))
        yield from self._runtime_is_right(plan, selected, build)
        yield from self._nobody_is_hurt(plan, selected, build)

    def _rejections_are_right(
        self, plan: Row, known: set[str], possible: set[str]
    ) -> Iterator[str]:
        rejected = {row["version"] for row in plan["rejected"]}
        for release in sorted(known, key=version):
            if (release in rejected) == (release in possible):
                able = release in possible
                yield f"{release} is rejected: {release in rejected}, possible: {able}"
        if any(not row["reasons"] for row in plan["rejected"]):
            yield "a release is rejected without a reason"

    def _release_is_right(self, chosen: str, possible: set[str]) -> Iterator[str]:
        if chosen not in possible:
            yield f"{chosen} cannot work here"
        there = self.installed.get(ORT, {}).get("version")
        if not self.options.get("latest") and there in possible:
            if chosen != there:
                yield f"{there} can work and is not kept"
        elif possible and chosen != self._first_of(possible):
            yield f"{chosen} is not the newest for all here of {sorted(possible, key=version)}"

    def _first_of(self, possible: set[str]) -> str:
        """Return the newest; one CUDA for all goes first, but for an older cuDNN."""
        rows = sorted(
            (row for row in self.builds if row["version"] in possible),
            key=lambda row: version(row["version"]),
        )
        alike = [row for row in rows if row["cudnn"] == rows[-1]["cudnn"] and self.one_cuda(row)]
        choice = rows if self.options.get("latest") else alike or rows
        return str(choice[-1]["version"])

    def _wheels_are_right(self, plan: Row, selected: Row, build: Row) -> Iterator[str]:
        rows: dict[str, list[Row]] = {
            name: [row for row in kind["releases"] if self._here(row)]
            for name, kind in self.known.items()
        }
        rows["numpy"] = [
            row
            for row in self.tables["numpy"]["wheel"]
            if self._here(row) and row.get("python") == self.abi
        ]
        rows[RUNTIME] = [
            row
            for row in self.tables["msvc"]["wheel"]
            if self._here(row) and row["python"] == self.abi
        ]
        rows[ORT] = [
            {**row, "version": build["version"]}
            for row in build["wheels"]
            if row["python"] == self.abi
        ]
        for wheel in plan["install"]:
            known = [
                row
                for row in rows.get(wheel["name"], ())
                if all(row[key] == wheel[key] for key in ("version", "file", "size", "sha256"))
            ]
            if not known or wheel["index"] != "pypi" or not self.old_enough(known[0].get("glibc")):
                yield f"no such wheel: {wheel}"
            if selected.get(wheel["name"]) != wheel["version"]:
                yield f"installs what is not selected: {wheel['name']} {wheel['version']}"
        installing = {wheel["name"] for wheel in plan["install"]}
        for name, release in selected.items():
            there = self.installed.get(name, {"version": None})
            whole = there["version"] == release and there.get("intact", True)
            whole = whole or name in self.in_torch(plan)
            if name == ORT:
                whole = whole and self._folder_is(release)
            if whole == (name in installing):
                yield f"{name} {release} is there: {whole}; installed: {name in installing}"

    def _folder_is(self, release: str) -> bool:
        """Tell whether the folder `onnxruntime` holds the whole GPU build, and nothing else."""
        others = {
            name
            for name, row in self.installed.items()
            if name in self.owners - {ORT} and not row.get("provided")
        }
        claim = {"distribution": ORT, "version": release}
        folder = self.document.get("onnxruntime", claim if not others else None)
        return (
            not others
            and folder is not None
            and folder.get("intact", True)
            and folder.get("distribution") in {None, ORT}
            and folder.get("version") in {None, release}
        )

    def _libraries_are_there(self, plan: Row, selected: Row, build: Row) -> Iterator[str]:
        installs = bool(plan["uninstall"]) or any(
            row["name"] == ORT or row["name"] in self.kinds for row in plan["install"]
        )
        for need in build["needs"]:
            name = need.get("distribution")
            if name is None:
                continue
            if name in selected:
                if not self.fits(name, selected[name], build):
                    yield f"{name} {selected[name]} cannot serve {build['version']}"
            elif installs or not self.system_serves(need):
                yield f"nothing brings {need['library']}"
        for name in selected.keys() & self.kinds.keys():
            for other in self.follows(name, selected[name]) - selected.keys():
                libraries = self.libraries(name, selected[name])
                wanted = {*libraries.get("links", ()), *libraries.get("loads", ())}
                found = {row["name"] for row in self.document.get("libraries", ())}
                if installs or not wanted & found:
                    yield f"{name} {selected[name]} lacks {other}"
            if not self.has_code(name, selected[name]):
                yield f"{name} {selected[name]} has no code for {self.gpus}"

    def system_serves(self, need: Row) -> bool:
        """Tell whether the library of this name that the loader finds can serve `need`."""
        rows = [row for row in self.document.get("libraries", ()) if row["name"] == need["library"]]
        if not rows:
            return False
        name, found = need["distribution"], rows[0].get("version")
        if found is None:
            return True
        holding = [
            release
            for row in self.known[name].get("files", ())
            if self._here(row) and need["library"] in row["libraries"]
            for release in row["versions"]
        ]
        floor = min(map(version, holding))
        if version(need["since"]) > floor and not prefix_at_least(found, need["since"]):
            return False
        # What the tables know by more than its name must have code for the GPUs.
        alike = {
            release
            for release in holding
            if dotted(release)[: len(dotted(found))] == dotted(found)[: len(dotted(release))]
        }
        return not alike or any(self.has_code(name, release) for release in alike)

    def in_torch(self, plan: Row) -> set[str]:
        """Return what a plan takes from torch's own directory."""
        return {row["name"] for row in plan["selection"]["packages"] if row["index"] == "torch"}

    def brought(self, name: str, build: Row) -> str | None:
        """Return the release of a wheel that torch for Windows brings, and that serves `build`."""
        there = self.installed.get("torch", {"intact": False})
        anew = self.document["python"].get("project") or there.get("outside")
        if not self.platform.startswith("windows") or anew or not there.get("intact", True):
            return None
        release: str = self.torch["carried"].get(name, "") if self.torch else ""
        known = [row["version"] for row in self.known[name]["releases"] if self._here(row)]
        return release if release in known and self.fits(name, release, build) else None

    def _one_toolkit(self, selected: Row, build: Row, in_torch: set[str]) -> Iterator[str]:
        free: dict[str, str] = {}
        rungs = [row for row in self.tables["toolkits"]["toolkit"] if self._rung(row, build)]
        rungs.sort(key=lambda row: (dotted(row["version"])[1], -dotted(row["version"])[2]))
        for name in selected.keys() & self.kinds.keys():
            there = self.installed.get(name)
            whole = there is not None and there.get("intact", True)
            fits = whole and there and self.fits(name, there["version"], build)
            taken = selected[name]
            if fits and there and not self._too_old(name, there["version"], taken, build, rungs):
                if there["version"] != selected[name]:
                    yield f"{name} {there['version']} can serve and is not kept"
            elif self.brought(name, build) or name in in_torch:
                if selected[name] != self.brought(name, build) or name not in in_torch:
                    yield f"{name} {selected[name]} is not {self.brought(name, build)} of torch"
            elif name.startswith("nvidia-cudnn") or self.pinned(name):
                fitting = [
                    row["version"]
                    for row in self.known[name]["releases"]
                    if self._here(row) and self.fits(name, row["version"], build)
                ]
                # A range leaves room for the toolkit's own, or the nearest newer toolkit's.
                parts = [row["components"].get(name) for row in rungs]
                open_ended = not any("==" in str(one) for one in self.demanded(name))
                near = [part for part in parts if part in fitting]
                if name.startswith("nvidia-cudnn") or not (open_ended and near):
                    near = [max(fitting, key=version, default=None)]
                if selected[name] != near[0]:
                    yield f"{name} {selected[name]} is not the newest that fits"
            else:
                free[name] = selected[name]
        yield from self._of_one_toolkit(free, rungs, build)

    def _of_one_toolkit(
        self, free: Mapping[str, str], rungs: Sequence[Row], build: Row
    ) -> Iterator[str]:
        for rung in rungs:
            parts = rung["components"]
            if all(parts.get(name) == release for name, release in free.items()):
                return
            if all(name in parts and self.fits(name, parts[name], build) for name in free):
                yield f"{free} are not those of {rung['version']}, which would do"
                return
        yield f"{free} belong to no one toolkit"

    def _too_old(self, name: str, there: str, taken: str, build: Row, rungs: Sequence[Row]) -> bool:
        """Tell whether an installed cuBLAS is older than the toolkit of a build that is new here.

        That is the one whose cuBLAS was taken: whether an older one would do is asked of the whole
        set. What others need stays.
        """
        if not name.startswith("nvidia-cublas"):
            return False
        users = {user.cuda for user in self.users if not user.declares}
        beside = self.installed.get(ORT, {}).get("version") == build["version"]
        parts = [row["components"].get(name) for row in rungs]
        wanted = [
            part for part in parts if part and all(meets(part, x) for x in self.demanded(name))
        ]
        if beside or self.kinds[name]["cuda"] in users or not wanted:
            return False
        return dotted(there)[:2] < dotted(taken if taken in wanted else wanted[0])[:2]

    def _runtime_is_right(self, plan: Row, selected: Row, build: Row) -> Iterator[str]:
        """Ask for msvc-runtime on Windows where the system's own is too old, or may not be there.

        One that is not known to be too old, or not to be there, comes only with other wheels.
        """
        fitting = [
            row["version"]
            for row in self.tables["msvc"]["wheel"]
            if self._here(row) and dotted(row["version"])[:2] >= dotted(build.get("toolset", "99"))
        ]
        there = self.installed.get(RUNTIME, {"version": None})
        if there["version"] in fitting and there.get("intact", True):
            if selected.get(RUNTIME) != there["version"]:
                yield f"{RUNTIME} {there['version']} can serve and is not kept"
            return
        obtainable = [
            row["version"]
            for row in self.tables["msvc"]["wheel"]
            if self._here(row) and row["python"] == self.abi and row["version"] in fitting
        ]
        other = {row["name"] for row in plan["install"]} & {ORT, *self.kinds}
        changes = bool(plan["uninstall"] or other)
        state = self._runtime_here(build)
        wanted = state in {"old", "absent"} or (state == "unknown" and changes)
        newest = max(map(version, obtainable), default=None) if wanted else None
        if selected.get(RUNTIME) != (newest and str(newest)):
            yield f"{RUNTIME} is {selected.get(RUNTIME)}, the system's is {state}, wheel {newest}"

    def _runtime_here(self, build: Row) -> str:
        rows = [
            row
            for row in self.document.get("libraries", ())
            if row["name"].lower() == "msvcp140.dll"
        ]
        if not rows:
            return "absent" if "libraries" in self.document.get("sources", {}) else "unknown"
        found = rows[0].get("version")
        floor = dotted(build.get("toolset", "0"))
        return "old" if found and dotted(found)[:2] < floor else "there"

    def _rung(self, row: Row, build: Row) -> bool:
        toolkit, built = dotted(row["version"]), dotted(build["cuda"])
        return toolkit[0] == built[0] and toolkit[:2] >= built[:2]

    def pinned(self, name: str) -> bool:
        releases = [row["version"] for row in self.known[name]["releases"] if self._here(row)]
        wanted = self.demanded(name)
        return any(not meets(release, one) for release in releases for one in wanted)

    def _nobody_is_hurt(self, plan: Row, selected: Row, build: Row) -> Iterator[str]:
        before = {name: row["version"] for name, row in self.installed.items()}
        after = {name: there for name, there in before.items() if name not in plan["uninstall"]}
        after |= {row["name"]: row["version"] for row in (*plan["install"], *plan["companions"])}
        picked: dict[str, SpecifierSet] = {
            canonicalize_name(one.name): one.specifier
            for one in map(requirement, plan["requires"])
            if one
        }
        yield from self._folders_are_free(plan, selected)
        yield from self._ordinary_are_there(build, after, picked)
        if after.get("onnxruntime", selected[ORT]) != selected[ORT]:
            yield f"the stand-in is {after['onnxruntime']}"
        after.setdefault("onnxruntime", selected[ORT])
        gone = {*plan["uninstall"], *self.owners, *(row["name"] for row in plan["install"])}
        stays = [row for name, row in self.installed.items() if name not in gone]
        for by, name, wanted in self.active(stays):
            well = name in before and meets(before[name], wanted) and name not in picked
            if well and not (name in after and meets(after[name], wanted)):
                yield f"{by} loses {name}{wanted}, gets {after.get(name)}"

    def _folders_are_free(self, plan: Row, selected: Row) -> Iterator[str]:
        leaving = {
            name
            for name, row in self.installed.items()
            if name in self.owners - {ORT} and not row.get("provided")
        }
        for row in self.shared:
            if selected.keys() & set(row):
                leaving |= (set(row) & self.installed.keys()) - selected.keys()
        orphans = set(plan["uninstall"]) - leaving
        if leaving - set(plan["uninstall"]) or not self._are_orphans(orphans, plan, selected):
            yield f"uninstalls {plan['uninstall']}, must {sorted(leaving)}"

    def _are_orphans(self, names: set[str], plan: Row, selected: Row) -> bool:
        """Return whether `names` are wheels of NVIDIA for another CUDA that nobody requires."""
        stays = [
            row for name, row in self.installed.items() if name not in {*plan["uninstall"], ORT}
        ]
        needed = {name for _, name, _ in self.active(stays)} | selected.keys()
        found = [re.fullmatch(r"nvidia-[a-z-]+?(?:-cu(\d+))?", name) for name in names]
        majors = {row[1] or "13" if row else "none" for row in found}  # from 13 on without one
        return needed.isdisjoint(names) and majors.isdisjoint({"none", plan["selection"]["cuda"]})

    def _ordinary_are_there(
        self, build: Row, after: Row, picked: Mapping[str, SpecifierSet]
    ) -> Iterator[str]:
        wheel = next(row for row in build["wheels"] if row["python"] == self.abi)
        required = self.ordinary(build, wheel)
        for name, wanted in required.items():
            if name in picked:
                within = functools.reduce(SpecifierSet.__and__, self.demanded(name), wanted)
                if picked[name] != within or (name in after and meets(after[name], wanted)):
                    yield f"picks {name}{picked[name]} for {name}{within}"
                if not satisfiable([wanted, *self.demanded(name)]):
                    yield f"picks {name}{wanted} against {self.demanded(name)}"
            elif name not in after or not meets(after[name], wanted):
                yield f"{ORT} lacks {name}{wanted}"
        for name in picked.keys() - required.keys():
            yield f"picks {name}, which nobody asked for"
