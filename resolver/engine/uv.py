"""uv as the engine."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import Tag

from ..facts.markers import marker_environment
from ..facts.model import Facts
from ..facts.target import Target
from ..facts.wheel_tags import tags_of
from ..index.config import IndexConfig
from ..index.pinning import wheel_target_of
from ..plan.wheels import Pinned
from ..utils.process import own_environment
from .common import (
    EngineBase,
    StagedFile,
    as_link,
    constraints,
    installed_versions,
    write_installed_as_wheels,
    write_lines,
)
from .uv_output import parse_uv_output, uv_platform

_INDEXES = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE")
"""Variables that name other indexes than the default one, or a file that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uv(EngineBase):
    """A uv that runs."""

    program: str

    def resolve(
        self,
        requires: Sequence[str],
        target: Target,
        sources: IndexConfig,
        folder: Path,
        movable: frozenset[str] = frozenset(),
    ) -> tuple[Pinned, ...]:
        """Choose wheels with `uv pip compile`; see `Engine`.

        uv does not look at what is installed here, so each installed distribution is offered as a
        wheel without content; its version need not be on an index any more. (`uv pip install
        --dry-run` does look, but leaves a lock file in the environment.)
        """
        if not requires:
            return ()
        fixed = constraints(requires, target, movable)
        offered = write_installed_as_wheels(target, folder / "installed")
        flags = ["--python", target.executable, "--find-links", as_link(offered)]
        flags += ["--constraints", write_lines(folder / "constraints.txt", fixed)]
        tags, installed = wheel_target_of(target).tags, installed_versions(target)
        chosen = self._compiled(requires, flags, sources, folder, tags, installed=installed)
        best = {pinned.wheel.name: pinned for pinned in reversed(chosen)}  # the first is the best
        return tuple(reversed(best.values()))

    def resolve_for(
        self,
        requires: Sequence[str],
        within: Sequence[str],
        facts: Facts,
        sources: IndexConfig,
        folder: Path,
    ) -> tuple[Pinned, ...]:
        """Choose wheels with uv's options for other platforms; see `Engine`.

        uv has no option for a free-threaded Python of another machine: for one it chooses releases
        for all platforms, and the wheels are filtered here.
        """
        if not requires:
            return ()
        flags = ["--python-version", facts.python.version.rstrip("+"), "--python", sys.executable]
        flags += ["--constraints", write_lines(folder / "within.txt", within)]
        free = facts.python.free_threaded
        flags += ["--universal"] if free else ["--python-platform", uv_platform(facts)]
        tags, markers = tuple(tags_of(facts)), marker_environment(facts)
        return self._compiled(requires, flags, sources, folder, tags, markers=markers)

    def _compiled(
        self,
        requires: Sequence[str],
        flags: Sequence[str],
        sources: IndexConfig,
        folder: Path,
        tags: Sequence[Tag],
        *,
        installed: Mapping[str, str] | None = None,
        markers: Mapping[str, str] | None = None,
    ) -> tuple[Pinned, ...]:
        """Run `uv pip compile`, and parse the pylock.toml that it prints."""
        argv = [self.program, "pip", "compile", "--quiet", "--no-progress"]
        argv += ["--format", "pylock.toml", "--only-binary", ":all:", *flags]
        if sources.find_links is not None:
            argv += ["--find-links", as_link(sources.find_links)]
        if sources.offline:
            argv += ["--offline", "--no-index"]
        argv.append(write_lines(folder / "requires.txt", requires))
        return self.ask(
            argv,
            self._environment(sources),
            requires,
            "uv's answer",
            lambda text: parse_uv_output(text, Path.cwd(), tags, installed or {}, markers),
        )

    def install(
        self, staged: Sequence[StagedFile], target: Target, folder: Path, lock: Path
    ) -> None:
        """Install exactly `staged`; see `Engine`.

        The cache is our own and on the environment's filesystem: uv unpacks into it and links from
        it, so that nothing is copied. It is removed afterwards, so that a file of the environment
        has no second name by which it could be changed. uv's own cache does not grow. Where a
        folder in site-packages is a mount of its own, everything is copied: uv does not go over to
        that half-way.
        """
        argv = [self.program, "pip", "install", "--no-progress", "--no-config"]
        argv += ["--python", target.executable, "--offline", "--no-build"]
        argv += ["--cache-dir", str(folder / "cache"), "--link-mode", _link_mode(target, folder)]
        self.install_staged(argv, staged, target, folder, lock)

    def _environment(self, sources: IndexConfig) -> dict[str, str]:
        env = own_environment(self.environ)
        env.pop("VIRTUAL_ENV", None)
        # The chosen index alone: uv would look into every other one that it is configured for.
        env = {name: value for name, value in env.items() if name not in _INDEXES}
        env |= {"UV_NO_CONFIG": "1", "UV_DEFAULT_INDEX": sources.index_url}
        if not _may_cache(env):
            env["UV_NO_CACHE"] = "1"
        configured = {
            "SSL_CERT_FILE": sources.cert,
            "SSL_CLIENT_CERT": sources.client_cert,
            "ALL_PROXY": sources.proxy,
            "UV_KEYRING_PROVIDER": "subprocess" if sources.keyring else None,
            "UV_INSECURE_HOST": " ".join(sorted(sources.trusted_hosts)) or None,
            "UV_EXCLUDE_NEWER": sources.exclude_newer,
        }
        return {name: value for name, value in configured.items() if value is not None} | env


def _may_cache(environ: Mapping[str, str]) -> bool:
    """Tell whether uv can make its cache where this user has it; a service often has no home.

    Source: https://docs.astral.sh/uv/concepts/cache/#cache-directory
    """
    if sys.platform == "win32":
        return True
    home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - without one, too
    place = environ.get("UV_CACHE_DIR") or environ.get("XDG_CACHE_HOME") or home / ".cache"
    folder = next(each for each in (Path(place), *Path(place).absolute().parents) if each.exists())
    return folder.is_dir() and os.access(folder, os.W_OK)


def _link_mode(target: Target, folder: Path) -> str:
    """Return how uv brings files into `target` from its cache in `folder`."""
    roots = {Path(target.purelib), Path(target.platlib)}
    roots |= {root / "nvidia" for root in roots}
    with contextlib.suppress(OSError):
        own = folder.parent.stat().st_dev
        for root in roots:
            folders = [
                entry for entry in root.glob("*") if entry.is_dir() and not entry.is_symlink()
            ]
            if any(entry.stat().st_dev != own for entry in folders):
                return "copy"
    return "hardlink"
