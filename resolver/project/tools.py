"""Have the tool of a project lock it, and ask what its sync would do; nothing of it changes.

Sources: https://docs.astral.sh/uv/reference/cli/#uv-lock, https://python-poetry.org/docs/cli/,
https://pdm-project.org/latest/reference/cli/, https://pipenv.pypa.io/en/latest/cli.html.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from ..companions.contents import LIBRARIES, PLACEHOLDER
from ..errors import Error
from ..utils.process import Finished, Runner
from ..utils.programs import find_program
from .mirror import mirror
from .model import FileChange, Project

SECONDS = 1800.0
"""A lock may take so long: PDM and Poetry read the metadata of everything."""
_STEP = re.compile(
    r"^ *(?:(?P<sign>[+-]) (?P<name>[\w.-]+)(?:==| @ )|- (?P<act>Installing|Updating|Downgrading"
    r"|Removing|Reinstalling) (?P<other>[\w.-]+) (?!.*(?:Skipped|Already))"
    r"|- (?P<listed>[\w.-]+) \d)"
)
"""A line of `uv sync --dry-run`, of Poetry's, or of PDM's."""
_OWN_SOURCES = re.compile(r"file://(?!\S*\.whl)")
"""In a line about a project that lies in a directory."""
_LAST_LINES = 12
_COLOURS = {"FORCE_COLOR", "CLICOLOR_FORCE"}
"""CI systems set them, and what a tool writes and prints is read here."""
_INDEX = re.compile(r"^--index-url (\S+)", re.MULTILINE)
_COMMAND = re.compile(r"^# +((?:pip-compile|uv pip compile)\b.*)$", re.MULTILINE)


class Locked(NamedTuple):
    """A project with its lock, before any file of it is changed."""

    changes: tuple[FileChange, ...]
    """All files that change."""
    more: tuple[str, ...]
    """What the tool's own sync would do besides: `+ numpy 2.4.6`, `- ruff`."""


class Tool(NamedTuple):
    """The tool of a project, and the environment that it is for."""

    name: str
    program: str
    version: str
    prefix: Path
    environ: Mapping[str, str]
    runner: Runner
    offline: bool = False

    def run(self, argv: Sequence[str], folder: Path) -> Finished:
        """Run a command of the tool in `folder`. Raises Error `project-tool-missing`."""
        kept = {
            name: value
            for name, value in self.environ.items()
            if not name.startswith("PYTHON") and name not in _COLOURS
        }
        own = {"VIRTUAL_ENV": str(self.prefix), "UV_PROJECT_ENVIRONMENT": str(self.prefix)}
        env = kept | own | {"NO_COLOR": "1"}
        try:
            return self.runner([self.program, *argv], timeout=SECONDS, env=env, folder=str(folder))
        except OSError as error:
            raise Error("project-tool-missing", tool=self.name) from error

    @property
    def _classic(self) -> bool:
        """Return whether it is Poetry 1."""
        return self.name == "poetry" and self.version.startswith("1.")

    def lock(self, *, again: bool) -> list[str]:
        """Return the command that locks what has to be; `again`: all other versions stay."""
        if self.name == "pdm":
            return ["update", "--no-sync", PLACEHOLDER, LIBRARIES] if again else ["lock"]
        if self.name == "pipenv":
            return ["upgrade", "--dev"] if again else ["lock"]
        more = ["--no-update"] if self._classic else ["--offline"] if self._alone else []
        return ["lock", *more]

    @property
    def sync(self) -> list[str]:
        """Return the command that makes the environment as the lock is."""
        more = ["--offline"] if self._alone else []
        return ["install", "--sync"] if self._classic else ["sync", *more]

    @property
    def _alone(self) -> bool:
        return self.offline and self.name == "uv"


def find_tool(
    project: Project,
    prefix: Path,
    environ: Mapping[str, str],
    runner: Runner,
    uv: str,
    *,
    offline: bool,
) -> Tool:
    """Return the tool of `project` from PATH; `uv` is our own, where there is no other.

    Raises Error `project-tool-missing`.
    """
    name = "uv" if project.tool == "pip-tools" else project.tool
    program = find_program(name, environ) or (uv if name == "uv" else "")
    if not program:
        raise Error("project-tool-missing", tool=name)
    tool = Tool(name, program, "", prefix, environ, runner, offline)
    words = tool.run(["--version"], project.root).stdout.replace(")", "").split()
    return tool._replace(version=next((word for word in words if word[:1].isdigit()), ""))


def lock_project(
    tool: Tool | None, project: Project, changes: Sequence[FileChange], ours: Collection[str]
) -> Locked:
    """Return `changes` with the lock that the tool makes of them; without a tool they are all.

    `ours` are the canonical names of the distributions that the plan itself changes. Raises Error
    `project-lock-failed` with the words of the tool.
    """
    if tool is None or project.lock is None:
        return Locked(tuple(changes), ())
    before = project.lock.read_bytes() if project.lock.is_file() else None
    files = {**project.files, **{change.path: change.after for change in changes}}
    if before is not None:
        files[project.lock] = _without_ours(before) if tool.name == "pipenv" else before
    with tempfile.TemporaryDirectory() as folder:
        root = mirror(project.root, files, Path(os.path.realpath(folder), "project"))
        argv = tool.lock(again=before is not None)
        if project.tool == "pip-tools":
            argv = _compile_command(project.lock, before)
        done = tool.run(argv, root)
        lock = root / project.lock.relative_to(project.root)
        if done.returncode != 0 or not lock.is_file():
            raise _failed(tool, done)
        after = lock.read_bytes()
        more = _besides(tool, project, root, (before, after), ours)
    changed = [] if after == before else [FileChange(project.lock, before, after)]
    return Locked((*changes, *changed), more)


def _besides(
    tool: Tool,
    project: Project,
    root: Path,
    lock: tuple[bytes | None, bytes],
    ours: Collection[str],
) -> tuple[str, ...]:
    """Return what a sync would do, but for what `ours` names, as far as the tool says."""
    if project.tool == "pip-tools":
        return ()
    if project.tool == "pipenv":  # its sync has no dry run
        before, after = (dict(_versions(text)) for text in lock)
        moved = (name for name in after if before and before.get(name) != after[name])
        return tuple(f"{name} {after[name]}" for name in moved if name not in ours)
    return remaining(tool, root, ours)


def _versions(pipfile_lock: bytes | None) -> Iterator[tuple[str, str]]:
    """Yield the name and the version of each package in a lock of Pipenv."""
    for section, packages in _pipfile_lock(pipfile_lock).items():
        for name, package in packages.items() if section != "_meta" else ():
            yield canonicalize_name(name), str(package.get("version", "")).removeprefix("==")


def _without_ours(pipfile_lock: bytes) -> bytes:
    """Return a lock of Pipenv that lacks our two: where an entry changes its path it keeps it."""
    document = _pipfile_lock(pipfile_lock)
    for rows in document.values():
        for name in (PLACEHOLDER, LIBRARIES):
            rows.pop(name, None)
    return json.dumps(document).encode() if document else pipfile_lock


def _pipfile_lock(content: bytes | None) -> dict[str, dict[str, Any]]:
    """Return a lock of Pipenv; it is empty for what Pipenv could not read either."""
    try:
        document: dict[str, dict[str, Any]] = json.loads(content or b"{}")
    except ValueError:
        return {}
    return document


def remaining(tool: Tool, root: Path, ours: Collection[str]) -> tuple[str, ...]:
    """Return what a sync of the project at `root` would do, but for what `ours` names.

    A project's own sources are made again after each change of pyproject.toml. Raises Error
    `project-lock-failed` where the tool refuses.
    """
    done = tool.run([*tool.sync, "--dry-run"], root)
    if done.returncode != 0:
        raise _failed(tool, done)
    lines = (done.stdout + done.stderr).splitlines()
    steps = (_STEP.match(line) for line in lines if not _OWN_SOURCES.search(line))
    found = dict.fromkeys(
        (
            canonicalize_name(step["name"] or step["other"] or step["listed"]),
            step["sign"] or step["act"],
        )
        for step in steps
        if step
    )
    return tuple(f"{act or ''} {name}".strip() for name, act in found if name not in ours)


def _compile_command(lock: Path, compiled: bytes | None) -> list[str]:
    """Return the arguments of `uv` that compile `lock` again as it is `compiled`, by its head.

    uv reads and writes the same files as pip-compile, which writes by itself what uv is asked for:
    into the file of that name, and where the wheels are from.
    """
    text = (compiled or b"").decode("utf-8", "replace")
    found, index = _COMMAND.search(text), _INDEX.search(text)
    words = found[1].split() if found else []
    words = words[3 if words[:1] == ["uv"] else 1 :]
    more = [] if "--emit-find-links" in words else ["--emit-find-links"]
    if not any(word.startswith(("-o", "--output-file")) for word in words):
        more += ["--output-file", lock.name]
    if index and not any(word.startswith(("-i", "--index-url")) for word in words):
        more += ["--index-url", index[1], "--emit-index-url"]
    return ["pip", "compile", "--quiet", *words, *more]


def _failed(tool: Tool, done: Finished) -> Error:
    said = (done.stderr or done.stdout).strip().splitlines()
    return Error("project-lock-failed", tool=tool.name, said="\n".join(said[-_LAST_LINES:]))


def names_of(lines: Iterable[str]) -> frozenset[str]:
    """Return the canonical names at the begin of requirements or of wheels."""
    return frozenset(canonicalize_name(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in lines)
