"""Compile a plan: `uv pip compile` chooses what is required besides, and finds every file.

The result is the lock, and what an apply installs.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from ..errors import Error, cause
from ..facts.target import Target
from ..index.client import Index
from ..index.config import IndexConfig, require_secure
from ..index.pinning import files_in_folder
from ..plan.wheels import Pinned, Wheel
from .environment import uv_environment
from .failures import check_python, compile_failure
from .indexes import indexes_of
from .output import parse_uv_output
from .program import Uv
from .project import Question, preferred_text, project_text, settings_text

RESOLVE_SECONDS = 300.0
_UNREADABLE = (OSError, LookupError, AttributeError, TypeError, ValueError, RecursionError)
"""What parsing the output of uv may raise."""


def compile_plan(uv: Uv, question: Question, index: Index, folder: Path) -> tuple[Pinned, ...]:
    """Return the file of every wheel of the plan, and of all that is required and not installed.

    Those of the plan have the hash that the plan has; what it does not know of them, and all of the
    others, is as their index lists it. Of the others there may be several files that fit, the best
    first. uv's files are written to `folder`. Raises Error `requirements-impossible` with the words
    of uv, `download-hash-mismatch` where an index has another file for one of the plan,
    `file-not-on-index`, `index-no-hash`, `python-prints`, those of `IndexConfig.absent` (offline),
    of `pinning.check_offered`, and of `Index`.
    """
    if not (question.wheels or question.requires):
        return ()
    sources = index.sources
    indexes = indexes_of(sources, question.wheels, question.behind)
    if not sources.offline:
        for url in indexes.others:
            require_secure(url, sources)
    folder.mkdir(parents=True, exist_ok=True)
    near = {wheel.name for wheel in question.wheels if is_near(wheel, sources)}
    (folder / "pyproject.toml").write_text(project_text(question, indexes, near), "utf-8")
    settings = settings_text(question, exclude_newer=sources.exclude_newer)
    (folder / "uv.toml").write_text(settings, "utf-8")
    answer = folder / "pylock.toml"
    answer.unlink(missing_ok=True)
    if question.preferred:
        answer.write_text(preferred_text(question.preferred), "utf-8")
    argv = [uv.program, "pip", "compile", "--quiet", "--no-progress", "--no-header"]
    argv += ["--config-file", str(folder / "uv.toml"), "--format", "pylock.toml"]
    argv += ["--output-file", str(answer), "--only-binary", ":all:", *question.python]
    argv += _places(question, sources, folder)
    argv.append(str(folder / "pyproject.toml"))
    cache = may_cache(uv.environ)
    env = uv_environment(uv.environ, sources, indexes.variables(), cache=cache is not None)
    if sources.constraints:
        env["UV_CONSTRAINT"] = " ".join(sources.constraints)
    done = uv.run(argv, env, RESOLVE_SECONDS)
    if done.returncode != 0:
        check_python(question.target, uv.environ, uv.runner)
        folders = (folder, cache or folder)
        raise compile_failure(done, question, index, folders, RESOLVE_SECONDS)
    try:
        text = answer.read_text("utf-8")
        return tuple(parse_uv_output(text, folder, question, indexes))
    except _UNREADABLE as error:
        said = cause("uv-answer-unreadable", problem=str(error))
        raise Error("requirements-impossible", requires=question.names, said=said) from error


def _places(question: Question, sources: IndexConfig, folder: Path) -> list[str]:
    """Return uv's options for where it finds what is on no index."""
    argv = []
    if question.target is not None:
        offered = write_installed_as_wheels(question.target, folder / "installed")
        argv += ["--find-links", as_link(offered)]
    if sources.find_links is not None:
        argv += ["--find-links", as_link(sources.find_links)]
    # A distribution that has to come from one index would not be looked for in a folder.
    return [*argv, "--offline", "--no-sources"] if sources.offline else argv


def is_near(wheel: Wheel, sources: IndexConfig) -> bool:
    """Return whether the folder of `--find-links` has `wheel`, or one of its name and version."""
    if sources.find_links is None:
        return False
    if wheel.file:
        return sources.near(wheel.file) is not None
    stem = f"{wheel.name.replace('-', '_')}-{wheel.version}-".lower()
    return any(file.name.lower().startswith(stem) for file in files_in_folder(sources.find_links))


def write_installed_as_wheels(target: Target, folder: Path) -> Path:
    """Write a wheel without content for everything installed into `folder`, and return `folder`.

    uv does not look at what is installed, and an installed version need not be on an index any
    more. Of one version uv takes the wheel with the highest build number, and need not look into
    the one on the index.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for installed in target.in_use:
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


def may_cache(environ: Mapping[str, str]) -> Path | None:
    """Return the folder, there already, in which uv's cache is or will be made; None: it must not.

    A service often has no home. Source: https://docs.astral.sh/uv/concepts/cache/#cache-directory
    """
    if environ.get("UV_NO_CACHE", "").lower() in {"1", "true"}:
        return None
    if sys.platform == "win32":
        place = environ.get("UV_CACHE_DIR") or environ.get("LOCALAPPDATA") or "."
    else:
        home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - without one, too
        place = environ.get("UV_CACHE_DIR") or environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    places = (Path(place), *Path(place).absolute().parents)
    folder = next((each for each in places if os.path.exists(each)), Path())  # noqa: PTH110
    if sys.platform == "win32":
        return folder
    root = "SUDO_UID" in environ or os.geteuid() == 0
    if root and folder.stat().st_uid != os.geteuid():
        return None  # its owner could not use what root leaves there
    return folder if folder.is_dir() and os.access(folder, os.W_OK) else None
