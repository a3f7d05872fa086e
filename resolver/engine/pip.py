"""pip as the engine: the target's own, or ours working on the target."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from ..errors import Error
from ..facts.markers import marker_environment
from ..facts.model import Facts
from ..facts.target import Target
from ..facts.wheel_tags import abi, platforms
from ..index.config import IndexConfig
from ..plan.wheels import PYPI, Pinned, Wheel
from ..utils.process import Runner, own_environment
from .common import (
    RESOLVE_SECONDS,
    StagedFile,
    check_outcome,
    constraints,
    hashed_requirements,
    install_compiled,
    installed_versions,
    write_installed_as_wheels,
    write_lines,
)
from .requirement_closure import follow_requirements


@dataclass(frozen=True, slots=True, kw_only=True)
class Pip:
    """A pip that can work on the target."""

    command: tuple[str, ...]
    """How it is called."""
    version: str
    environ: Mapping[str, str]
    runner: Runner
    break_system_packages: bool = False

    @property
    def name(self) -> str:
        """For people."""
        return f"pip {self.version}"

    def resolve(
        self,
        requires: Sequence[str],
        target: Target,
        sources: IndexConfig,
        folder: Path,
        movable: frozenset[str] = frozenset(),
    ) -> tuple[Pinned, ...]:
        """Choose wheels with `pip install --dry-run --report`; see `Engine`.

        pip is told not to look at what is installed: `target` says it, and it is offered as wheels
        without content.
        """
        if not requires:
            return ()
        rows = constraints(requires, target, movable)
        flags = ["--constraint", str(write_lines(_made(folder) / "constraints.txt", rows))]
        flags += [
            "--ignore-installed",
            "--find-links",
            str(write_installed_as_wheels(target, folder / "installed")),
        ]
        chosen = self._chosen(requires, flags, sources, folder)
        installed = installed_versions(target)
        return tuple(
            one.pinned
            for one in chosen
            if installed.get(one.pinned.wheel.name) != one.pinned.wheel.version
        )

    def resolve_for(
        self,
        requires: Sequence[str],
        within: Sequence[str],
        facts: Facts,
        sources: IndexConfig,
        folder: Path,
    ) -> tuple[Pinned, ...]:
        """Choose wheels by pip's flags for other platforms, as `Resolver` says."""
        if not requires:
            return ()
        flags = ["--ignore-installed", "--target", str(folder / "nowhere")]
        flags += ["--constraint", str(write_lines(_made(folder) / "within.txt", within))]
        flags += ["--python-version", facts.python.version.rstrip("+")]
        tag = abi(facts.python.version, free_threaded=facts.python.free_threaded)
        flags += ["--implementation", "cp", "--abi", tag]
        flags += [word for one in platforms(facts) for word in ("--platform", one)]
        asked, markers = list(requires), marker_environment(facts)
        while True:
            chosen = self._chosen(asked, flags, sources, folder)
            known = {one.pinned.wheel.name: one.requires for one in chosen}
            reached = follow_requirements(requires, known, markers)
            if not set(reached.missing) - set(asked):
                return tuple(one.pinned for one in chosen if one.pinned.wheel.name in reached.names)
            asked += reached.missing

    def _chosen(
        self, requires: Sequence[str], flags: Sequence[str], sources: IndexConfig, folder: Path
    ) -> list[_Chosen]:
        """Ask pip what it would install."""
        report = _made(folder) / "report.json"
        argv = [*self.command, "install", "--dry-run", "--quiet", "--report", str(report)]
        argv += ["--no-input", "--disable-pip-version-check", "--only-binary", ":all:", *flags]
        if self.break_system_packages:
            argv.append("--break-system-packages")
        if sources.find_links is not None:
            argv += ["--find-links", str(sources.find_links.absolute())]
        if sources.offline:
            argv.append("--no-index")
        argv += ["--requirement", str(write_lines(folder / "requires.txt", requires))]
        env = own_environment(self.environ)
        if sources.origin in {"flag", "uv"} and not sources.offline:
            env["PIP_INDEX_URL"] = sources.index_url
        if sources.alone:  # a variable replaces what a file says, and an empty one does not
            env |= dict.fromkeys(("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"), sources.index_url)
            env["PIP_FIND_LINKS"] = _made(folder / "installed").absolute().as_uri()
        for name, value in {
            "PIP_CERT": sources.cert,
            "PIP_CLIENT_CERT": sources.client_cert,
            "PIP_PROXY": sources.proxy,
            "PIP_TRUSTED_HOST": " ".join(sorted(sources.trusted_hosts)),
            "PIP_KEYRING_PROVIDER": "subprocess" if sources.keyring else None,
        }.items():
            if value:  # what pip does not know where the user configured it for uv
                env.setdefault(name, value)
        asked = ", ".join(requires)
        check_outcome(
            self.runner, argv, env, RESOLVE_SECONDS, "requirements-impossible", requires=asked
        )
        try:
            return list(_read(report.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            said = f"pip's report cannot be read: {error}"
            raise Error("requirements-impossible", requires=asked, said=said) from error

    def install(
        self, staged: Sequence[StagedFile], target: Target, folder: Path, lock: Path
    ) -> None:
        """Install exactly `staged`; see `Engine`."""
        wanted = write_lines(_made(folder) / "install.txt", hashed_requirements(staged))
        argv = [*self.command, "install", "--quiet", "--no-input", "--no-index", "--no-deps"]
        argv += ["--no-cache-dir", "--no-compile", "--no-warn-script-location"]
        argv += ["--disable-pip-version-check", "--only-binary", ":all:", "--require-hashes"]
        argv += ["--find-links", str(staged[0].path.parent), "--requirement", str(wanted)]
        if self.break_system_packages:
            argv.append("--break-system-packages")
        install_compiled(self.runner, argv, self.environ, staged, target, folder, lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """What pip would install."""

    pinned: Pinned
    requires: tuple[str, ...]
    """Its `Requires-Dist` lines."""


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _read(text: str) -> Iterator[_Chosen]:
    """Read pip's installation report."""
    document = cast("dict[str, list[dict[str, dict[str, object]]]]", json.loads(text))
    for row in document["install"]:
        url = str(row["download_info"]["url"])
        archive = cast("dict[str, str | dict[str, str]]", row["download_info"]["archive_info"])
        wheel = Wheel(
            name=canonicalize_name(str(row["metadata"]["name"])),
            version=str(row["metadata"]["version"]),
            index_url=PYPI,
            file=unquote(urlsplit(url).path.rpartition("/")[2]),
            size=0,
            sha256=_sha256(archive),
        )
        requires = cast("list[str]", row["metadata"].get("requires_dist", []))
        yield _Chosen(pinned=Pinned(wheel=wheel, url=url), requires=tuple(requires))


def _sha256(archive: Mapping[str, str | dict[str, str]]) -> str:
    """Return the hash in `archive_info`, whose newer form came with pip 23.1."""
    hashes = archive.get("hashes")
    if isinstance(hashes, dict):
        return hashes["sha256"]
    kind, _, digest = str(archive["hash"]).partition("=")
    if kind != "sha256":
        raise ValueError(f"a hash of kind {kind}")
    return digest
