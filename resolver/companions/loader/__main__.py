"""Tell by the exit code whether the set for CUDA is here as it was installed: for health checks.

    python -m _ortgpu_fix_libraries [--load]

Shell, and not ours: it travels in the wheel that `companions` makes. Looks at files alone; with
`--load` it loads the libraries, too. Neither needs a GPU, so an image can be checked while it is
built.
"""

# ruff: noqa: PTH113, PTH118, PTH120, T201
from __future__ import annotations

import ctypes
import os
import sys

from . import load, lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def problems(site: str, *, loading: bool) -> Iterator[str]:
    """Yield what is not as it was installed in the folder `site`."""
    wanted = load.release()
    name, version, _ = lost.owner(site)
    if name + " " + version != wanted:
        found = name + " " + version + " has replaced " + wanted
        yield found if name else wanted + " is not installed"
    for line in lost.read(os.path.join(load.HERE, "libraries.txt")).splitlines():
        path = os.path.join(site, *line.split(" ", 2)[2].split("/"))
        if not os.path.isfile(path):
            yield path + " is missing"
        elif loading:
            try:
                ctypes.CDLL(path)
            except OSError as error:
                yield str(error)


def main() -> int:
    """Print what is wrong; return 1 where anything is."""
    found = list(problems(os.path.dirname(load.HERE), loading="--load" in sys.argv[1:]))
    for text in found:
        print("ortgpu-fix: " + text, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
