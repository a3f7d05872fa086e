"""The commands that make a set travel: lock and download.

Shell: `(arguments, environ, language) -> exit code`.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...companions.build import LocalWheel
from ...engine.choose import choose_resolver
from ...errors import Error
from ...facts.model import GPU_BUILD
from ...fleet.common_facts import fresh
from ...fleet.model import Group, Machine, TargetPlan, group_names
from ...index.client import Index
from ...index.download import download_all
from ...index.page import public
from ...lock.builder import Maker
from ...lock.formats.dockerfile import dockerfile
from ...lock.formats.pylock import pylock
from ...lock.formats.requirements_txt import requirements
from ...lock.formats.uv import uv_lines
from ...lock.model import Lock
from ...matrix.load import load_matrix, load_texts, read
from ...matrix.model import Matrix
from ...matrix.torch import TORCH
from ...messages.catalog import Language
from ...messages.sections import size as size_of
from ...plan.model import Plan
from ...resolve.resolver import resolve
from ...resolve.situation import Wishes, situation
from ...utils.files import write
from ...utils.process import run
from .. import console
from ..inputs import Occasion, occasion, wishes_of
from . import fleet as fleet_commands
from .apply import sources_of
from .inspect import VERDICT_EXIT, show

FORMATS: Mapping[str, Callable[[Lock], str]] = {
    "requirements": requirements,
    "pylock": pylock,
    "uv": uv_lines,
    "dockerfile": lambda lock: dockerfile(lock, read("start.onnx")),
}
_ADDRESSED = frozenset({"pylock"})
"""The formats that name every wheel by its address."""
_FLAGS = (
    *("python", "facts", "machines", "driver", "gpu", "ignore_gpu", "ort", "cuda", "torch"),
    *("requirement", "with_cpu", "no_autoload", "no_provide"),
    *("format", "directory", "find_links", "offline", "index_url", "torch_index_url"),
)
_NAMES = {"directory": "-d", "machines": "--facts"}
_DEFAULTS = {"format": "requirements"}


def lock(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Write the plan as a lock for a team: one file for each group.

    Raises Error `lock-needs-output` where several groups have no `-o`, `file-unwritable`, and
    those of `occasion`, of `Maker.lock` and of the format.
    """
    planned = _planned(arguments, environ, language)
    if isinstance(planned, int):
        return planned
    groups, wishes, matrix = planned
    if len(groups) > 1 and arguments.output is None:
        raise Error("lock-needs-output", count=len(groups))
    output = None if arguments.output is None else Path(arguments.output)
    maker = _maker(arguments, environ, wishes, matrix, output)
    write_format = FORMATS[arguments.format]
    texts = [write_format(maker.lock(group)) for group in groups]
    paths = _paths(output, groups)
    if arguments.directory is not None and "://" not in arguments.directory:
        _put_companions(maker, groups, Path(arguments.directory))
    for path, text in zip(paths, texts, strict=True):
        if path is not None:
            write(path, text)
    if arguments.json:
        rows = [
            {
                "release": f"{group.distribution} {group.version}",
                "file": None if path is None else str(path),
                "machines": [machine.name for machine in group.machines if machine.name],
                "text": text,
            }
            for group, path, text in zip(groups, paths, texts, strict=True)
        ]
        console.print_json({"schema": 1, "locks": rows})
    elif output is None:
        console.put(texts[0].removesuffix("\n"))
    else:
        for path in paths:
            console.say(load_texts(language).label("written", file=path))
    return 0


def download(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Fetch everything the plan installs, for this machine or others, into a folder.

    Raises Error `usage` without `-d`, `file-unwritable`, and those of `occasion`, `Maker.files` and
    `download_all`.
    """
    if arguments.directory is None or "://" in arguments.directory:
        raise Error("usage", problem="download needs -d DIR")
    planned = _planned(arguments, environ, language)
    if isinstance(planned, int):
        return planned
    groups, wishes, matrix = planned
    into = Path(arguments.directory)
    maker = _maker(arguments, environ, wishes, matrix, None)
    wanted = [one for group in groups for one in maker.files(group)]
    urls = {one.wheel.file: one.url for one in wanted if one.url}
    wheels = list({one.wheel.file: one.wheel for one in wanted}.values())
    texts = load_texts("en" if arguments.json else language)
    with console.progress(texts, quiet=arguments.json) as progress:
        download_all(maker.index, wheels, into, progress, urls)
    made = _put_companions(maker, groups, into)
    rows = [(row.name, row.version, row.file, row.size, row.sha256) for row in wheels]
    rows += [(row.name, row.version, row.file, len(row.content), row.sha256) for row in made]
    if arguments.json:
        keys = ("name", "version", "file", "size", "sha256")
        files = [dict(zip(keys, row, strict=True)) for row in sorted(rows)]
        console.print_json({"schema": 1, "folder": str(into), "files": files})
    else:
        size = size_of(sum(row[3] for row in rows))
        console.say(texts.label("downloaded", count=len(rows), size=size, folder=into))
    return 0


def _planned(
    arguments: argparse.Namespace, environ: Mapping[str, str], language: Language
) -> tuple[Sequence[Group], Wishes, Matrix] | int:
    """Return the groups to lock; where nothing works, show that and return the exit code."""
    if arguments.machines:
        fleet = fleet_commands.planned(arguments)
        if fleet.complete:
            return fleet.groups, wishes_of(arguments), load_matrix()
        fleet_commands.show(fleet, arguments, language)
        return VERDICT_EXIT["impossible"]
    about = occasion(arguments, environ)
    made = resolve(about.facts, about.wishes, about.matrix)
    group = _group(made, about)
    if group is not None:
        return [group], about.wishes, about.matrix
    show(made, about, arguments, language)
    return VERDICT_EXIT["impossible"]


def _group(made: Plan, about: Occasion) -> Group | None:
    """Return the set of the plan `made` as the lock of one machine; None where nothing works.

    It is planned again from nothing, for the release that the plan has: what is installed there
    will not be where the lock is.
    """
    version = made.release
    if version is None:
        return None
    wishes = about.wishes._replace(onnxruntime=f"=={version}", latest=False)
    facts = fresh(about.facts, about.matrix)
    plan = resolve(facts, wishes, about.matrix)
    if wishes.torch == "keep":  # it is the application's own; the lock leaves it to its owner
        selection = tuple(wheel for wheel in plan.selection if wheel.name != TORCH)
        plan = plan._replace(selection=selection)
    here = situation(facts, wishes, about.matrix)
    target = TargetPlan(
        platform=here.platform,
        abi=here.abi,
        machines=(Machine(name="", facts=about.facts),),
        facts=facts,
        plan=plan,
    )
    return Group(distribution=GPU_BUILD, version=version, cuda=plan.cuda, targets=(target,))


def _maker(
    arguments: argparse.Namespace,
    environ: Mapping[str, str],
    wishes: Wishes,
    matrix: Matrix,
    output: Path | None,
) -> Maker:
    return Maker(
        wishes=wishes,
        matrix=matrix,
        index=Index(sources_of(arguments, environ, None)),
        resolver=choose_resolver(environ, run),
        command=_command(arguments),
        folder=Path.cwd() if output is None else output.absolute().parent,
        companions=arguments.directory,
        addresses=arguments.format in _ADDRESSED,
    )


def _paths(output: Path | None, groups: Sequence[Group]) -> list[Path | None]:
    """Return where each group's lock goes: into `output`, or beside it with the group's name."""
    if output is None or len(groups) == 1:
        return [output] * len(groups)
    return [
        output.with_name(f"{output.stem}.{name}{output.suffix}") for name in group_names(groups)
    ]


def _put_companions(maker: Maker, groups: Sequence[Group], folder: Path) -> tuple[LocalWheel, ...]:
    """Write the companions of all groups into `folder`. Raises Error `file-unwritable`."""
    made = {
        wheel.file: wheel
        for group in groups
        for target in group.targets
        for wheel in maker.made_here(target)
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error("file-unwritable", file=folder, cause=error.strerror or error) from error
    for wheel in made.values():
        write(folder / wheel.file, wheel.content)
    return tuple(made.values())


def _command(arguments: argparse.Namespace) -> str:
    """Return the command line without what says where the lock goes, and without credentials."""
    words = ["ortgpu-fix", "lock"]
    for flag in _FLAGS:
        value = getattr(arguments, flag)
        if not value or value == _DEFAULTS.get(flag):
            continue
        name = _NAMES.get(flag, "--" + flag.replace("_", "-"))
        for one in value if isinstance(value, list) else [value]:
            words.append(name)
            words += [] if one is True else [shlex.quote(public(one) if "://" in one else one)]
    return " ".join(words)
