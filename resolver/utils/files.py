"""Write files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ..errors import Error


def write(path: Path, content: str | bytes) -> None:
    """Write `content` to `path`, whole or not at all; text in UTF-8.

    An existing file keeps its permissions; a link is followed. Raises Error `file-unwritable`.
    """
    try:
        data = content if isinstance(content, bytes) else content.encode()
        goal = path.resolve()
        mode = goal.stat().st_mode & 0o777 if goal.exists() else 0o666 & ~_umask()
        descriptor, name = tempfile.mkstemp(dir=goal.parent, prefix=f".{goal.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            Path(name).chmod(mode)
            Path(name).replace(goal)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except UnicodeEncodeError as error:
        raise Error("file-unwritable", file=path, cause="a path in it is no text") from error
    except OSError as error:
        raise Error("file-unwritable", file=path, cause=error.strerror or error) from error


def _umask() -> int:
    mask = os.umask(0o022)  # reading it means setting it
    os.umask(mask)
    return mask
