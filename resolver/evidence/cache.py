"""What was read before: JSON files in a folder that can be deleted at any time."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class ReadingCache:
    """Maps a key to a JSON value on disk; every value is written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Return the value under `key`, made now and kept where it is not there or unreadable."""
        digest = hashlib.sha256(key.encode()).hexdigest()
        path = self._folder / digest[:2] / f"{digest}.json"
        try:
            return json.loads(path.read_bytes())["value"]
        except (OSError, ValueError, LookupError, TypeError):
            pass
        # A round trip, so that a first reading and a later one give the same types.
        text = json.dumps({"key": key, "value": make()}, sort_keys=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(temporary).replace(path)
        except OSError as error:
            Path(temporary).unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror, str(self._folder)) from error
        return json.loads(text)["value"]
