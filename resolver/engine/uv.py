"""uv as the engine."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import Tag

from ..errors import Error
from ..facts.markers import marker_environment
from ..facts.model import Facts
from ..facts.target import Target
from ..facts.wheel_tags import tags_of
from ..index.config import IndexConfig
from ..index.pinning import wheel_target_of
from ..plan.wheels import Pinned
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
from .uv_output import parse_uv_output, uv_platform

_OTHERS = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE")
"""What names other places than the default index, or a file that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uv:
    """A uv that answers."""

    program: str
    version: str
    environ: Mapping[str, str]
    runner: Runner
    break_system_packages: bool = False

    @property
    def name(self) -> str:
        """For people."""
        return f"uv {self.version}"

    def resolve(
        self,
        requires: Sequence[str],
        target: Target,
        sources: IndexConfig,
        folder: Path,
        movable: frozenset[str] = frozenset(),
    ) -> tuple[Pinned, ...]:
        """Choose wheels with `uv pip compile`; see `Engine`.

        It does not look at what is installed, so that is offered to it as wheels without content:
        an installed version that no index has any more is then no problem. (`uv pip install
        --dry-run` looks, and leaves a lock file in the environment.)
        """
        if not requires:
            return ()
        folder.mkdir(parents=True, exist_ok=True)
        fixed = constraints(requires, target, movable)
        offered = write_installed_as_wheels(target, folder / "installed")
        flags = ["--python", target.executable, "--find-links", str(offered)]
        flags += ["--constraints", str(write_lines(folder / "constraints.txt", fixed))]
        found = self._compiled(
            requires,
            flags,
            sources,
            folder,
            tags=wheel_target_of(target).tags,
            installed=installed_versions(target),
        )
        best = {one.wheel.name: one for one in reversed(found)}  # the best is the first
        return tuple(reversed(best.values()))

    def resolve_for(
        self,
        requires: Sequence[str],
        within: Sequence[str],
        facts: Facts,
        sources: IndexConfig,
        folder: Path,
    ) -> tuple[Pinned, ...]:
        """Choose wheels with uv's flags for other platforms; see `Engine`.

        uv has no word for a free-threaded Python of another machine: there it takes the releases
        that fit any platform, and the wheels are looked through here.
        """
        if not requires:
            return ()
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["--python-version", facts.python.version.rstrip("+"), "--python", sys.executable]
        flags += ["--constraints", str(write_lines(folder / "within.txt", within))]
        free = facts.python.free_threaded
        flags += ["--universal"] if free else ["--python-platform", uv_platform(facts)]
        markers = marker_environment(facts)
        return self._compiled(
            requires, flags, sources, folder, tags=tuple(tags_of(facts)), markers=markers
        )

    def _compiled(
        self,
        requires: Sequence[str],
        flags: Sequence[str],
        sources: IndexConfig,
        folder: Path,
        *,
        tags: Sequence[Tag],
        installed: Mapping[str, str] | None = None,
        markers: Mapping[str, str] | None = None,
    ) -> tuple[Pinned, ...]:
        """Ask `uv pip compile` what it would take, and read its pylock.toml."""
        argv = [self.program, "pip", "compile", "--quiet", "--no-progress"]
        argv += ["--format", "pylock.toml", "--only-binary", ":all:", *flags]
        if sources.find_links is not None:
            argv += ["--find-links", str(sources.find_links.absolute())]
        if sources.offline:
            argv += ["--offline", "--no-index"]
        argv.append(str(write_lines(folder / "requires.txt", requires)))
        asked = ", ".join(requires)
        done = check_outcome(
            self.runner,
            argv,
            self._environment(sources),
            RESOLVE_SECONDS,
            "requirements-impossible",
            requires=asked,
        )
        try:
            return tuple(parse_uv_output(done.stdout, Path.cwd(), tags, installed or {}, markers))
        except (KeyError, TypeError, ValueError) as error:
            said = f"uv's answer cannot be read: {error}"
            raise Error("requirements-impossible", requires=asked, said=said) from error

    def install(
        self, staged: Sequence[StagedFile], target: Target, folder: Path, lock: Path
    ) -> None:
        """Install exactly `staged`; see `Engine`.

        The cache is one of our own, on the environment's filesystem: uv unpacks into it and links
        from it, so that nothing is copied, and when it is removed no second name is left by which
        a file of the environment could be changed. uv's own cache gets no gigabytes.
        """
        folder.mkdir(parents=True, exist_ok=True)
        wanted = write_lines(folder / "install.txt", hashed_requirements(staged))
        argv = [self.program, "pip", "install", "--quiet", "--no-progress", "--no-config"]
        argv += ["--python", target.executable, "--offline", "--no-index", "--no-deps"]
        argv += ["--no-build", "--require-hashes", "--find-links", str(staged[0].path.parent)]
        argv += ["--cache-dir", str(folder / "cache"), "--link-mode", "hardlink"]
        if self.break_system_packages:
            argv.append("--break-system-packages")
        argv += ["--requirements", str(wanted)]
        install_compiled(self.runner, argv, self.environ, staged, target, folder, lock)

    def _environment(self, sources: IndexConfig) -> dict[str, str]:
        env = own_environment(self.environ)
        env.pop("VIRTUAL_ENV", None)
        if sources.origin in {"flag", "pip"}:  # uv knows its own configuration, not pip's
            env.pop("UV_INDEX_URL", None)
            env["UV_DEFAULT_INDEX"] = sources.index_url
        if sources.alone:
            for name in _OTHERS:
                env.pop(name, None)
            env |= {"UV_NO_CONFIG": "1", "UV_DEFAULT_INDEX": sources.index_url}
        if sources.cert is not None:
            env.setdefault("SSL_CERT_FILE", sources.cert)
        if sources.client_cert is not None:
            env.setdefault("SSL_CLIENT_CERT", sources.client_cert)
        if sources.proxy is not None:
            env.setdefault("ALL_PROXY", sources.proxy)
        if sources.keyring is not None:
            env.setdefault("UV_KEYRING_PROVIDER", "subprocess")
        if sources.trusted_hosts:
            env.setdefault("UV_INSECURE_HOST", " ".join(sorted(sources.trusted_hosts)))
        return env
