"""Pin a wheel to the file, size and hash that its own index has.

PyTorch's builds for the CUDA versions are on indexes of their own. The matrix knows those builds
from documents, without files.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from packaging import tags
from packaging.specifiers import SpecifierSet

from ..errors import Error
from ..facts.target import Target
from ..facts.wheel_tags import tags_on
from ..plan.wheels import Wheel, wheel_on
from .client import Index
from .folder import sha256_at
from .page import IndexFile
from .wheel_choice import WheelTarget, find_exact, find_newest


def wheel_target_of(target: Target) -> WheelTarget:
    """Return what wheels for `target`, which runs on this machine, must fit."""
    fitting = tags_on(
        list(tags.platform_tags()),
        target.version,
        implementation=target.implementation,
        free_threaded=target.free_threaded,
    )
    return WheelTarget(python=target.version, tags=tuple(fitting))


def pin_from_index(wheel: Wheel, index: Index, fit: WheelTarget) -> Wheel:
    """Return `wheel` with its file, size and hash, as its own index has them.

    A wheel that the matrix knows stays as it is. The folder of `--find-links` is searched before
    the index, and trusted. Raises Error `index-lacks-version` or `index-lacks-build` where no wheel
    fits, `index-no-hash` where the index has no hash of it, offline that of `IndexConfig.absent`,
    and those of `Index`.
    """
    if wheel.sha256:
        return wheel
    folder = index.sources.find_links
    if folder is not None:
        with contextlib.suppress(Error):
            offers = files_in_folder(folder)
            file = find_exact(offers, wheel.name, wheel.version, fit, str(folder))
            return _as_wheel(file, wheel, index, str(folder))
    if index.sources.offline:
        wanted = f"{wheel.name} {wheel.version}"
        raise index.sources.absent(wanted)
    page, files = index.project(wheel.index_url, wheel.name)
    return _as_wheel(find_exact(files, wheel.name, wheel.version, fit, page), wheel, index, page)


def index_has(
    name: str, specifier: SpecifierSet, base: str, index: Index, fit: WheelTarget
) -> bool:
    """Return whether the index at `base` has a wheel of `name` within `specifier`.

    An index without the project has none. Raises those of `Index`.
    """
    return _newest(name, specifier, base, index, fit) is not None


def newest_from_index(
    name: str, specifier: SpecifierSet, base: str, index: Index, fit: WheelTarget
) -> Wheel | None:
    """Return the newest wheel of `name` within `specifier` that the index at `base` has.

    Raises Error `index-no-hash` and those of `Index`.
    """
    newest = _newest(name, specifier, base, index, fit)
    if newest is None:
        return None
    page, file = newest
    return _as_wheel(file, wheel_on(base, name, file.name.split("-")[1], None), index, page)


def _newest(
    name: str, specifier: SpecifierSet, base: str, index: Index, fit: WheelTarget
) -> tuple[str, IndexFile] | None:
    try:
        page, files = index.project(base, name)
    except Error as error:
        if error.values.get("status") in {403, 404}:
            return None  # a bucket without a listing answers 403 for what it does not have
        raise
    file = find_newest(files, name, specifier, fit)
    return None if file is None else (page, file)


def files_in_folder(folder: Path) -> list[IndexFile]:
    """Return the wheels in a folder, as an index would offer them."""
    wheels = filter(Path.is_file, folder.resolve().glob("*.whl"))  # a pipe would be waited for
    return [IndexFile(name=path.name, url=path.as_uri()) for path in wheels]


def _as_wheel(file: IndexFile, wheel: Wheel, index: Index, page: str) -> Wheel:
    digest = sha256_at(file.url, file.sha256, file=file.name, page=page)
    size = file.size or index.size(file.url)
    return wheel._replace(file=file.name, size=size, sha256=digest)
