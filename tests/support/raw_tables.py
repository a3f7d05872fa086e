"""What a machine can run, asked of the raw tables by trying everything.

It shares no code with the program: the other half of `checker`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from raw_consumers import User, majors_here, users
from raw_requirements import Whole
from raw_torch import cudnn_of, installed_torch, pinned_by

ORT = "onnxruntime-gpu"
Row = Mapping[str, Any]


@functools.cache
def version(text: str) -> Version:
    """Return a version that compares; what is none is lower than all."""
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0.dev0")


@functools.cache
def requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def meets(text: str, specifier: SpecifierSet) -> bool:
    """Tell whether the version `text` meets `specifier`; what is no version meets only nothing."""
    try:
        return specifier.contains(Version(text), prereleases=True)
    except InvalidVersion:
        return not str(specifier)


@functools.cache
def dotted(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def machine_code(targets: Sequence[str], gpu: str) -> bool:
    """Tell whether a GPU runs machine code for one of `targets`."""
    (major, minor), exact = dotted(gpu), {f"{gpu}a"}
    return any(
        target in exact or (not target.endswith("a") and (major == at[0] and minor >= at[1]))
        for target in targets
        for at in [dotted(target)]
    )


def compilable(targets: Sequence[str], gpu: str) -> bool:
    """Tell whether a driver that is new enough compiles PTX for one of `targets` for a GPU."""
    return any(
        target == f"{gpu}a"
        if target.endswith("a")
        else dotted(target) <= dotted(gpu)
        and (not target.endswith("f") or dotted(target)[0] == dotted(gpu)[0])
        for target in targets
    )


def satisfiable(wanted: Sequence[SpecifierSet]) -> bool:
    """Tell whether one version can meet all of `wanted`, by trying those around all they name."""
    named = {one.version.removesuffix(".*") for each in wanted for one in each}
    tried = {f"{name}{tail}" for name in named for tail in ("", ".0.0.1", ".1", ".999")}
    return any(
        all(meets(candidate, one) for one in wanted) for candidate in ["0", "99999", *sorted(tried)]
    )


def prefix_at_least(have: str, floor: str) -> bool:
    """Compare as many numbers as both give: the system says `9.1`, a wheel `9.1.0.70`."""
    length = min(len(dotted(have)), len(dotted(floor)))
    return dotted(have)[:length] >= dotted(floor)[:length]


class _Table:
    """A table that can be a key: it is the same only as itself."""

    def __init__(self, row: Row) -> None:
        self.row = row

    def __hash__(self) -> int:
        return id(self.row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Table) and other.row is self.row


@functools.lru_cache(maxsize=256)
def _indexed(table: _Table, platform: str) -> tuple[Mapping[str, Row], Mapping[str, Row]]:
    """Return the releases and the blocks of files of a distribution on `platform`, by version."""
    releases = {row["version"]: row for row in table.row["releases"] if row["platform"] == platform}
    blocks = [row for row in table.row.get("files", ()) if row["platform"] == platform]
    return releases, {release: row for row in reversed(blocks) for release in row["versions"]}


class Machine:
    """The machine, and what the tables say of everything on it."""

    def __init__(self, document: Row, tables: Mapping[str, Row], options: Row) -> None:
        self.tables, self.options, self.document = tables, options, document
        system, python = document["platform"], document["python"]
        self.system = system
        self.platform = f"{system['system']}_{system['machine']}"
        self.libc = system.get("libc") or ""
        self.installed: dict[str, Row] = {
            canonicalize_name(row["name"]): row for row in document["packages"]
        }
        self.gpus = None
        if document["gpus"] is not None:
            seen = [gpu.get("compute_capability") for gpu in document["gpus"]]
            self.gpus = [gpu for gpu in seen if gpu not in options.get("ignored", ())]
        self.torch, self.torch_cuda = self._torch()
        self.cpython = python.get("implementation", "cpython") == "cpython"
        numbers = dotted(python["version"])
        # CPython before 3.8 has the flag m for its allocator (PEP 3149).
        flag = "m" if (*numbers[:2],) < (3, 8) else "t" if python.get("free_threaded") else ""
        self.takes_wheels = (*numbers[:2],) >= (3, 8)  # nothing is installed into an older one
        self.abi = f"cp{numbers[0]}{numbers[1]}{flag}"
        windows = system["system"] == "windows"
        self.markers = {
            "os_name": "nt" if windows else "posix",
            "sys_platform": "win32" if windows else "linux",
            "platform_system": "Windows" if windows else "Linux",
            "platform_machine": "AMD64" if windows else system["machine"],
            "python_version": f"{numbers[0]}.{numbers[1]}",
            "python_full_version": python["version"],
            "implementation_name": python.get("implementation", "cpython"),
            "platform_python_implementation": "CPython" if self.cpython else "PyPy",
        }
        self.driver = self._driver_cuda()
        self.builds = [row for row in tables["onnxruntime"]["build"] if self._here(row)]
        self.known = {row["name"]: row for row in tables["nvidia"]["distribution"]}
        self.kinds = {name: self._with_unknown(row) for name, row in self.known.items()}
        self.owners = {row["name"] for row in tables["distributions"]["owner"]}
        self.shared = [
            row["distributions"] for row in tables["distributions"]["shared"] if row["files"]
        ]
        self.staying = [
            row
            for name, row in self.installed.items()
            if name not in self.owners and name not in self.kinds
        ]
        self.demands = list(self.active(self.staying))
        self.users = self._users()

    def _with_unknown(self, kind: Row) -> Row:
        """Return a distribution with the installed release of it that the tables lack.

        That has the libraries that were seen of it; whatever was not seen is as in the newest
        release of its major that is not newer, or else the oldest of that major.
        """
        there = self.installed.get(kind["name"])
        here = [row["version"] for row in kind["releases"] if self._here(row)]
        if there is None or there["version"] in here or not there.get("intact", True):
            return kind
        release = there["version"]
        line = [one for one in here if dotted(one)[0] == dotted(release)[0]]
        older = [one for one in line if version(one) <= version(release)]
        like = max(older, key=version) if older else min(line, key=version, default="")
        rows = {row["version"]: row for row in kind["releases"] if self._here(row)}
        files = [row for row in kind["files"] if self._here(row) and like in row["versions"]]
        block = {"links": [], "loads": [], **(files[0] if files else {"libraries": {}})}
        if there.get("libraries"):
            seen = {path.rpartition("/")[2]: path for path in there["libraries"]}
            block = {**block, "libraries": seen}
        code = [
            {**row, "first": release, "last": release}
            for row in kind.get("code", ())
            if like and self._here(row)
            if version(row["first"]) <= version(like) <= version(row["last"])
        ]
        if not like:  # of a major that nobody has seen: nothing says that it has no code
            everything = [gpu for gpu in self.gpus or () if gpu]
            code = [{"platform": self.platform, "first": release, "last": release, "ptx": []}]
            code[0]["sass"] = everything
        row = {"requires": [], **rows.get(like, {}), "version": release, "platform": self.platform}
        return {
            **kind,
            "releases": [*kind["releases"], {**row, "glibc": None, "sha256": "", "unknown": True}],
            "files": [{**block, "versions": [release], "platform": self.platform}, *kind["files"]],
            **({"code": [*kind["code"], *code]} if "code" in kind else {}),
        }

    def _torch(self) -> tuple[Row | None, str | None]:
        """Return the build and the CUDA of the installed torch; fill in what it requires."""
        row = self.installed.get("torch")
        if row is None:
            return None, None
        build, cuda = installed_torch(row, self.tables, self.platform)
        lines = row.get("requires", ())
        through = any(line.startswith("cuda-toolkit") for line in lines)
        if build and (not lines or (through and "cuda-toolkit" not in self.installed)):
            pins = pinned_by(build, self.tables)
            self.installed["torch"] = {**row, "requires": [*lines, *pins]}
        return build, cuda

    def _users(self) -> list[User]:
        """Return who uses CUDA beside onnxruntime and torch."""
        requires: dict[str, set[str]] = {}
        for by, name, _ in self.demands:
            if name in self.kinds:
                requires.setdefault(by, set()).add(name)
        rows = [row for row in self.tables["consumers"]["consumer"] if self._here(row)]
        apart = {*self.owners, "torch", "torchvision", "torchaudio"}
        return users(self.installed, rows, self.kinds, requires, apart)

    def together(self, build: Row) -> bool:
        """Tell whether each user of CUDA and `build` can load the cuDNN that they need.

        One that has no CUDA of its own here loads none. The installed wheel that one loads, and
        does not require, keeps its major.
        """
        libraries = {row["name"] for row in self.document.get("libraries", ())}
        present = majors_here(self.installed, libraries, self.kinds)
        major = str(dotted(build["cuda"])[0])
        wheel = self.installed.get(f"nvidia-cudnn-cu{major}")
        own = wheel and str(dotted(wheel["version"])[0])
        if own != build["cudnn"] and (major, own, False) in [
            (user.cuda, user.cudnn, user.declares) for user in self.users if user.cudnn
        ]:
            return False
        return all(
            user.cuda in {None, major} or user.cudnn != build["cudnn"] or user.cuda not in present
            for user in self.users
        )

    def one_cuda(self, build: Row) -> bool:
        """Tell whether all that use CUDA use the major of `build`."""
        major = dotted(build["cuda"])[0]
        majors = {user.cuda for user in self.users} | {self.torch_cuda}
        return all(dotted(each)[0] == major for each in majors if each)

    def shares(self, build: Row) -> bool:
        """Tell whether the provider of `build` and the installed torch can be in one process."""
        if self.torch_cuda is None:
            return True
        if dotted(self.torch_cuda)[0] != dotted(build["cuda"])[0]:
            return False
        cudnn = cudnn_of(self.torch) if self.torch else None
        if cudnn is not None and cudnn.partition(".")[0] != build["cudnn"]:
            return False
        for need in build["needs"]:
            have = (self.torch or {"carried": {}})["carried"].get(need.get("distribution"))
            if have is None:
                continue
            holding = [
                release
                for row in self.known[need["distribution"]].get("files", ())
                if self._here(row) and need["library"] in row["libraries"]
                for release in row["versions"]
            ]
            known = version(need["since"]) > min(map(version, holding))
            if known and version(have) < version(need["since"]):
                return False
        return True

    def _here(self, row: Row) -> bool:
        return bool(row["platform"] == self.platform)

    def _driver_cuda(self) -> tuple[int, ...]:
        driver = self.document["driver"] or {}
        said = dotted(driver["cuda"]) if driver.get("cuda") else ()
        release = dotted(driver.get("version") or "0")
        system = self.document["platform"]["system"]
        # Releases below its floor do not run a major, whatever their branch speaks. What a release
        # leaves out (`580`, `580.65`) may be anything.
        barred = {
            dotted(row["cuda"])[0]
            for row in self.tables["drivers"]["floor"]
            if release < dotted(row[system])[: len(release)]
        }
        spoken = [
            dotted(row["cuda"])
            for row in self.tables["drivers"]["branch"]
            if row["branch"] <= release[0]
        ]
        # What it says counts, but for its own branch's major below the floor of that.
        if said and not (said[0] in barred and said[:1] == max(spoken, default=())[:1]):
            return said
        return max((cuda for cuda in spoken if cuda[0] not in barred), default=())

    def active(self, packages: Sequence[Row]) -> Iterator[tuple[str, str, SpecifierSet]]:
        """Yield who requires what, by name and specifier, with the extras that are asked for."""
        names = {canonicalize_name(row["name"]) for row in packages}
        for each in self.whole().wanted():
            if each.by in names:
                yield each

    def whole(self) -> Whole:
        """Return all that is installed."""
        return Whole(self.installed.values(), self.markers)

    def _holds(self, wanted: Requirement, extras: set[str]) -> bool:
        marker = wanted.marker
        return marker is None or any(
            marker.evaluate({**self.markers, "extra": extra}) for extra in extras
        )

    def demanded(self, name: str) -> list[SpecifierSet]:
        return [specifier for _, wanted, specifier in self.demands if wanted == name]

    def old_enough(self, glibc: str | None) -> bool:
        kind, _, number = self.libc.partition(" ")
        return not glibc or not kind or (kind == "glibc" and dotted(number) >= dotted(glibc))

    # What one release of one thing can do here.

    def releases(self, name: str) -> Mapping[str, Row]:
        """Return the releases of an nvidia distribution that have a wheel here, by version."""
        return _indexed(_Table(self.kinds[name]), self.platform)[0]

    def libraries(self, name: str, release: str) -> Row:
        """Return the block of files of an nvidia release."""
        return _indexed(_Table(self.kinds[name]), self.platform)[1].get(release, {"libraries": {}})

    def has_code(self, name: str, release: str) -> bool:
        """Tell whether an nvidia release carries machine code for every GPU, or none at all."""
        rows = [row for row in self.kinds[name].get("code", ()) if self._here(row)]
        at = version(release)
        covering = [row for row in rows if version(row["first"]) <= at <= version(row["last"])]
        if not rows:
            return True
        strict = name.startswith(("nvidia-cublas", "nvidia-cudnn"))
        shipped = [
            dotted(row["version"])[:2]
            for row in self.tables["toolkits"]["toolkit"]
            if row["components"].get(name) == release
        ]
        compiles = not strict and (not self.driver or self.driver[:2] >= min(shipped, default=()))
        return bool(covering) and all(
            machine_code(covering[0]["sass"], gpu)
            or (compiles and compilable(covering[0]["ptx"], gpu))
            for gpu in self.gpus or ()
            if gpu
        )

    def fits(self, name: str, release: str, build: Row) -> bool:
        """Tell whether an nvidia release can serve `build` here, next to what stays."""
        row = self.releases(name).get(release)
        if row is None or not self.old_enough(row.get("glibc")):
            return False
        there = self.libraries(name, release)["libraries"]
        needs = [need for need in build["needs"] if need.get("distribution") == name]
        return (
            all(need["library"] in there for need in needs)
            and all(version(release) >= version(need.get("since", "0")) for need in needs)
            and all(meets(release, specifier) for specifier in self.demanded(name))
            and self.has_code(name, release)
        )

    def follows(self, name: str, release: str) -> set[str]:
        """Return the nvidia distributions that an nvidia release cannot do without."""
        row = self.releases(name)[release]
        wanted = filter(None, map(requirement, row.get("requires", ())))
        names: set[str] = {canonicalize_name(one.name) for one in wanted if self._holds(one, {""})}
        block = self.libraries(name, release)
        for library in (*block.get("links", ()), *block.get("loads", ())):
            names |= {
                other
                for other, kind in self.kinds.items()
                if kind["cuda"] == self.kinds[name]["cuda"]
                and any(library in row["libraries"] for row in kind.get("files", ()))
            }
        return names & self.kinds.keys()

    # What is possible at all.

    def possible(self, build: Row) -> bool:
        """Tell whether any set with `build` can work here, by trying every release."""
        wheel = next((row for row in build["wheels"] if row["python"] == self.abi), None)
        wish = self.options.get("onnxruntime", "")
        return (
            wheel is not None
            and (
                self.takes_wheels or self.installed.get(ORT, {}).get("version") == build["version"]
            )
            and self.machine_runs(build)
            and self.shares(build)
            and self.together(build)
            and meets(build["version"], SpecifierSet(wish))
            and self.options.get("cuda") in {None, str(dotted(build["cuda"])[0])}
            and all(
                meets(build["version"], specifier)
                for name in ("onnxruntime", ORT)
                for specifier in self.demanded(name)
            )
            and self._ordinary_agree(build, wheel)
            and self._wheels_exist(build)
        )

    def dropped(self) -> bool:
        """Tell whether the driver came after the last branch for a GPU, or before all first ones.

        Not where the driver told of the GPUs itself.
        """
        told = self.document.get("sources", {}).get("gpus", "")
        release = (self.document["driver"] or {}).get("version")
        if release is None or "nv" in told or "libcuda" in told:
            return False
        drivers = self.tables["drivers"]
        branches = [row["branch"] for row in drivers["branch"]]
        own = max((one for one in branches if one <= dotted(release)[0]), default=0)
        known = [dotted(gpu) for gpu in self.gpus or () if gpu]
        if known and any(
            dotted(release)[0] < row["branch"]
            for row in drivers["first"]
            if min(known) >= dotted(row["capability"])
        ):
            return True
        return any(
            own > row["branch"]
            for row in drivers["last"]
            for gpu in self.gpus or ()
            if gpu and dotted(gpu) < dotted(row["below"])
        )

    def machine_runs(self, build: Row) -> bool:
        """Tell whether system, driver and GPUs run the CUDA provider of `build`."""
        return (
            self.cpython
            and not self.system.get("jetson")
            and not self.libc.startswith("musl")
            and self.old_enough(build.get("glibc"))
            and self.gpus != []
            and not self.dropped()
            and self.driver[:1] >= dotted(build["cuda"])[:1]
            and all(
                machine_code(build["sass"], gpu)
                or (compilable(build["ptx"], gpu) and self.driver[:2] >= dotted(build["cuda"])[:2])
                for gpu in self.gpus or ()
                if gpu
            )
        )

    def ordinary(self, build: Row, wheel: Row) -> dict[str, SpecifierSet]:
        """Return what `build` requires of ordinary distributions, its forgotten limits too."""
        found: dict[str, SpecifierSet] = {}
        for wanted in map(requirement, wheel.get("requires", build["requires"])):
            if wanted and self._holds(wanted, {""}):
                name = canonicalize_name(wanted.name)
                found[name] = found.get(name, SpecifierSet()) & wanted.specifier
        for row in self.tables["limits"]["limit"]:
            if meets(build["version"], SpecifierSet(row["onnxruntime"])):
                limit = SpecifierSet(row["requires"])
                found[row["name"]] = found.get(row["name"], SpecifierSet()) & limit
        return found

    def _ordinary_agree(self, build: Row, wheel: Row) -> bool:
        for name, wanted in self.ordinary(build, wheel).items():
            there = self.installed.get(name)
            if there and meets(there["version"], wanted):
                continue
            if name == "numpy" and there:
                if not self.numpys(wanted):
                    return False
            elif not satisfiable([wanted, *self.demanded(name)]):
                return False
        return True

    def numpys(self, wanted: SpecifierSet) -> list[str]:
        """Return the numpy releases of the tables that can take the place of the one installed."""
        return [
            row["version"]
            for row in self.tables["numpy"]["wheel"]
            if self._here(row)
            and row.get("python") == self.abi
            and self.old_enough(row.get("glibc"))
            and all(meets(row["version"], one) for one in [wanted, *self.demanded("numpy")])
        ]

    def _wheels_exist(self, build: Row) -> bool:
        names = {need["distribution"] for need in build["needs"] if need.get("distribution")}
        return all(self._obtainable(name, build, frozenset()) for name in names)

    def _obtainable(self, name: str, build: Row, asking: frozenset[str]) -> bool:
        """Tell whether some release of `name`, and of all that it needs, can serve `build`."""
        if name in asking:
            return True
        rivals = {other for row in self.shared if name in row for other in row} - {name}
        if any(other in self.installed and self.demanded(other) for other in rivals):
            return False
        # Who requires nothing needs it all the same.
        needed = {user.cuda for user in self.users if not user.declares}
        if any(other in self.installed and self.kinds[other]["cuda"] in needed for other in rivals):
            return False
        releases = self.releases(name)
        return any(
            self.fits(name, release, build)
            and all(
                self._obtainable(other, build, asking | {name})
                for other in self.follows(name, release)
            )
            for release in sorted(releases, key=version, reverse=True)
        )
