"""What stands in a lock that pip, uv or Docker reads by lines: a value is one word there, or none.

Values come from outside: a folder of the command line, a row of a matrix file, the page of an
index. A line break in one would begin a line of its own, and so an instruction. In TOML no value
can do that: `utils.toml_writer` writes all of them as strings, and what they mean is held here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from urllib.parse import quote

from ...errors import Error
from ...versions import version

_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*", re.ASCII)
_RELEASE = re.compile(r"[\w.+!-]+", re.ASCII)
_MARKER = re.compile(r"[\w.+ ='()]+", re.ASCII)
_PATH = re.compile(r"(?:[A-Za-z]:)?[\w.+~,=()@/-]+(?: (?!-)[\w.+~,=()@/-]+)*")
"""What pip and uv read as one path: a space is part of it, unless an option follows."""
_URL_WORD = ":/@!&'()*+,=%~[]"
"""What an address holds beside letters, digits and `-._~`; `$`, `#`, `;` and blanks are encoded:
each has a meaning in a requirements file."""
_DOCKER = re.compile(r"[\w.+/-]+", re.ASCII)


def pin_word(name: str, release: str) -> str:
    """Return `name==release`. Raises Error `lock-value-odd` where that is more than one word."""
    if version(release) is None:
        raise _odd(f"{name}=={release}")
    return f"{_checked(_NAME.fullmatch, name)}=={_checked(_RELEASE.fullmatch, release)}"


def place_word(name: str, url: str) -> str:
    """Return the address of a wheel with its name, or its path, which pip allows no name.

    An address is encoded. Raises Error `lock-value-odd` for a path that would not be read as one.
    """
    if "://" not in url:
        return _checked(_PATH.fullmatch, url)
    return f"{_checked(_NAME.fullmatch, name)} @ {quote(url, safe=_URL_WORD)}"


def marker_word(marker: str) -> str:
    """Return what follows a requirement: its marker, if it has one. Raises as `pin_word`."""
    return f" ; {_checked(_MARKER.fullmatch, marker)}" if marker else ""


def hash_word(sha256: str) -> str:
    """Return a SHA-256 unchanged. Raises Error `lock-value-odd` where it is none."""
    return _checked(_SHA256.fullmatch, sha256)


def docker_word(text: str) -> str:
    """Return a value of an instruction. Raises Error `lock-value-odd` where Docker expands it."""
    return _checked(_DOCKER.fullmatch, text)


def copy_line(path: str) -> str:
    """Return the instruction that copies `path` into the folder of the same name.

    Raises Error `lock-value-odd` for what would not be read as a path.
    """
    folder = f"{PurePosixPath(_checked(_PATH.fullmatch, path)).parent}/"
    plain = _DOCKER.fullmatch(path)
    return f"COPY {path} {folder}" if plain else f"COPY {json.dumps([path, folder])}"


def _checked(form: Callable[[str], object], text: str) -> str:
    if not form(text):
        raise _odd(text)
    return text


def _odd(text: str) -> Error:
    return Error("lock-value-odd", value=json.dumps(text, ensure_ascii=False)[1:-1])  # on one line
