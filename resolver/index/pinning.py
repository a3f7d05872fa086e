"""What a wheel must fit, and whether an index has one that a plan needs.

uv finds the wheels. Where it does not, this says which index lacks what.
"""

from __future__ import annotations

from pathlib import Path

from packaging import tags

from ..errors import Error
from ..facts.target import Target
from ..facts.wheel_tags import tags_on
from ..plan.wheels import Wheel
from .client import Index
from .page import IndexFile
from .wheel_choice import WheelTarget, find_exact


def wheel_target_of(target: Target) -> WheelTarget:
    """Return what wheels for `target`, which runs on this machine, must fit."""
    fitting = tags_on(
        list(tags.platform_tags()),
        target.version,
        implementation=target.implementation,
        free_threaded=target.free_threaded,
    )
    return WheelTarget(python=target.version, tags=tuple(fitting))


def check_offered(wheel: Wheel, index: Index, fit: WheelTarget) -> None:
    """Look for `wheel` on its own index.

    Raises Error `file-not-on-index` where that lacks a file that the plan knows, and where the plan
    knows none `index-lacks-version` or `index-lacks-build`; and those of `Index`.
    """
    page, files = index.project(wheel.index_url, wheel.name)
    if not wheel.file:
        find_exact(files, wheel.name, wheel.version, fit, page)
    elif not any(file.name == wheel.file or file.sha256 == wheel.sha256 for file in files):
        raise Error("file-not-on-index", file=wheel.file, url=page)


def files_in_folder(folder: Path) -> list[IndexFile]:
    """Return the wheels in a folder, as an index would offer them."""
    wheels = filter(Path.is_file, folder.resolve().glob("*.whl"))  # a pipe would be waited for
    return [IndexFile(name=path.name, url=path.as_uri()) for path in wheels]
