"""pip as the engine: the pip of the target, or our own working on the target."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from ..errors import Error
from ..facts.markers import follow_requirements, marker_environment
from ..facts.model import Facts
from ..facts.target import Target
from ..facts.wheel_tags import abi, platforms
from ..index.client import Index
from ..index.config import IndexConfig
from ..plan.wheels import PYPI, Pinned, Wheel
from ..utils.foreign_text import plain_name
from ..utils.process import own_environment
from ..utils.progress import Progress
from .common import (
    EngineBase,
    Prefix,
    StagedFile,
    as_link,
    constraints,
    installed_versions,
    write_installed_as_wheels,
    write_lines,
)

_NOTHING = re.compile(r"requirement ([\w.-]+).*\(from versions: none\)")
"""What pip says of a requirement where an index refuses, or does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pip(EngineBase):
    """A pip that can work on the target."""

    command: tuple[str, ...]
    """The program and its first arguments."""

    def resolve(
        self,
        requires: Sequence[str],
        target: Target,
        sources: IndexConfig,
        folder: Path,
        movable: frozenset[str] = frozenset(),
    ) -> tuple[Pinned, ...]:
        """Choose wheels with `pip install --dry-run --report`; see `Engine`.

        pip ignores what is installed; `target` says what that is, and each of its distributions is
        offered as a wheel without content.
        """
        if not requires:
            return ()
        rows = constraints(requires, target, movable)
        offered = write_installed_as_wheels(target, folder / "installed")
        flags = ["--constraint", write_lines(folder / "constraints.txt", rows)]
        flags += ["--ignore-installed", "--find-links", as_link(offered)]
        installed = installed_versions(target).items()
        return tuple(
            pinned
            for pinned, _ in self._chosen(requires, flags, sources, folder)
            if (pinned.wheel.name, pinned.wheel.version) not in installed
        )

    def resolve_for(
        self,
        requires: Sequence[str],
        within: Sequence[str],
        facts: Facts,
        sources: IndexConfig,
        folder: Path,
    ) -> tuple[Pinned, ...]:
        """Choose wheels with pip's options for other platforms; see `Engine`."""
        if not requires:
            return ()
        flags = ["--ignore-installed", "--target", str(folder / "nowhere")]
        flags += ["--constraint", write_lines(folder / "constraints.txt", within)]
        flags += ["--python-version", facts.python.version.rstrip("+")]
        tag = abi(facts.python.version, free_threaded=facts.python.free_threaded)
        flags += ["--implementation", "cp", "--abi", tag]
        flags += [word for tag in platforms(facts) for word in ("--platform", tag)]
        to_resolve, markers = list(requires), marker_environment(facts)
        while True:
            chosen = self._chosen(to_resolve, flags, sources, folder)
            known = {pinned.wheel.name: lines for pinned, lines in chosen}
            closure = follow_requirements(requires, known, markers)
            if not set(closure.missing) - set(to_resolve):
                return tuple(pinned for pinned, _ in chosen if pinned.wheel.name in closure.names)
            to_resolve += closure.missing

    def _chosen(
        self, requires: Sequence[str], flags: Sequence[str], sources: IndexConfig, folder: Path
    ) -> tuple[tuple[Pinned, list[str]], ...]:
        """Return each wheel that pip would install, and its `Requires-Dist` lines."""
        report = folder / "report.json"
        argv = [*self.command, "install", "--dry-run", "--quiet", "--report", str(report)]
        argv += ["--no-input", "--disable-pip-version-check", "--only-binary", ":all:", *flags]
        if self.break_system_packages:
            argv.append("--break-system-packages")
        if sources.find_links is not None:
            argv += ["--find-links", as_link(sources.find_links)]
        if sources.offline:
            argv.append("--no-index")
        argv += ["--requirement", write_lines(folder / "requires.txt", requires)]
        env = own_environment(self.environ)
        # The chosen index alone: a variable replaces what a file says, and an empty one does not.
        env |= dict.fromkeys(("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"), sources.index_url)
        (folder / "installed").mkdir(parents=True, exist_ok=True)
        env["PIP_FIND_LINKS"] = as_link(folder / "installed")
        for name, value in {
            "PIP_CERT": sources.cert,
            "PIP_CLIENT_CERT": sources.client_cert,
            "PIP_PROXY": sources.proxy,
            "PIP_TRUSTED_HOST": " ".join(sorted(sources.trusted_hosts)),
            "PIP_KEYRING_PROVIDER": "subprocess" if sources.keyring else None,
        }.items():
            if value:  # pip does not know what the user configured for uv
                env.setdefault(name, value)
        try:
            return self.ask(
                argv,
                env,
                requires,
                "pip-report-unreadable",
                lambda _: _parse_report(report.read_bytes()),
            )
        except Error as error:
            nothing = _NOTHING.search(str(error.values["said"]))
            if nothing and not sources.offline:
                _check_answer(nothing[1], sources)
            raise

    def fetch(
        self,
        wheels: Sequence[Wheel],
        target: Target,
        sources: IndexConfig,
        into: Prefix,
        progress: Progress,
    ) -> bool:
        """Return False: pip downloads one file after the other, and begins anew; see `Engine`."""
        del wheels, target, sources, into, progress
        return False

    def install(
        self,
        staged: Sequence[StagedFile],
        target: Target,  # noqa: ARG002 - the command has its Python
        into: Prefix,
    ) -> None:
        """Install exactly `staged`; see `Engine`."""
        argv = [*self.command, "install", "--no-cache-dir", "--no-compile"]
        argv += ["--no-warn-script-location", "--only-binary", ":all:", "--ignore-installed"]
        self.install_staged(argv, staged, into)


def _check_answer(name: str, sources: IndexConfig) -> None:
    """Raise the Error of an index that does not answer for `name`, or refuses."""
    try:
        Index(sources).project(PYPI, name)
    except Error as error:
        if error.values.get("status") != HTTPStatus.NOT_FOUND:
            raise


def _parse_report(text: bytes) -> Iterator[tuple[Pinned, list[str]]]:
    document = cast("dict[str, list[dict[str, dict[str, object]]]]", json.loads(text))
    for row in document["install"]:
        url = str(row["download_info"]["url"])
        archive = cast("dict[str, str | dict[str, str]]", row["download_info"]["archive_info"])
        wheel = Wheel(
            name=canonicalize_name(str(row["metadata"]["name"])),
            version=str(row["metadata"]["version"]),
            index_url=PYPI,
            file=plain_name(unquote(urlsplit(url).path)),
            size=0,
            sha256=_sha256(archive),
        )
        requires = cast("list[str]", row["metadata"].get("requires_dist", []))
        yield Pinned(wheel=wheel, url=url), requires


def _sha256(archive: Mapping[str, str | dict[str, str]]) -> str:
    """Return the hash in `archive_info`; pip 23.1 and newer write `hashes`."""
    hashes = archive.get("hashes")
    if isinstance(hashes, dict):
        return hashes["sha256"]
    kind, _, digest = str(archive["hash"]).partition("=")
    if kind != "sha256":
        raise ValueError(f"a hash of kind {kind}")
    return digest
