"""The program that resolves ordinary requirements and installs the staged wheels: uv or pip.

Shell. Both read the user's own configuration while they resolve, and none at all while they
install: then only the staged files exist, each named with its version and its hash.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from .engine_guard import guarded
from .environment import Target
from .errors import Error
from .plan import Pinned, Wheel
from .run import Finished, Runner, install_environment
from .sources import Sources

OLDEST_UV = Version("0.8")
"""The first that writes a pylock.toml with sizes and hashes for `uv pip compile`."""
OLDEST_PIP = Version("22.2")
"""The first with `--report`."""
RESOLVE_SECONDS = 300.0
INSTALL_SECONDS = 3600.0
_NETWORK = frozenset(
    {
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NETRC"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT"),
        *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    }
)
"""Variables that say how a network is reached: nothing of it is needed for installing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A wheel that is here, checked."""

    wheel: Wheel
    path: Path


class Engine(Protocol):
    """uv or pip."""

    @property
    def name(self) -> str:
        """`uv 0.9.5`, `pip 25.1`: for people."""

    def resolve(
        self,
        requires: Sequence[str],
        target: Target,
        sources: Sources,
        folder: Path,
        movable: frozenset[str] = frozenset(),
    ) -> tuple[Pinned, ...]:
        """Choose wheels for `requires` and what they require, within what `target` has installed.

        That need not be what is really there. Only what is not installed yet, or has to change, is
        returned; those with the canonical names `movable` may change, though nothing in `requires`
        says so. `folder` is for files on the way. Raises Error `requirements-impossible` with what
        the engine said.
        """

    def install(self, staged: Sequence[Staged], target: Target, folder: Path, lock: Path) -> None:
        """Install exactly `staged`, which lie in one folder, into `target`.

        `folder` is for files on the way and must be on the filesystem of the environment; the
        engine holds `lock` while it runs. Raises Error `engine-failed` with what the engine said.
        """


def choose(
    target: Target,
    environ: Mapping[str, str],
    runner: Runner,
    *,
    break_system_packages: bool = False,
) -> Engine:
    """Return the engine for `target`: uv, else the pip of the target, else our own pip.

    Raises Error `no-engine` where none of them can install there.
    """
    from .engine_pip import Pip  # noqa: PLC0415 - they need what is above
    from .engine_uv import Uv  # noqa: PLC0415

    uv = find_uv(environ, runner)
    if uv is not None and target.implementation in {"cpython", "pypy"}:
        program, version = uv
        return Uv(
            program=program,
            version=version,
            environ=environ,
            runner=runner,
            break_system_packages=break_system_packages,
        )
    command: tuple[str, ...] | None = None
    version = target.pip_version or ""
    if version and _at_least(version, OLDEST_PIP):
        # -B: the bytecode of a pip that has none must not come into the environment
        command = (target.executable, "-I", "-B", "-m", "pip")
    else:
        version = _own_pip(target) or ""
        if version:
            command = (sys.executable, "-I", "-B", "-m", "pip", "--python", target.executable)
    if command is None:
        raise Error("no-engine", path=target.executable, version=target.version)
    return Pip(
        command=command,
        version=version,
        environ=environ,
        runner=runner,
        break_system_packages=break_system_packages,
    )


def find_uv(environ: Mapping[str, str], runner: Runner) -> tuple[str, str] | None:
    """Return the path and the version of a uv that answers and is new enough."""
    beside = sysconfig.get_path("scripts")
    candidates = (shutil.which("uv", path=environ.get("PATH", "")), shutil.which("uv", path=beside))
    for program in dict.fromkeys(candidates):
        if program is None:
            continue
        try:
            said = runner([program, "--version"], timeout=5, env=install_environment(environ))
        except OSError:
            continue
        words = said.stdout.split()  # uv 0.9.5 (d5f39331a 2025-10-21)
        if said.returncode == 0 and len(words) > 1 and _at_least(words[1], OLDEST_UV):
            return os.path.abspath(program), words[1]  # noqa: PTH100 - links stay: a shim is one
    return None


def _own_pip(target: Target) -> str | None:
    """Return the version of the pip beside us, where it can install into `target`."""
    try:
        about = metadata.metadata("pip")
    except metadata.PackageNotFoundError:
        return None
    floor = SpecifierSet(about["Requires-Python"] or "")
    fits = floor.contains(Version(target.version), prereleases=True)
    return about["Version"] if fits else None


def _at_least(version: str, floor: Version) -> bool:
    try:
        return Version(version) >= floor
    except InvalidVersion:
        return False


def constraints(
    requires: Sequence[str], target: Target, movable: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return `name==version` for everything installed that `requires` does not move.

    What is not a version (PEP 440) cannot be a constraint, and is left out.
    """
    wanted: dict[str, list[SpecifierSet]] = {}
    for line in requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement as error:
            raise Error("requirements-impossible", requires=line, said=str(error)) from error
        wanted.setdefault(canonicalize_name(requirement.name), []).append(requirement.specifier)
    rows = []
    for name, version in in_use(target).items():
        if name in movable or not _at_least(version, Version("0.dev0")):
            continue
        if all(one.contains(version, prereleases=True) for one in wanted.get(name, [])):
            rows.append(f"{name}=={version}")
    return tuple(sorted(rows))


def in_use(target: Target) -> dict[str, str]:
    """Return the version of every installed distribution by its canonical name."""
    versions: dict[str, str] = {}
    for one in target.installed:
        versions.setdefault(one.key, one.version)
    return versions


def offer(target: Target, folder: Path) -> Path:
    """Write a wheel without content for everything installed into `folder`, and return that.

    So an engine finds it though no index has it any more. The number of its build is high: of one
    version an engine takes the highest, and need not look into what an index has.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, version in in_use(target).items():
        one = target.find(name)
        stem = f"{name.replace('-', '_')}-{version}"
        info = f"{stem}.dist-info"
        requires = "".join(f"Requires-Dist: {line}\n" for line in (one.requires if one else ()))
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
        wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nBuild: 99999\nTag: py3-none-any\n"
        with zipfile.ZipFile(folder / f"{stem}-99999-py3-none-any.whl", "w") as file:
            file.writestr(f"{info}/METADATA", head)
            file.writestr(f"{info}/WHEEL", wheel)
            file.writestr(f"{info}/RECORD", "")
    return folder


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    """Write `lines` to the file `path`, for an engine to read, and return it."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def hashed(staged: Sequence[Staged]) -> tuple[str, ...]:
    """Return the requirements that stand for exactly these wheels.

    Not as `name @ file:…`: that would stay visible for ever, in direct_url.json and `pip freeze`.
    """
    return tuple(
        f"{one.wheel.name}=={one.wheel.version} --hash=sha256:{one.wheel.sha256}" for one in staged
    )


def run_install(
    runner: Runner, argv: Sequence[str], environ: Mapping[str, str], folder: Path, lock: Path
) -> Finished:
    """Run an engine that installs: no configuration, no way to a network, its files in `folder`."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    env = {
        name: value
        for name, value in install_environment(environ).items()
        if name.upper() not in _NETWORK
    }
    env |= {name: str(temporary) for name in ("TMPDIR", "TEMP", "TMP")}
    return checked(runner, guarded(argv, lock), env, INSTALL_SECONDS, "engine-failed")


def checked(
    runner: Runner,
    argv: Sequence[str],
    env: Mapping[str, str],
    seconds: float,
    code: str,
    **values: object,
) -> Finished:
    """Run `argv`; where it fails raise Error `code` with what it said, `said`, and `values`."""
    try:
        done = runner(argv, timeout=seconds, env=env)
    except OSError as error:
        raise Error(code, said=error.strerror or str(error), **values) from error
    if done.returncode != 0:
        said = f"no end after {seconds:.0f} s" if done.timed_out else _tail(done)
        raise Error(code, said=said, **values)
    return done


def _tail(done: Finished) -> str:
    """Return the last lines of what a failed program said."""
    lines = [line.rstrip() for line in (done.stderr.strip() or done.stdout.strip()).splitlines()]
    lines = [line for line in lines if line and not line.startswith("WARNING: Location")]
    return "\n".join(lines[-12:]) or f"exit status {done.returncode}"
