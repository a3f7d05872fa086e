"""Environments as PyPI has them on six machines, and what is wrong with the plans for them.

Whoever judges brings the command: `ask` takes facts and flags, and returns what it says. This is
judged by `raw_requirements`, and nothing here shares code with the program.
"""

from __future__ import annotations

import functools
import json
import lzma
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from raw_requirements import Whole, after, named, newly_unmet

Row = dict[str, Any]

MACHINES = {
    "GTX 1080": ("470.82.01", "6.1"),
    "A100": ("535.104.12", "8.0"),
    "T4": ("550.90.07", "7.5"),
    "RTX 5060": ("570.86.15", "12.0"),
    "RTX 4090": ("580.95.05", "8.9"),
    "H100": ("610.10", "9.0"),
}
"""GPUs with a driver and their compute capability."""
CODES = {"healthy": 0, "fixable": 1, "impossible": 3}
CHANGES = ("uninstall", "install", "companions", "requires")
NOTHING_WORKS = "no onnxruntime-gpu on PyPI works on this machine"
OF_CUDA = ("nvidia-", "cuda-")
DATA = Path(__file__).parents[1] / "cases" / "resolved.json.xz"


class Resolved(NamedTuple):
    """What somebody asks for, and what uv makes of it."""

    requirements: tuple[str, ...]
    python: str
    rows: tuple[Row, ...]
    """The distributions as facts have them."""
    aside: bool
    """It is of the tenth that is judged at the end."""

    @property
    def name(self) -> str:
        """Return it in one line."""
        return f"{' '.join(self.requirements)} on {self.python}"


def load(file: Path = DATA) -> list[Resolved]:
    """Return the environments that are kept, in their order."""
    document = json.loads(lzma.decompress(file.read_bytes()))
    rows = [
        {"name": name, "version": version, "requires": requires}
        for name, version, requires in document["distributions"]
    ]
    made = []
    for one in document["environments"]:
        names = [canonicalize_name(Requirement(text).name) for text in one["asked"]]
        asked = {name for name in names if name.startswith("nvidia-")}
        has = [
            {**row, "requested": True} if row["name"] in asked else row
            for row in (rows[number] for number in one["has"])
        ]
        made.append(Resolved(tuple(one["asked"]), one["python"], tuple(has), one["aside"]))
    return made


class Answer(NamedTuple):
    """What the command says, with `--json` and without."""

    plan: Row
    text: str
    code: int
    """Its exit code."""

    @property
    def lines(self) -> list[str]:
        """The lines for people."""
        return self.text.splitlines() or [""]

    @property
    def command(self) -> list[str]:
        """The flags of our own command that it ends with; empty where it ends with none."""
        words = shlex.split(self.lines[-1]) if self.lines[-1].startswith("ortgpu-fix ") else []
        return words[3:] if "--apply" in words else []  # `ortgpu-fix --python PATH …`


Ask = Callable[[Row, Sequence[str]], Answer]


def facts_of(rows: Sequence[Row], python: str, gpu: str) -> Row:
    """Return the facts of a machine with these distributions in a virtual environment."""
    driver, capability = MACHINES[gpu]
    versions = {row["name"]: row["version"] for row in rows}
    build = next((name for name in ("onnxruntime", "onnxruntime-gpu") if name in versions), None)
    return {
        "schema": 1,
        "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.36"},
        "driver": {"version": driver, "cuda": None, "error": None},
        "gpus": [{"name": gpu, "compute_capability": capability, "memory_mib": None}],
        "python": {
            "version": f"{python}.1",
            "implementation": "cpython",
            "executable": "/opt/app/bin/python",
            "environment": "venv",
        },
        "packages": list(rows),
        "onnxruntime": build
        and {"distribution": build, "version": versions[build], "cuda": None, "intact": True},
    }


def markers_of(python: str) -> dict[str, str]:
    """Return the environment of markers on these machines."""
    return {
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "platform_release": "",
        "platform_version": "",
        "python_version": python,
        "python_full_version": f"{python}.1",
        "implementation_name": "cpython",
        "implementation_version": f"{python}.1",
        "platform_python_implementation": "CPython",
    }


class JudgedSet:
    """An environment, planned for and judged."""

    def __init__(self, one: Resolved, ask: Ask) -> None:
        self.one, self._ask = one, ask
        self.whole = Whole(one.rows, markers_of(one.python))
        self.seen: Counter[str] = Counter()
        self._answers = functools.cache(self._answer)

    def wrong(self, machines: Sequence[str] = tuple(MACHINES)) -> Iterator[str]:
        """Yield what is wrong with the plans for it."""
        wishes = [(), ("--torch", "match")] if "torch" in self.whole.rows else [()]
        for gpu in machines:
            for wish in wishes:
                answer = self._answers(gpu, wish)
                self.seen["plans"] += 1
                for line in self._of_plan(gpu, wish, answer):
                    yield f"{' '.join((gpu, *wish))}: {line}"

    def _answer(self, gpu: str, flags: tuple[str, ...]) -> Answer:
        return self._ask(facts_of(self.one.rows, self.one.python, gpu), flags)

    def _of_plan(self, gpu: str, wish: tuple[str, ...], answer: Answer) -> Iterator[str]:
        plan = answer.plan
        if "error" in plan:
            yield f"an error: {plan['error']['message']}"
            return
        self.seen[plan["verdict"]] += 1
        self.seen["plans that name what they break"] += bool(named(plan))
        if answer.code != CODES[plan["verdict"]]:
            yield f"{plan['verdict']} has exit code {answer.code}"
        for by, text in sorted(newly_unmet(self.whole, plan) - named(plan)):
            yield f"{by} would lack {text}, and nothing says so"
        for name in self._left_over(plan):
            yield f"{name} is needed by nothing any more, and nothing says so"
        if answer.command:
            yield from self._not_accepted(gpu, answer)
        elif plan["verdict"] == "fixable":
            yield f"ends with no command: {answer.lines[-1]}"
        if plan["verdict"] == "impossible":
            yield from self._nothing_works(gpu, wish, answer)

    def _not_accepted(self, gpu: str, answer: Answer) -> Iterator[str]:
        flags = [word for word in answer.command if word != "--apply"]
        then = self._answers(gpu, tuple(flags))
        self.seen["commands that plans end with"] += 1
        last = answer.lines[-1]
        if then.plan.get("verdict") != "fixable" or then.plan.get("needs"):
            yield f"{last} is not accepted: {then.lines[-2:]} {then.plan.get('error')}"
        elif then.lines[-1] != last:
            yield f"{last} asks for {then.lines[-1]}"
        elif answer.plan["verdict"] == "fixable" and any(
            then.plan[key] != answer.plan[key] for key in CHANGES
        ):
            yield f"{last} makes other changes than the plan says"

    def _nothing_works(self, gpu: str, wish: Sequence[str], answer: Answer) -> Iterator[str]:
        """Hold it against an empty environment."""
        if self._empty(gpu).plan["verdict"] == "impossible":
            return
        self.seen["impossible beside what is installed"] += 1
        if NOTHING_WORKS in answer.text:
            yield "says that nothing works on the machine, and in an empty environment it does"
        rejected = answer.plan["rejected"]
        if all(any(why["by"] == "machine" for why in row["reasons"]) for row in rejected):
            yield f"the machine is said to exclude every release ({' '.join(wish)})"

    def _empty(self, gpu: str) -> Answer:
        return self._ask(facts_of([], self.one.python, gpu), ())

    def _left_over(self, plan: Row) -> Iterator[str]:
        """Yield what of the CUDA that torch leaves is needed no more, and is not reported.

        Who opens libraries that it does not require may need any of its CUDA; what the new torch
        requires of its own is not known.
        """
        others = [row for row in plan["consumers"] if row["name"] != "torch"]
        moves = any(row["name"] == "torch" for row in plan["install"])
        if not moves or any("requires" not in row["why"] for row in others):
            return
        then = after(self.whole, plan)
        extras = self.whole.extras()
        staying = {name: extras.get(name, set()) for name in then.rows}
        new = plan["selection"]["cuda"]
        kept = [name for name in then.rows if name.startswith(OF_CUDA) and cuda_of(name) != new]
        asked = {row["name"] for row in self.one.rows if row.get("requested")}
        needed = then.needed(kept, asked, staying)
        told = " ".join(row["summary"] for row in plan["findings"] if row["code"] == "orphans")
        yield from (name for name in sorted({*kept} - needed) if f"{name} " not in told)


def cuda_of(wheel: str) -> str:
    """Return the CUDA major of one of NVIDIA's wheels: from 13 on names are without it."""
    found = re.search(r"-cu(\d\d)$", wheel)
    return found[1] if found else "13"
