"""A package index that is a folder of this machine, named by a `file:` address."""

from __future__ import annotations

import contextlib
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ..errors import Error
from .page import IndexFile, parse_index_page, without_credentials


def local_path(url: str) -> Path:
    """Return the path that a `file:` address names."""
    return Path(url2pathname(urlsplit(url).path))


def folder_page(page: str) -> tuple[IndexFile, ...]:
    """Return the files that the folder's index.html names, or else those in the folder.

    Raises Error `index-unreachable` where there is no such folder, and `index-page-unreadable`.
    """
    folder = local_path(page)
    try:
        with contextlib.suppress(OSError):
            if (folder / "index.html").is_file():  # a pipe would be waited for
                text = (folder / "index.html").read_text(encoding="utf-8", errors="replace")
                return parse_index_page("text/html", text, page)
        paths = sorted(filter(Path.is_file, folder.resolve().iterdir()))
        return tuple(IndexFile(name=path.name, url=path.as_uri()) for path in paths)
    except (OSError, ValueError) as error:  # a path with a zero byte is no path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Error("index-unreachable", url=without_credentials(page), reason=reason) from error
