"""uv as the engine.

Shell.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from packaging import tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from .engine import (
    RESOLVE_SECONDS,
    Pinned,
    Staged,
    checked,
    constraints,
    hashed,
    in_use,
    run_install,
    write_lines,
)
from .environment import Target
from .errors import Error
from .plan import Wheel
from .run import Runner, own_environment
from .sources import Sources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


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
        self, requires: Sequence[str], target: Target, sources: Sources, folder: Path
    ) -> tuple[Pinned, ...]:
        """Choose wheels with `uv pip compile`; see `Engine`.

        It does not look at what is installed, so that is offered to it as wheels without content:
        an installed version that no index has any more is then no problem. (`uv pip install
        --dry-run` looks, and leaves a lock file in the environment.)
        """
        if not requires:
            return ()
        folder.mkdir(parents=True, exist_ok=True)
        offered = folder / "installed"
        fixed = constraints(requires, target)
        _offer(target, offered)
        argv = [self.program, "pip", "compile", "--quiet", "--no-progress"]
        argv += ["--format", "pylock.toml", "--python", target.executable]
        argv += ["--only-binary", ":all:", "--find-links", str(offered)]
        argv += ["--constraints", str(write_lines(folder / "constraints.txt", fixed))]
        if sources.find_links is not None:
            argv += ["--find-links", str(sources.find_links.absolute())]
        if sources.offline:
            argv += ["--offline", "--no-index"]
        argv.append(str(write_lines(folder / "requires.txt", requires)))
        done = checked(
            self.runner,
            argv,
            self._environment(sources),
            RESOLVE_SECONDS,
            "requirements-impossible",
            requires=", ".join(requires),
        )
        try:
            return tuple(_pinned(done.stdout, target))
        except (tomllib.TOMLDecodeError, KeyError, TypeError, InvalidWheelFilename) as error:
            said = f"uv's answer cannot be read: {error}"
            raise Error(
                "requirements-impossible", requires=", ".join(requires), said=said
            ) from error

    def install(self, staged: Sequence[Staged], target: Target, folder: Path, lock: Path) -> None:
        """Install exactly `staged`; see `Engine`.

        The cache is one of our own, on the environment's filesystem: uv unpacks into it and links
        from it, so that nothing is copied, and when it is removed no second name is left by which
        a file of the environment could be changed. uv's own cache gets no gigabytes.
        """
        folder.mkdir(parents=True, exist_ok=True)
        wanted = write_lines(folder / "install.txt", hashed(staged))
        argv = [self.program, "pip", "install", "--quiet", "--no-progress", "--no-config"]
        argv += ["--python", target.executable, "--offline", "--no-index", "--no-deps"]
        argv += ["--no-build", "--require-hashes", "--find-links", str(staged[0].path.parent)]
        argv += ["--cache-dir", str(folder / "cache"), "--link-mode", "hardlink"]
        if self.break_system_packages:
            argv.append("--break-system-packages")
        argv += ["--requirements", str(wanted)]
        run_install(self.runner, argv, self.environ, folder, lock)

    def _environment(self, sources: Sources) -> dict[str, str]:
        env = own_environment(self.environ)
        env.pop("VIRTUAL_ENV", None)
        if sources.origin in {"flag", "pip"}:  # uv knows its own configuration, not pip's
            env.pop("UV_INDEX_URL", None)
            env["UV_DEFAULT_INDEX"] = sources.index_url
        if sources.cert is not None:
            env.setdefault("SSL_CERT_FILE", sources.cert)
        if sources.proxy is not None:
            env.setdefault("ALL_PROXY", sources.proxy)
        if sources.trusted_hosts:
            env.setdefault("UV_INSECURE_HOST", " ".join(sorted(sources.trusted_hosts)))
        return env


def _offer(target: Target, folder: Path) -> None:
    """Write a wheel without content for everything installed, with its requirements."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, version in in_use(target).items():
        one = target.find(name)
        stem = f"{name.replace('-', '_')}-{version}"
        info = f"{stem}.dist-info"
        requires = "".join(f"Requires-Dist: {line}\n" for line in (one.requires if one else ()))
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
        wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as file:
            file.writestr(f"{info}/METADATA", head)
            file.writestr(f"{info}/WHEEL", wheel)
            file.writestr(f"{info}/RECORD", "")


def _pinned(text: str, target: Target) -> Iterator[Pinned]:
    """Read the pylock.toml that uv prints; of a release, the wheel that fits best."""
    installed = in_use(target)
    ranks = {tag: rank for rank, tag in enumerate(_tags(target))}
    document = tomllib.loads(text)
    for package in cast("list[dict[str, object]]", document.get("packages", [])):
        name, version = canonicalize_name(str(package["name"])), str(package["version"])
        if name in installed and installed[name] == version:
            continue
        best: tuple[int, Pinned] | None = None
        for row in cast("list[dict[str, object]]", package.get("wheels", [])):
            url = str(row.get("url") or Path(str(row["path"])).absolute().as_uri())
            file = unquote(urlsplit(url).path.rpartition("/")[2])
            fits = [ranks[tag] for tag in parse_wheel_filename(file)[3] if tag in ranks]
            hashes = cast("dict[str, str]", row["hashes"])
            size = row.get("size", 0)
            wheel = Wheel(
                name=name,
                version=version,
                index="pypi",
                file=file,
                size=size if isinstance(size, int) else 0,
                sha256=hashes["sha256"],
            )
            if fits and (best is None or min(fits) < best[0]):
                best = (min(fits), Pinned(wheel=wheel, url=url))
        if best is None:
            raise KeyError(f"no wheel of {name} {version}")
        yield best[1]


def _tags(target: Target) -> Iterator[tags.Tag]:
    """Give the tags of `target`, which runs on this machine, the best first."""
    version = Version(target.version).release[:2]
    platforms = list(tags.platform_tags())
    short = "".join(str(part) for part in version)
    if target.implementation == "cpython":
        abi = f"cp{short}t" if target.free_threaded else f"cp{short}"
        yield from tags.cpython_tags(version, [abi], platforms)
    yield from tags.compatible_tags(version, f"{target.implementation[:2]}{short}", platforms)
