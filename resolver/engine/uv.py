"""uv as the engine."""

from __future__ import annotations

import contextlib
import os
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
from ..index.config import IndexConfig, require_secure
from ..index.pinning import wheel_target_of
from ..plan.wheels import PYPI, Pinned, Wheel
from ..utils.process import install_environment, own_environment
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
from .uv_output import parse_uv_output, uv_platform
from .uv_progress import DrawnProgress

_INDEXES = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE")
"""Variables that name other indexes than the default one, or a file that does."""
_FETCHING = (
    *("UV_CACHE_DIR", "UV_NO_CACHE", "UV_LINK_MODE"),
    *("UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES", "UV_CONCURRENT_DOWNLOADS"),
    *("UV_NATIVE_TLS", "UV_SYSTEM_CERTS"),
)
"""Variables of the user's that count for a download whose files are chosen.

Source: https://docs.astral.sh/uv/reference/environment/
"""


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
        tags, installed = wheel_target_of(target).tags, installed_versions(target)
        write_lines(folder / "constraints.txt", fixed)
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
        free = facts.python.free_threaded
        flags += ["--universal"] if free else ["--python-platform", uv_platform(facts)]
        tags, markers = tuple(tags_of(facts)), marker_environment(facts)
        write_lines(folder / "constraints.txt", within)
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
        """Run `uv pip compile`, and parse the pylock.toml that it prints.

        A line names `constraints.txt`: up to 0.12 uv splits what `--constraints` names at spaces.
        """
        argv = [self.program, "pip", "compile", "--quiet", "--no-progress"]
        argv += ["--format", "pylock.toml", "--only-binary", ":all:", *flags]
        if sources.find_links is not None:
            argv += ["--find-links", as_link(sources.find_links)]
        if sources.offline:
            argv += ["--offline", "--no-index"]
        argv.append(write_lines(folder / "requires.txt", ["-c constraints.txt", *requires]))
        return self.ask(
            argv,
            self._environment(sources),
            requires,
            "uv-answer-unreadable",
            lambda text: parse_uv_output(text, Path.cwd(), tags, installed or {}, markers),
        )

    def fetch(
        self,
        wheels: Sequence[Wheel],
        target: Target,
        sources: IndexConfig,
        into: Prefix,
        progress: Progress,
    ) -> bool:
        """Bring `wheels` through the user's own cache of uv; see `Engine`.

        The hashes are required: uv takes nothing from an index or from its cache that has another.
        So it does not matter which of the indexes it finds a version on.
        """
        urls = {wheel.index_url: None for wheel in wheels if wheel.index_url != PYPI}
        env = self._configured(sources) | install_environment(self.environ)
        env |= {name: self.environ[name] for name in _FETCHING if name in self.environ}
        env.pop("UV_EXCLUDE_NEWER", None)  # what to install is chosen
        if env.get("UV_LINK_MODE") == "symlink":  # who cleans the cache would break what is here
            env["UV_LINK_MODE"] = "copy"
        env |= {"UV_INDEX": " ".join(urls)} if urls else {}
        if not _may_cache(self.environ):
            env["UV_NO_CACHE"] = "1"
        argv = [self.program, "pip", "install", "--python", target.executable, "--no-build"]
        argv += ["--index-strategy", "unsafe-best-match"]
        drawn = None
        if sources.offline:
            argv.append("--offline")
        else:
            for url in urls:
                require_secure(url, sources)
            progress("install", engine=self.name, count=len(wheels))
            env |= {"TERM": "xterm", "NO_COLOR": "1"}
            drawn = DrawnProgress(wheels, progress).hear
        with contextlib.suppress(Error):
            self.install_pinned(argv, wheels, into, env, drawn)
            return True
        return False

    def install(self, staged: Sequence[StagedFile], target: Target, into: Prefix) -> None:
        """Install exactly `staged`; see `Engine`.

        The cache is our own and on the environment's filesystem: uv unpacks into it and links from
        it, so that nothing is copied. uv's own cache does not grow.
        """
        argv = [self.program, "pip", "install", "--no-progress", "--no-config"]
        argv += ["--python", target.executable, "--offline", "--no-build"]
        argv += ["--cache-dir", str(into.work / "cache"), "--link-mode", "hardlink"]
        self.install_staged(argv, staged, into)

    def _environment(self, sources: IndexConfig) -> dict[str, str]:
        env = own_environment(self.environ)
        env.pop("VIRTUAL_ENV", None)
        # The chosen index alone: uv would look into every other one that it is configured for.
        env = {name: value for name, value in env.items() if name not in _INDEXES}
        if not _may_cache(env):
            env["UV_NO_CACHE"] = "1"
        chosen = {"UV_NO_CONFIG": "1", "UV_DEFAULT_INDEX": sources.index_url}
        return self._configured(sources) | env | chosen

    @staticmethod
    def _configured(sources: IndexConfig) -> dict[str, str]:
        """Return the variables for what the user configured, for uv or for pip."""
        configured = {
            "UV_DEFAULT_INDEX": sources.index_url,
            "SSL_CERT_FILE": sources.cert,
            "SSL_CLIENT_CERT": sources.client_cert,
            "ALL_PROXY": sources.proxy,
            "UV_KEYRING_PROVIDER": "subprocess" if sources.keyring else None,
            "UV_INSECURE_HOST": " ".join(sorted(sources.trusted_hosts)) or None,
            "UV_EXCLUDE_NEWER": sources.exclude_newer,
        }
        return {name: value for name, value in configured.items() if value is not None}


def _may_cache(environ: Mapping[str, str]) -> bool:
    """Tell whether uv can make its cache where this user has it; a service often has no home.

    Source: https://docs.astral.sh/uv/concepts/cache/#cache-directory
    """
    if sys.platform == "win32":
        return True
    home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - without one, too
    place = environ.get("UV_CACHE_DIR") or environ.get("XDG_CACHE_HOME") or home / ".cache"
    places = (Path(place), *Path(place).absolute().parents)
    folder = next(each for each in places if os.path.exists(each))  # noqa: PTH110 - or no right
    root = "SUDO_UID" in environ or os.geteuid() == 0
    if root and folder.stat().st_uid != os.geteuid():
        return False  # its owner could not use what root leaves there
    return folder.is_dir() and os.access(folder, os.W_OK)
