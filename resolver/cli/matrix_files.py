"""What is kept for this user: the cache, and rows of the matrix; and those of `--matrix FILE`."""

from __future__ import annotations

import functools
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..data_files import load_table
from ..errors import Error, cause
from ..matrix.additions import LARGEST, Additions, parse_additions, parse_all
from ..matrix.load import use_additions, used_additions
from ..messages.catalog import Language, load_texts
from .console import print_notice, user_language

NAME = "ortgpu-fix"
OLD = 60
"""Days after which the matrix is called old: a release of onnxruntime-gpu, and two of cuDNN."""


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Return the file in which `matrix --update` keeps its rows; None without a home."""
    folder = _user_folder(environ, "XDG_DATA_HOME", ".local/share")
    return folder / "matrix.json" if folder else None


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder that can be deleted at any time, whoever owns it; None without a home."""
    return _user_folder(environ, "XDG_CACHE_HOME", ".cache")


def readings_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of what was read so far; None where this user should not write there.

    In one of another user, as under sudo with that user's HOME, its owner could not use or remove
    what we leave. That is said once.
    """
    folder = cache_folder(environ)
    if folder is None or is_own_place(folder / "readings"):
        return folder and folder / "readings"
    _report_other_owner(folder, user_language(environ))
    return None


@functools.cache
def _report_other_owner(folder: Path, language: Language) -> None:
    print_notice(load_texts(language).label("cache-not-own", folder=folder))


def is_own_place(path: Path) -> bool:
    """Return whether `path`, or its nearest parent that is there, belongs to this user."""
    places = (path, *path.parents)
    nearest = next((one for one in places if os.path.exists(one)), None)  # noqa: PTH110 - or no right
    return nearest is None or _is_ours(nearest)


def _user_folder(environ: Mapping[str, str], variable: str, usual: str) -> Path | None:
    if sys.platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return Path(local, NAME) if local else None
    named, home = environ.get(variable, ""), environ.get("HOME")
    if named.startswith("/"):
        return Path(named, NAME)
    return Path(home, usual, NAME) if home else None


def use_matrix_files(files: Sequence[str], environ: Mapping[str, str]) -> None:
    """Let the matrix have the rows of the `files` of `--matrix`, and those that this user has read.

    A file of the user that is damaged, or older than the shipped matrix, is ignored with a notice;
    one that belongs to another user (under sudo) is not looked at. Raises Error
    `matrix-file-invalid` for a FILE.
    """
    added = [rows for file in files for rows in _read(Path(file))]
    own = user_file(environ)
    if own is not None and _is_ours(own):
        texts = load_texts(user_language(environ))
        try:
            date = load_table("onnxruntime")["date"]
            for rows in _read(own, own=True):
                if rows.read < date:
                    old = texts.label("matrix-file-old", file=own, read=rows.read, date=date)
                    print_notice(old)
                else:
                    added.append(rows)
        except Error as error:
            problem = error.values.get("problem", "")
            print_notice(texts.label("matrix-file-ignored", file=own, problem=problem))
    use_additions(added)


def forget_user_rows(environ: Mapping[str, str]) -> Path | None:
    """Remove the file of `matrix --update` and return it; None where this user has none.

    Raises Error `file-unwritable`.
    """
    own = user_file(environ)
    if own is None or not (own.is_symlink() or _is_ours(own)):
        return None
    try:
        own.unlink()
    except OSError as error:
        raise Error("file-unwritable", file=own, cause=error.strerror or error) from error
    return own


def _is_ours(file: Path) -> bool:
    try:
        owner = file.stat().st_uid
    except OSError:
        return False
    return sys.platform == "win32" or owner == os.geteuid()


def other_lines(file: Path, index_url: str) -> list[bytes]:
    """Return the lines of the user's own file that were read from other indexes; damaged: none."""
    try:
        lines = _content(file, own=True).splitlines()
        return [line for line in lines if parse_additions(line, file).index_url != index_url]
    except (OSError, Error):
        return []


def show_age(environ: Mapping[str, str], today: str | None = None) -> None:
    """Warn on a terminal that the newest row of the matrix is old; plans never know."""
    if not sys.stderr.isatty():
        return
    from datetime import date, datetime, timezone

    newest = max([load_table("onnxruntime")["date"], *(rows.read for rows in used_additions())])
    now = date.fromisoformat(today) if today else datetime.now(tz=timezone.utc).date()
    days = (now - date.fromisoformat(newest)).days
    if days > OLD:
        print_notice(load_texts(user_language(environ)).label("matrix-age", date=newest, days=days))


def _read(file: Path, *, own: bool = False) -> tuple[Additions, ...]:
    try:
        return parse_all(_content(file, own=own), file)
    except OSError as error:
        problem = error.strerror or error
        raise Error("matrix-file-invalid", file=file, problem=problem) from error


def _content(file: Path, *, own: bool) -> bytes:
    """Return at most so much that it is seen to be too large. Raises OSError.

    Of the user's `own`, which is not asked for, no pipe: it would be waited for. Raises Error
    `matrix-file-invalid` for that.
    """
    if own and stat.S_IFMT(file.stat().st_mode) not in {stat.S_IFREG, stat.S_IFDIR}:
        raise Error("matrix-file-invalid", file=file, problem=cause("file-irregular"))
    with file.open("rb") as content:
        return content.read(LARGEST + 1)
