"""What uv and pip have in common: the files they read, and how they are run."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..errors import Error, cause
from ..facts.target import Target
from ..plan.wheels import Wheel
from ..utils.process import Finished, Runner, install_environment, temporary_in
from ..versions import version as parsed
from .guard import guarded_command

_Parsed = TypeVar("_Parsed")
_UNREADABLE = (OSError, LookupError, AttributeError, TypeError, ValueError, RecursionError)
"""What parsing the output of an engine may raise."""
RESOLVE_SECONDS = 300.0
INSTALL_SECONDS = 3600.0
_NETWORK = frozenset(
    {
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NETRC"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT"),
        *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    }
)
"""Variables that configure the network: an engine that installs gets none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A wheel that is downloaded and checked."""

    wheel: Wheel
    path: Path


class Prefix(NamedTuple):
    """Where an engine installs: a prefix that holds nothing else, beside the environment."""

    folder: Path
    work: Path
    """For the files of the engine; on the same filesystem."""
    lock: Path
    """The engine holds this file while it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineBase:
    """What uv and pip share; see `choose.Engine`."""

    version: str
    environ: Mapping[str, str]
    runner: Runner
    break_system_packages: bool = False

    @property
    def name(self) -> str:
        """`uv 0.9.5`, `pip 25.1`: for people."""
        return f"{type(self).__name__.lower()} {self.version}"

    def ask(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        requires: Sequence[str],
        unreadable: str,
        parse: Callable[[str], Iterable[_Parsed]],
    ) -> tuple[_Parsed, ...]:
        """Run the engine `argv` that resolves `requires`, and return its output, parsed.

        `parse` is given the standard output. Raises Error `requirements-impossible` where the
        engine fails, or with the cause `unreadable` where its output cannot be parsed.
        """
        names = ", ".join(requires)
        done = check_outcome(
            self.runner, argv, env, RESOLVE_SECONDS, "requirements-impossible", requires=names
        )
        try:
            return tuple(parse(done.stdout))
        except _UNREADABLE as error:
            said = cause(unreadable, problem=str(error))
            raise Error("requirements-impossible", requires=names, said=said) from error

    def install_staged(
        self, argv: Sequence[str], staged: Sequence[StagedFile], into: Prefix
    ) -> None:
        """Run the engine `argv` with the options for installing `staged` into the prefix `into`."""
        folders = dict.fromkeys(as_link(file.path.parent) for file in staged)
        places = [word for folder in folders for word in ("--find-links", folder)]
        argv = [*argv, "--quiet", "--no-index", *places]
        self.install_pinned(argv, [file.wheel for file in staged], into, self._without_network())

    def compile_modules(self, folder: Path, target: Target, into: Prefix) -> None:
        """Have the Python of `target` compile what lies in `folder`, which is staged in `into`.

        Bytecode is not required: that it cannot be made is no failure.
        """
        compiling = ["-m", "compileall", "-q", "-d", target.purelib]  # what a traceback names
        with contextlib.suppress(Error):
            argv = [target.executable, "-I", "-S", *compiling, str(folder)]
            self._run_guarded(argv, into, self._without_network())

    def _without_network(self) -> dict[str, str]:
        """Return the environment of an engine that reads what is here."""
        return {
            name: value
            for name, value in install_environment(self.environ).items()
            if name.upper() not in _NETWORK
        }

    def install_pinned(
        self,
        argv: Sequence[str],
        wheels: Sequence[Wheel],
        into: Prefix,
        env: Mapping[str, str],
        drawn: Callable[[str], None] | None = None,
    ) -> None:
        """Run the engine `argv` with the options for installing exactly `wheels` into `into`.

        They are not named as `name @ file:...`: that would stay in direct_url.json and
        `pip freeze`. `drawn` is given what the engine draws on a terminal. Raises Error
        `install-failed` with what it said.
        """
        rows = [f"{row.name}=={row.version} --hash=sha256:{row.sha256}" for row in wheels]
        argv = [*argv, "--prefix", str(into.folder), "--no-deps", "--require-hashes"]
        argv += ["-r", write_lines(into.work / "install.txt", rows)]
        argv += ["--break-system-packages"] if self.break_system_packages else []
        self._run_guarded(argv, into, env, drawn)

    def _run_guarded(
        self,
        argv: Sequence[str],
        into: Prefix,
        env: Mapping[str, str],
        drawn: Callable[[str], None] | None = None,
    ) -> None:
        temporary = into.work / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        env = {**env, **temporary_in(str(temporary))}
        command = guarded_command(argv, into.lock)
        more: dict[str, object] = {"lifeline": True} | ({"drawn": drawn} if drawn else {})
        check_outcome(self.runner, command, env, INSTALL_SECONDS, "install-failed", how=more)


def constraints(
    requires: Sequence[str], target: Target, movable: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return `name==version` for everything installed that `requires` allows as it is.

    `movable` names and versions that PEP 440 does not know are left out. Raises Error
    `requirements-impossible` where a line of `requires` is not a requirement.
    """
    wanted: dict[str, list[SpecifierSet]] = {}
    for line in requires:
        try:
            requirement = Requirement(line)
        except (InvalidRequirement, RecursionError) as error:
            raise Error("requirements-impossible", requires=line, said=str(error)) from error
        wanted.setdefault(canonicalize_name(requirement.name), []).append(requirement.specifier)
    rows = []
    for name, version in installed_versions(target).items():
        if name in movable or parsed(version) is None:
            continue
        if all(rule.contains(version, prereleases=True) for rule in wanted.get(name, [])):
            rows.append(f"{name}=={version}")
    return tuple(sorted(rows))


def installed_versions(target: Target) -> dict[str, str]:
    """Return the version of every installed distribution by its canonical name.

    What has lost its files is not among them: it has to come again.
    """
    return {row.key: row.version for row in target.in_use if not row.missing}


def write_installed_as_wheels(target: Target, folder: Path) -> Path:
    """Write a wheel without content for everything installed into `folder`, and return `folder`.

    So an engine finds an installed version that is on no index any more. Of one version an engine
    takes the wheel with the highest build number, and need not look into the one on the index.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for installed in (row for row in target.in_use if not row.missing):
        name = installed.key
        stem = f"{name.replace('-', '_')}-{installed.version}"
        info = f"{stem}.dist-info"
        requires = "".join(f"Requires-Dist: {line}\n" for line in installed.requires)
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {installed.version}\n{requires}"
        wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nBuild: 99999\nTag: py3-none-any\n"
        with zipfile.ZipFile(folder / f"{stem}-99999-py3-none-any.whl", "w") as file:
            file.writestr(f"{info}/METADATA", head)
            file.writestr(f"{info}/WHEEL", wheel)
            file.writestr(f"{info}/RECORD", "")
    return folder


def as_link(folder: Path) -> str:
    """Return the value of `--find-links` for `folder`: uv splits a path at its commas."""
    return folder.absolute().as_uri()


def write_lines(path: Path, lines: Iterable[str]) -> str:
    """Write `lines` to the file `path`, whose folder is made, and return the path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def check_outcome(
    runner: Runner,
    argv: Sequence[str],
    env: Mapping[str, str],
    seconds: float,
    code: str,
    *,
    how: Mapping[str, object] = MappingProxyType({}),
    **values: object,
) -> Finished:
    """Run `argv`; where it fails raise Error `code` with `values` and, as `said`, its output.

    `how` are further arguments of `process.run`.
    """
    try:
        done = runner(argv, timeout=seconds, env=env, **how)
    except OSError as error:
        raise Error(code, said=error.strerror or str(error), **values) from error
    if done.returncode != 0:
        said = (
            cause("engine-endless", seconds=f"{seconds:.0f}")
            if done.timed_out
            else _last_lines(done)
        )
        raise Error(code, said=said, **values)
    return done


def _last_lines(done: Finished) -> str:
    lines = [line.rstrip() for line in (done.stderr.strip() or done.stdout.strip()).splitlines()]
    lines = [line for line in lines if line and not line.startswith("WARNING: Location")]
    return "\n".join(lines[-12:]) or f"exit status {done.returncode}"
