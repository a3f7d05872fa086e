"""What programs print of a machine, read as they print it: nvidia-smi, pip and conda.

In: a text that holds such outputs, with anything around them; out: what they say, each with its
line. What they do not say, or say twice and differently, is not known. Sentences are not read.

Read are nvidia-smi's table and `nvidia-smi --query-gpu=… --format=csv`, `pip list` (as a table,
`--format=freeze` or `--format=json`), `pip freeze`, `pip inspect` and `conda list`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from packaging.utils import canonicalize_name

from .document import SCHEMA
from .gpu_names import gpus_like, product_name
from .model import OTHER_PACKAGES, PACKAGE_FILES, TEXT
from .target import MACHINES

LONGEST = 500
"""What is looked at of a line; a document of JSON may be longer."""
MOST_LINES = 1_000_000
MOST_DOCUMENTS = 8
"""How many lines are tried that may begin a document of JSON: each is read to its end."""
WHOLE = "pip"
"""The package that shows that a list names all that is installed: nobody picks it out."""

NEEDED = {
    "system": ("platform", "system", "--platform NAME"),
    "machine": ("platform", "machine", "--platform NAME"),
    "driver": ("driver", "version", "--driver VERSION"),
    "gpus": ("gpus", None, "--gpu GPU"),
    "python": ("python", "version", "--python VERSION"),
}
"""What a plan has to know: where the document has it, and the flags that say it."""

_HEAD = re.compile(
    r"NVIDIA-SMI\s{1,40}(?P<smi>\d{3}\.[\d.]{2,6})"
    r"\s{1,40}(?:Driver|KMD) Version:\s{0,9}(?P<driver>\d{3}\.[\d.]{2,6})"
    r"(?:\s{1,40}CUDA (?:UMD )?Version:\s{0,9}(?P<cuda>\d{1,2}\.\d)?)?"
)
_GPU = re.compile(
    r"^\|\s{1,9}\d{1,3}\s{1,9}(?P<gpu>\S.{0,60}?)\s{1,40}"
    r"(?:On|Off|WDDM|TCC|MCDM|N/A)\s{1,9}\|\s{1,9}[0-9A-Fa-f]{4,8}:"
)
_MEMORY = re.compile(r"^\|.{0,60}\|\s{0,12}\d{1,7}MiB ?/ {0,8}(?P<total>\d{1,7})MiB \|")
_CUT = re.compile(r"\.\.\.$|…$")
_OF_LINUX, _OF_WINDOWS = (
    re.compile(r"\| GPU +Name +Persistence-M"),
    re.compile(r"\| GPU +Name +(?:TCC/WDDM|Driver-Model)"),
)
_WINDOWS_RELEASE = re.compile(r"\d{3}\.\d\d")
_CSV = re.compile(
    r"[a-z][a-z0-9_.]{1,40}(?: \[MiB\])?(?:, [a-z][a-z0-9_.]{1,40}(?: \[\w{1,6}\])?){0,20}"
)
_COLUMNS = {"driver_version", "compute_cap", "memory.total [MiB]"}
"""Of which a heading of `--format=csv` has one at least."""
_PIP = re.compile(r"Package +Version(?: +(?:Editable project location|Location|Installer|Build))*")
_PIP_ROW = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*) +(?P<version>\d[\w.+!-]*)(?: +\S.*)?")
_CONDA = re.compile(r"# packages in environment at .+:")
_CONDA_ROW = re.compile(
    r"(?P<name>_?[A-Za-z0-9][\w.-]*) +(?P<version>\d[\w.+!-]*)(?: +\S+)?(?: +(?P<channel>\S+))?"
)
_CONDA_NAMES = {"pytorch": "torch"}
"""Packages that conda calls otherwise."""
_FREEZE = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>\d[\w.+!-]*)")
_FREEZE_OTHER = re.compile(r"-e \S.*|[A-Za-z0-9][\w.-]* @ \S.*|# Editable .*")
_FREEZE_COMMAND = re.compile(r"\bpip3? (?:freeze|list)\b")
_JSON = ('[{"name": "', '{"version": "1"', "{")
"""How documents begin, as pip prints them: of `pip list`, and of `pip inspect`."""
_BORDER = re.compile(r"[+|=-]{3}[+|=\s-]*")


class Shown(NamedTuple):
    """What an output says of one fact, and its line."""

    fact: str
    """`system`, `machine`, `driver`, `cuda`, `gpus`, `python`, `environment`, `packages`."""
    value: Any
    line: int


class Outputs(NamedTuple):
    """What all outputs in a text say."""

    shown: Mapping[str, Shown]
    """By fact; what is said twice and differently is not there."""
    several: tuple[str, ...] = ()
    """The facts of which the outputs say different things."""

    def value(self, fact: str) -> object:
        """Return what is said of a fact; None where it is not known."""
        return self.shown[fact].value if fact in self.shown else None

    def document(self) -> dict[str, Any]:
        """Return the document of `facts`: null, or a key that is missing, is not known."""
        driver, cuda = self.value("driver"), self.value("cuda")
        sources = {
            fact: f"{TEXT} {self.shown[fact].line}"
            for fact in ("driver", "gpus", "python", "packages")
            if fact in self.shown
        }
        sources[PACKAGE_FILES] = "assumed"
        packages = cast("dict[str, dict[str, Any]]", self.value("packages") or {})
        if WHOLE not in packages:
            sources[OTHER_PACKAGES] = "assumed"
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "platform": {
                "system": self.value("system"),
                "machine": self.value("machine"),
                "wsl": bool(self.value("wsl")),
            },
            "driver": {"version": driver, "cuda": cuda},
            "gpus": self.value("gpus"),
            "python": {"version": self.value("python"), "environment": self.value("environment")},
            "packages": [{"name": name, **package} for name, package in packages.items()],
            "sources": sources,
        }
        return document


def read_outputs(text: str, gpus: Mapping[str, Any]) -> Outputs:
    """Return what the outputs in a text say; `gpus` is the parsed `gpus.toml`."""
    lines = text.split("\n", MOST_LINES)[:MOST_LINES]
    found: dict[str, list[Shown]] = {}
    for each in _Reader(lines, gpus).read():
        found.setdefault(each.fact, []).append(each)
    shown = {fact: _one(fact, rows) for fact, rows in found.items()}
    several = tuple(fact for fact, one in shown.items() if one is None)
    return Outputs({fact: one for fact, one in shown.items() if one}, several)


def _one(fact: str, shown: Sequence[Shown]) -> Shown | None:
    """Return what all say of a fact; None where they differ. Lists of packages may add up."""
    if fact != "packages":
        same = all(each.value == shown[0].value for each in shown)
        return shown[0] if same else None
    packages: dict[str, dict[str, str]] = {}
    for each in shown:
        for name, package in each.value.items():
            if packages.setdefault(name, package)["version"] != package["version"]:
                return None
    return shown[0]._replace(value=packages)


class _Reader:
    """Reads the lines; `at` is the index of the line after those that were read."""

    def __init__(self, lines: Sequence[str], gpus: Mapping[str, Any]) -> None:
        self.lines = lines
        self.gpus = gpus
        self.at = 0
        self.documents = 0
        self.alone = True
        """Whether nothing but outputs, and blank lines, stands directly above."""

    def read(self) -> Iterator[Shown]:
        while self.at < len(self.lines):
            line = self._line()
            begin = self.at
            yield from self._output(line, begin + 1)
            if self.at > begin:
                self.alone = True
                continue
            if line:
                self.alone = bool(_FREEZE_COMMAND.search(line) or _BORDER.fullmatch(line))
            self.at += 1

    def _line(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.lines[at][:LONGEST].strip() if at < len(self.lines) else ""

    def _output(self, line: str, number: int) -> Iterator[Shown]:
        """Yield what the output that begins with this line says, and go beyond it."""
        head = _HEAD.search(line)
        if head:
            yield from self._smi(head, number)
        elif _CSV.fullmatch(line) and _COLUMNS & {*line.split(", ")} and "," in self._line(1):
            yield from self._csv(line.split(", "), number)
        elif _PIP.fullmatch(line) and set(self._line(1)) <= {"-", " "} != set():
            self.at += 2
            yield from self._packages(self._rows(_PIP_ROW), number)
        elif _CONDA.fullmatch(line):
            self.at += 1
            while self._line().startswith("#"):
                self.at += 1
            yield from self._conda(number)
        elif line.startswith(_JSON) and self.documents < MOST_DOCUMENTS:
            yield from self._json(number)
        elif self.alone and (_FREEZE.fullmatch(line) or _FREEZE_OTHER.fullmatch(line)):
            yield from self._packages(self._rows(_FREEZE, _FREEZE_OTHER), number)

    def _smi(self, head: re.Match[str], number: int) -> Iterator[Shown]:
        """Read nvidia-smi's table, which ends where its lines do."""
        yield Shown("driver", head["driver"], number)
        if head["cuda"]:
            yield Shown("cuda", head["cuda"], number)
        system = None
        cards: list[dict[str, Any]] = []
        self.at += 1
        while (line := self._line()).startswith(("|", "+")) and not _HEAD.search(line):
            gpu, memory = _GPU.match(line), _MEMORY.match(line)
            if _OF_LINUX.match(line):
                system = "linux"
            elif _OF_WINDOWS.match(line):
                system = "windows"
            if gpu:
                cards.append(self._card(gpu["gpu"]))
            elif memory and cards:
                cards[-1].setdefault("memory_mib", int(memory["total"]))
            self.at += 1
        if system:
            yield Shown("system", system, number)
            of_windows = bool(_WINDOWS_RELEASE.fullmatch(head["driver"]))
            yield Shown("wsl", system == "linux" and of_windows, number)
        if cards:
            yield Shown("gpus", cards, number)

    def _card(self, name: str) -> dict[str, Any]:
        """Return a GPU; the table cuts long names: `NVIDIA GeForce RTX 3060 ...`."""
        whole = _CUT.sub("", name).strip()
        found = {*gpus_like(self.gpus, whole)}
        if not found and whole != name:
            begin = product_name(whole)
            found = {
                family["compute_capability"]
                for family in self.gpus["family"]
                if any(product_name(each).startswith(begin) for each in family["names"])
            }
        return {"name": whole, "compute_capability": found.pop() if len(found) == 1 else None}

    def _csv(self, columns: Sequence[str], number: int) -> Iterator[Shown]:
        """Read `nvidia-smi --query-gpu=… --format=csv`."""
        gpus: list[dict[str, str]] = []
        self.at += 1
        while len(values := self._line().split(", ")) == len(columns):
            gpus.append(dict(zip(columns, values, strict=True)))
            self.at += 1
        drivers = {gpu["driver_version"] for gpu in gpus if "driver_version" in gpu}
        if len(drivers) == 1 and re.fullmatch(r"[\d.]{5,12}", driver := drivers.pop()):
            yield Shown("driver", driver, number)
        if gpus and "name" in columns:
            yield Shown("gpus", [self._queried(gpu) for gpu in gpus], number)

    def _queried(self, gpu: Mapping[str, str]) -> dict[str, Any]:
        card = self._card(gpu["name"])
        if re.fullmatch(r"\d{1,2}\.\d", capability := gpu.get("compute_cap", "")):
            card["compute_capability"] = capability
        memory = re.match(r"\d+", gpu.get("memory.total [MiB]", ""))
        return card | ({"memory_mib": int(memory[0])} if memory else {})

    def _rows(self, form: re.Pattern[str], *others: re.Pattern[str]) -> dict[str, dict[str, str]]:
        """Return the packages of the next lines, as long as they have this form."""
        packages: dict[str, dict[str, str]] = {}
        while row := form.fullmatch(self._line()) or self._other(others):
            if isinstance(row, re.Match):
                packages[canonicalize_name(row["name"])] = {"version": row["version"]}
            self.at += 1
        return packages

    def _other(self, forms: Sequence[re.Pattern[str]]) -> bool:
        return any(form.fullmatch(self._line()) for form in forms)

    def _packages(self, packages: Mapping[str, Any], number: int) -> Iterator[Shown]:
        if packages:
            yield Shown("packages", packages, number)

    def _conda(self, number: int) -> Iterator[Shown]:
        """Read the rows of `conda list`: the Python is one of them."""
        packages: dict[str, dict[str, str]] = {}
        while row := _CONDA_ROW.fullmatch(self._line()):
            name = canonicalize_name(_CONDA_NAMES.get(row["name"], row["name"])).strip("-")
            held = {} if row["channel"] == "pypi" else {"held": "conda"}
            packages[name] = {"version": row["version"], **held}
            self.at += 1
        python = packages.pop("python", None)
        if python:
            yield Shown("python", python["version"], number)
            yield Shown("environment", "conda", number)
        yield from self._packages(packages, number)

    def _json(self, number: int) -> Iterator[Shown]:
        """Read what `pip list --format=json` or `pip inspect` printed."""
        line = self.lines[self.at].strip()
        if line == "{" and not self._line(1).startswith('"version": "1"'):
            return
        self.documents += 1
        text = line if line.startswith("[") else "\n".join(self.lines[self.at :])
        try:
            document, end = json.JSONDecoder().raw_decode(text.lstrip())
        except (ValueError, RecursionError):
            return
        listed = document if isinstance(document, list) else document.get("installed")
        packages_listed = [
            package.get("metadata", package)
            for package in listed or ()
            if isinstance(package, dict)
        ]
        packages: dict[str, Any] = {}
        for package in packages_listed:
            if isinstance(package, dict) and isinstance(package.get("name"), str):
                requires = [
                    each for each in package.get("requires_dist", ()) if isinstance(each, str)
                ]
                packages[canonicalize_name(package["name"])] = {
                    "version": str(package.get("version"))
                } | ({"requires": requires} if requires else {})
        yield from self._packages(packages, number)
        if isinstance(document, dict):
            yield from _markers(document.get("environment"), number)
        self.at += text.count("\n", 0, end) + 1


def _markers(environment: object, number: int) -> Iterator[Shown]:
    """Read the environment of `pip inspect`: the values of markers."""
    if not isinstance(environment, dict):
        return
    system = str(environment.get("platform_system", "")).lower()
    if system in {"linux", "windows"}:
        yield Shown("system", system, number)
    machine = MACHINES.get(str(environment.get("platform_machine", "")).lower())
    if machine:
        yield Shown("machine", machine, number)
    python = environment.get("python_full_version")
    if isinstance(python, str):
        yield Shown("python", python, number)
