"""The user's own rows of the matrix, and those of `--matrix FILE`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ..data_files import load_table
from ..errors import Error
from ..matrix.additions import Additions, parse_additions
from ..matrix.load import use_additions
from ..messages.catalog import load_texts
from .console import print_notice, user_language

NAME = "ortgpu-fix"


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Return the file in which `matrix --update` keeps its rows; None without a home."""
    folder = _user_folder(environ, "XDG_DATA_HOME", ".local/share")
    return folder / "matrix.json" if folder else None


def readings_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of what was read so far; it can be deleted at any time."""
    folder = _user_folder(environ, "XDG_CACHE_HOME", ".cache")
    return folder / "readings" if folder else None


def wheels_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of wheels that had to be downloaded whole to be read."""
    folder = _user_folder(environ, "XDG_CACHE_HOME", ".cache")
    return folder / "wheels" if folder else None


def _user_folder(environ: Mapping[str, str], variable: str, usual: str) -> Path | None:
    if sys.platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return Path(local, NAME) if local else None
    named, home = environ.get(variable, ""), environ.get("HOME")
    if named.startswith("/"):
        return Path(named, NAME)
    return Path(home, usual, NAME) if home else None


def use_matrix_files(arguments: argparse.Namespace, environ: Mapping[str, str]) -> None:
    """Let the matrix have the rows of `--matrix FILE`, and those that this user has read.

    A file of the user that is damaged, or older than the shipped matrix, is ignored with a notice;
    one that belongs to another user (under sudo) is not looked at. Raises Error
    `matrix-file-invalid` for a FILE.
    """
    added = [_read(Path(file)) for file in arguments.matrix]
    own = user_file(environ)
    if own is not None and _is_ours(own):
        texts = load_texts(user_language(environ))
        try:
            rows = _read(own)
            date = load_table("onnxruntime")["date"]
            if rows.read < date:
                print_notice(texts.label("matrix-file-old", file=own, read=rows.read, date=date))
            else:
                added.append(rows)
        except Error as error:
            problem = error.values.get("problem", "")
            print_notice(texts.label("matrix-file-ignored", file=own, problem=problem))
    use_additions(added)


def _is_ours(file: Path) -> bool:
    try:
        owner = file.stat().st_uid
    except OSError:
        return False
    return sys.platform == "win32" or owner == os.geteuid()


def _read(file: Path) -> Additions:
    try:
        return parse_additions(file.read_bytes(), file)
    except OSError as error:
        problem = error.strerror or error
        raise Error("matrix-file-invalid", file=file, problem=problem) from error
