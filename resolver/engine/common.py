"""What uv and pip are given to work with, and how they are run."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..companions.contents import LIBRARIES, PACKAGE
from ..errors import Error
from ..facts.target import Target
from ..plan.wheels import Wheel
from ..utils.process import Finished, Runner, install_environment
from ..versions import version as parsed
from .guard import guarded_command

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
class StagedFile:
    """A wheel that is here, checked."""

    wheel: Wheel
    path: Path


def constraints(
    requires: Sequence[str], target: Target, movable: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return `name==version` for everything installed that `requires` does not move.

    What is not a version (PEP 440) cannot be a constraint, and is left out. Raises Error
    `requirements-impossible` where a line of `requires` is none.
    """
    wanted: dict[str, list[SpecifierSet]] = {}
    for line in requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement as error:
            raise Error("requirements-impossible", requires=line, said=str(error)) from error
        wanted.setdefault(canonicalize_name(requirement.name), []).append(requirement.specifier)
    rows = []
    for name, version in installed_versions(target).items():
        if name in movable or parsed(version) is None:
            continue
        if all(one.contains(version, prereleases=True) for one in wanted.get(name, [])):
            rows.append(f"{name}=={version}")
    return tuple(sorted(rows))


def installed_versions(target: Target) -> dict[str, str]:
    """Return the version of every installed distribution by its canonical name."""
    versions: dict[str, str] = {}
    for one in target.installed:
        versions.setdefault(one.key, one.version)
    return versions


def write_installed_as_wheels(target: Target, folder: Path) -> Path:
    """Write a wheel without content for everything installed into `folder`, and return that.

    So an engine finds it though no index has it any more. The number of its build is high: of one
    version an engine takes the highest, and need not look into what an index has.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, version in installed_versions(target).items():
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


def hashed_requirements(staged: Sequence[StagedFile]) -> tuple[str, ...]:
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
    return check_outcome(runner, guarded_command(argv, lock), env, INSTALL_SECONDS, "engine-failed")


def install_compiled(  # noqa: PLR0917
    runner: Runner,
    argv: Sequence[str],
    environ: Mapping[str, str],
    staged: Sequence[StagedFile],
    target: Target,
    folder: Path,
    lock: Path,
) -> None:
    """Run an engine that installs `staged`, and compile what will run at every start of Python.

    An image may be one in which nobody writes bytecode later. The rest is compiled as it is used.
    """
    run_install(runner, argv, environ, folder, lock)
    if any(one.wheel.name == LIBRARIES for one in staged):
        package = str(Path(target.purelib, PACKAGE))
        compiling = [target.executable, "-I", "-S", "-m", "compileall", "-q", package]
        with contextlib.suppress(Error):  # it works without
            run_install(runner, compiling, environ, folder, lock)


def check_outcome(
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
