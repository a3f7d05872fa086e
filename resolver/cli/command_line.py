"""A command for the user to paste: this one's flags, and what it should do."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable

from ..facts.model import Facts, System
from ..facts.target import MACHINES
from ..messages.catalog import Language, Texts, load_texts
from ..messages.shells import TypedCommand, pasted_commands
from ..plan.model import Plan, Where
from ..probe.interpreter import DOT_VENV
from .flags import Options
from .guests import FLAGS

SYSTEM: System = "windows" if sys.platform == "win32" else "linux"
"""The system that this program runs on."""
_KEPT = frozenset(
    {
        *("python", "facts", "driver", "gpu", "ignore-gpu", "ort", "cuda", "torch", "requirement"),
        *("provider", "no-autoload", "no-provide", "allow", "offline"),
        *("find-links", "index-url", "torch-index-url", "tensorrt-index-url", "matrix", "prefer"),
    }
)
"""What decides which plan is made, or where its wheels come from."""


def command_line(
    options: Options,
    *wanted: str,
    leaving: frozenset[str] = frozenset(),
    system: System = SYSTEM,
) -> str:
    """Return `ortgpu-fix` with the flags that were given but for `leaving`, and then `wanted`.

    As the shells of `system` take it, with the name of each where no text serves all of them; the
    credentials of an address stay out.
    """
    names = [name for name in _kept(leaving) if f"--{name}" not in wanted]
    return in_shells(("ortgpu-fix", *words_of(options, names), *wanted), system)


def typed_command(options: Options) -> TypedCommand:
    """Return `ortgpu-fix` with the flags that were given, for a sentence."""
    return TypedCommand(("ortgpu-fix", *words_of(options, _kept())), SYSTEM)


def texts_for(options: Options, language: Language) -> Texts:
    """Return all texts; the commands in them are for the environment of `--python`."""
    words = ("ortgpu-fix", *words_of(options, ["python"]))
    return load_texts(language, TypedCommand(words, SYSTEM))


def applying(
    options: Options, plan: Plan, facts: Facts, where: Where, *, write: bool = False
) -> str:
    """Return the command that does `plan` `where` its environment is: with each `--allow`.

    `write`: files of the user's project change, too.
    """
    options, elsewhere = allowing(options, plan), where in {"there", "new-there"}
    if facts.python.environment == "user" or where in {"new", "new-there"}:
        options = {**options, "python": DOT_VENV}  # of a user's packages nothing may change any
    elif elsewhere:
        python = _to_paste(facts.python.executable, facts.platform.system)
        options = {**options, "python": python}
    leaving = frozenset({"facts"}) if elsewhere else frozenset()
    system = facts.platform.system if elsewhere else SYSTEM
    wanted = ("--apply", "--write") if write else ("--apply",)
    return command_line(options, *wanted, leaving=leaving, system=system)


def _to_paste(path: str | None, system: System) -> str | None:
    """Return the path of a Python in facts; what stands for one where facts shorten it.

    No shell expands a `~` in quotes, and nobody that of another's home; `…` is no folder.
    """
    if path is None or not (path.startswith("~") or "…" in path):
        return path
    return r"C:\path\to\python.exe" if system == "windows" else "/path/to/python"


def looking(options: Options, url: str, facts: Facts) -> tuple[str, str]:
    """Return the command that reads the builds of the index `url`, and the one that plans again."""
    own_platform = f"{SYSTEM}_{MACHINES.get(platform.machine().lower(), '')}"
    everywhere = ["--all-platforms"] if facts.platform.key != own_platform else []
    read = ("ortgpu-fix", "matrix", "--update", "--ort-index-url", url, *everywhere)
    return in_shells(read), in_shells(("ortgpu-fix", *words_of(options, ["platform", *_kept()])))


def allowing(options: Options, plan: Plan) -> Options:
    """Return `options` with each `--allow` that `plan` needs, and `--torch match`."""
    allow = dict.fromkeys((*options.get("allow", ()), *plan.allowances))
    torch = "match" if "torch" in plan.needs else options.get("torch")
    return {**options, "allow": tuple(allow), "torch": torch}


def locking(options: Options) -> str:
    """Return the command that writes a lock for the same machines and wishes."""
    names = [flag.name for flag in FLAGS if flag.name in _KEPT - {"python"} | {"with-cpu"}]
    return in_shells(("ortgpu-fix", "lock", *words_of(options, names), "-o", "gpu.txt"))


def _kept(leaving: frozenset[str] = frozenset()) -> list[str]:
    return [flag.name for flag in FLAGS if flag.name in _KEPT - leaving]


def words_of(options: Options, names: Iterable[str]) -> tuple[str, ...]:
    """Return the flags of these names that were given, with their values, in the order of `names`.

    The credentials of an address stay out.
    """
    flags = {flag.name: flag for flag in FLAGS}  # without those of a guest that is not there
    words: list[str] = []
    for name in filter(flags.__contains__, names):
        value = options.get(flags[name].field)
        if value is True:
            words.append(f"--{name}")
            continue
        spelling = "-d" if name == "directory" else f"--{name}"
        for each in value if isinstance(value, tuple) else [value] if value else []:
            words += [spelling, _shown(each) if "://" in each else each]
    return tuple(words)


def in_shells(words: Iterable[str], system: System = SYSTEM) -> str:
    """Return a command as the shells of `system` take it; a line for each if they differ."""
    shown = pasted_commands(tuple(words), system)
    if len(shown) == 1:
        return shown[0].text
    return "\n".join(f"{each.shell}:\n{each.text}" for each in shown)


def _shown(address: str) -> str:
    from ..index.page import without_credentials  # it imports much, and few plans name an index

    return without_credentials(address)
