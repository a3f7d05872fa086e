"""The wheel that tells pip to leave the set: made only for who asks for it with `--keep`.

pip reads `pip.conf` (`pip.ini` on Windows) in the root of an environment
(https://pip.pypa.io/en/stable/topics/configuration/). There stands a constraint: whatever wants
`onnxruntime` gets the empty stand-in, which the wheel carries, and who wants another release of it
is refused by pip with the reason. uv, Poetry and PDM read nothing that belongs to an environment
alone. The file belongs to the wheel, so it goes where the wheel is uninstalled, by whatever tool.
"""

import re
from pathlib import Path

from .build import LocalWheel, make_wheel, stand_in_wheel
from .contents import KEEP, STAND_IN

OLDEST_PIP = "21.1"
"""The first, after the old resolver's, that takes a file as a constraint
(https://pip.pypa.io/en/stable/news/#v21-1)."""
_PACKAGE = "_ortgpu_fix_keep"
_FILE = "constraints.txt"


_TEXT = (
    "# Made by `ortgpu-fix --keep`: onnxruntime-gpu provides the module onnxruntime here.\n"
    "# `ortgpu-fix --no-keep --apply` takes this file away.\n"
    "[install]\nconstraint = "
)


def constraint_address(purelib: Path) -> str:
    """Return the address of the constraints: pip splits what it reads at blanks, a path too."""
    return (purelib / _PACKAGE / _FILE).as_uri()


def configuration_text(purelib: Path) -> str:
    """Return the text of `pip.conf` in the environment with this site folder."""
    return f"{_TEXT}{constraint_address(purelib)}\n"


def is_ours(configuration: str) -> bool:
    """Return whether the text is what was written, here or where the environment was before."""
    return written_address(configuration) is not None


def written_address(configuration: str) -> str | None:
    """Return the address of the constraints where the text is what was written, or None."""
    written = re.escape(_TEXT) + rf"(\S+/{_PACKAGE}/{re.escape(_FILE)})\n"
    match = re.fullmatch(written, configuration)
    return match[1] if match else None


def keep_wheel(release: str, purelib: Path, name: str, configuration: str) -> LocalWheel:
    """Return the wheel for onnxruntime-gpu `release` in the environment with this site folder.

    `configuration` is the text of the file `name` in the root of the environment.
    """
    stand_in = stand_in_wheel(release)
    address = (purelib / _PACKAGE / stand_in.file).as_uri()
    files: dict[str, str | bytes] = {
        f"{KEEP.replace('-', '_')}-{release}.data/data/{name}": configuration,
        f"{_PACKAGE}/{_FILE}": f"{STAND_IN} @ {address}\n",
        f"{_PACKAGE}/{stand_in.file}": stand_in.content,
    }
    summary = "Tells pip to leave onnxruntime-gpu in its place (made here by ortgpu-fix)"
    return make_wheel(KEEP, release, summary, files)
