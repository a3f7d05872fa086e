"""Refuses a change before it begins: whose the environment is, who uses its files, their paths.

On Linux a mapped file can be moved and stays usable: the user is informed. On Windows an open file
may be impossible to move, and a long path to write: known before the first one is moved.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Error, cause
from ..facts.model import OPERATING_SYSTEM
from ..facts.target import Target
from ..plan.model import ALLOWANCES, NEEDED_FLAGS, Plan
from ..plan.reasons import words
from ..project.model import FileChange
from ..utils.files import check_place
from ..utils.mapped_files import PROC, mapped_files, process_ids, process_name
from .staging import StagedWheels

_LIBRARY = re.compile(r"\.so\b|(?i:\.(?:dll|pyd)$)")
_LONGEST_FILE, _LONGEST_FOLDER = 259, 247
"""Units of UTF-16 of a path where Windows allows no longer ones.

Source: https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What is refused unless the user allows it."""

    conflicts: bool = False
    """Distributions that stay may lose a dependency."""
    externally_managed: bool = False
    conda: bool = False
    """Distributions that pip installed into a conda environment may change."""
    providers: bool = False
    """Builds of onnxruntime with another provider, or the training API, may go."""


def check_environment_owner(target: Target, allowed: Allowed) -> None:
    """Refuse what is another's.

    Raises Error `externally-managed`, `conda-environment`, `pixi-environment`, `user-environment`.
    """
    if target.externally_managed and not allowed.externally_managed:
        owner = cause(target.managed_by or OPERATING_SYSTEM)
        raise Error("externally-managed", path=target.executable, owner=owner)
    if target.kind == "conda" and not allowed.conda:
        code = "pixi-environment" if target.managed_by == "pixi" else "conda-environment"
        raise Error(code, folder=target.prefix)
    if target.kind == "user":
        raise Error("user-environment", path=target.executable)


def check_plan_allowed(plan: Plan, allowed: Allowed) -> None:
    """Raise Error `needs-flags`, `would-conflict` or `would-lose`, before any download.

    All of it is in the plan.
    """
    if plan.needs:
        flags = " ".join(word for need in plan.needs for word in NEEDED_FLAGS[need])
        raise Error("needs-flags", flags=flags)
    for finding in plan.findings:
        values = dict(finding.values)
        if finding.code == "would-conflict" and not allowed.conflicts:
            raise Error("would-conflict", conflicts=words(values["by"]))
        if ALLOWANCES.get(finding.code) == "provider" and not allowed.providers:
            raise Error("would-lose", distribution=words(values["distribution"]))


def check_unchanged(plan: Plan, target: Target, staged: StagedWheels) -> None:
    """Raise Error `environment-changed` where it did since `target` was read."""
    names = {*plan.uninstall, *(wheel.name for wheel in staged.wheels)}
    for installed in target.installed:
        if installed.key in names and not Path(installed.metadata_path).exists():
            raise Error("environment-changed", name=installed.name)
    known = {Path(installed.metadata_path).name for installed in target.installed}
    known |= {Path(path).name for path in target.broken}
    for wheel, info in zip(staged.wheels, staged.tree.infos, strict=True):
        if Path(info).name not in known and Path(info).exists():
            raise Error("environment-changed", name=wheel.name)


def check_files_unchanged(files: Iterable[FileChange]) -> None:
    """Raise Error `file-changed` for a file of the project that is not as it was read.

    And `file-unwritable` for one that this user cannot write.
    """
    for file in files:
        if file.path.parent.exists():
            check_place(file.path)
        now = file.path.read_bytes() if file.path.is_file() else None
        if now not in {file.before, file.after}:
            raise Error("file-changed", file=file.path)


def processes_using(paths: Iterable[str], proc: Path = PROC) -> tuple[str, ...]:
    """Return `command (pid)` for every other process that has one of `paths` mapped, sorted.

    Processes of other users may be missing. Only libraries are looked for.
    """
    wanted = {os.path.normcase(path) for path in paths if _LIBRARY.search(path)}
    processes = []
    for pid in process_ids(proc):
        try:
            files = () if pid == os.getpid() else mapped_files(pid, proc)
            if not wanted.isdisjoint(map(os.path.normcase, files)):
                processes.append(f"{process_name(pid, files, proc)} ({pid})")
        except OSError:  # noqa: PERF203 - it has ended, or is another user's
            continue
    return tuple(sorted(processes))


def check_files_movable(paths: Sequence[str]) -> None:
    """Raise Error `files-in-use` where, on Windows, one of `paths` cannot be moved."""
    for path in paths if sys.platform == "win32" else ():
        try:
            os.rename(path, path)  # noqa: PTH104 - only tests the permission
        except OSError as error:  # noqa: PERF203
            raise Error("files-in-use", path=path) from error


def check_path_lengths(paths: Iterable[str]) -> None:
    """Raise Error `path-too-long` where, on Windows, one of `paths` could not be written or read.

    uv would write it all the same, and no Python could open it.
    """
    if sys.platform == "win32" and not _long_paths_enabled():
        for path in paths:
            folder = os.path.dirname(path)  # noqa: PTH120
            if _units(path) > _LONGEST_FILE or _units(folder) > _LONGEST_FOLDER:
                raise Error("path-too-long", path=path, length=_units(path))


def _units(path: str) -> int:
    """Return the length of a path as Windows counts it: in units of UTF-16."""
    return len(path.encode("utf-16-le", errors="surrogatepass")) // 2


if sys.platform == "win32":
    import winreg

    def _long_paths_enabled() -> bool:
        """Return whether programs that declare it, as Python does, can use longer paths."""
        with contextlib.suppress(OSError):
            place = r"SYSTEM\CurrentControlSet\Control\FileSystem"
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, place) as key:
                return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0])
        return False
