"""Where packages come from: the user's flags, else the user's uv or pip configuration."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast
from urllib.parse import urlsplit

from ..errors import Error, cause
from ..utils.programs import find_program
from ..utils.toml import tomllib
from .page import without_credentials

PYPI = "https://pypi.org/simple"
_UV_NAMES = ("index-url", "keyring-provider", "exclude-newer")
Origin = Literal["flag", "uv", "pip", "default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexConfig:
    """The indexes, and how to reach the network."""

    index_url: str = PYPI
    """The default index. It may contain credentials: show it `without_credentials`."""
    origin: Origin = "default"
    """What named the index."""
    torch_index: str | None = None
    """The address of PyTorch's own indexes, from a flag; may contain credentials."""
    tensorrt_index: str | None = None
    """The address of an index of TensorRT's libraries, likewise."""
    find_links: Path | None = None
    """A folder of wheels that is searched first."""
    offline: bool = False
    exclude_newer: str | None = None
    """uv's setting: releases that are newer than that do not count."""
    cert: str | None = None
    """A file of certificates to trust instead of the usual ones."""
    client_cert: str | None = None
    """A file with a certificate and its key, for an index that authenticates its clients."""
    proxy: str | None = None
    keyring: str | None = None
    """The `keyring` program, where pip or uv are configured to ask it for passwords."""
    timeout: str | None = None
    """Seconds without a byte after which a connection is given up, as digits."""
    retries: str | None = None
    """How often a request is repeated, as digits."""
    constraints: tuple[str, ...] = ()
    """The files of constraints that pip and uv are configured with: they count here, too."""
    trusted_hosts: frozenset[str] = frozenset()
    """Hosts, as `name` or `name:port`, whose certificates are not checked."""

    def near(self, file: str) -> Path | None:
        """Return the path of `file` in the folder of `find_links`; None where it has none."""
        path = None if self.find_links is None else self.find_links / file
        return path if path is not None and path.is_file() else None

    def absent(self, files: str) -> Error:
        """Return the error of files that are wanted offline and not here.

        It is `files-not-here` where a folder of `--find-links` lacks them, else `files-not-kept`.
        """
        if self.find_links is None:
            return Error("files-not-kept", files=files)
        return Error("files-not-here", files=files, folder=str(self.find_links))

    @property
    def flagged(self) -> tuple[str, ...]:
        """Return the addresses that a flag gives: they need not be secure."""
        index = self.index_url if self.origin == "flag" else None
        named = (index, self.torch_index, self.tensorrt_index)
        return tuple(without_credentials(url).rstrip("/") for url in named if url)


def load_index_config(
    environ: Mapping[str, str],
    *,
    index_url: str | None = None,
    torch_index: str | None = None,
    tensorrt_index: str | None = None,
    find_links: Path | None = None,
    offline: bool = False,
    prefix: Path | None = None,
) -> IndexConfig:
    """Return the configuration for these flags, the environment and the user's files.

    The order is the flag, uv's variables, pip's variables, uv's files, pip's files (among them
    that of the target environment at `prefix`), PyPI. Variables of our own stand for the other two
    flags, so that an address with credentials need not be on a command line. Files that cannot be
    read or parsed are ignored, as their own tool complains of them. An address that is neither
    https nor on this machine raises Error `index-insecure`, unless a flag gives it or its host is
    trusted; what is no address raises `index-unreachable`.
    """
    pip = _pip_settings(environ, prefix)
    uv = _uv_settings(environ)
    named: list[tuple[str | None, Origin]] = [
        (index_url, "flag"),
        (environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL"), "uv"),
        (environ.get("PIP_INDEX_URL"), "pip"),
        (uv.get("index-url"), "uv"),
        (pip.get("index-url"), "pip"),
    ]
    url, origin = next(((url, origin) for url, origin in named if url), (PYPI, "default"))
    torch_index = torch_index or environ.get("ORTGPU_FIX_TORCH_INDEX_URL")
    tensorrt_index = tensorrt_index or environ.get("ORTGPU_FIX_TENSORRT_INDEX_URL")
    for address in (url, torch_index or "", tensorrt_index or ""):
        _require_readable(address)
    rules = environ.get("PIP_CONSTRAINT") or pip.get("constraint"), environ.get("UV_CONSTRAINT")
    trusted = (
        pip.get("trusted-host"),
        environ.get("PIP_TRUSTED_HOST"),
        environ.get("UV_INSECURE_HOST"),
    )
    sources = IndexConfig(
        index_url=url,
        origin=origin,
        torch_index=torch_index,
        tensorrt_index=tensorrt_index,
        find_links=find_links,
        offline=offline,
        cert=(
            (environ.get("SSL_CERT_FILE") if origin == "uv" else None)
            or environ.get("PIP_CERT")
            or pip.get("cert")
            or environ.get("REQUESTS_CA_BUNDLE")
            or environ.get("CURL_CA_BUNDLE")
            or environ.get("SSL_CERT_FILE")
        ),
        client_cert=(
            environ.get("PIP_CLIENT_CERT")
            or pip.get("client-cert")
            or environ.get("SSL_CLIENT_CERT")
        ),
        proxy=environ.get("PIP_PROXY") or pip.get("proxy"),
        keyring=_keyring(environ, pip, uv),
        timeout=_digits(
            environ.get("UV_HTTP_TIMEOUT")
            or environ.get("PIP_DEFAULT_TIMEOUT")
            or environ.get("PIP_TIMEOUT")
            or pip.get("timeout")
        ),
        retries=_digits(
            environ.get("UV_HTTP_RETRIES") or environ.get("PIP_RETRIES") or pip.get("retries")
        ),
        constraints=tuple(dict.fromkeys(file for files in rules for file in (files or "").split())),
        exclude_newer=environ.get("UV_EXCLUDE_NEWER") or uv.get("exclude-newer"),
        trusted_hosts=frozenset(host for hosts in trusted for host in (hosts or "").split()),
    )
    if origin != "flag" and not offline:
        require_secure(url, sources)
    return sources


def _digits(text: str | None) -> str | None:
    """Return a number as uv takes it: pip has `15.5`, too."""
    whole = (text or "").strip().partition(".")[0]
    return whole if whole.isascii() and whole.isdecimal() else None


def _require_readable(url: str) -> None:
    """Raise Error `index-unreachable` for what is no address: half of an IPv6 one, an odd port."""
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise _no_address(url) from error


def _no_address(url: str) -> Error:
    why = cause("address-unreadable")
    return Error("index-unreachable", url=without_credentials(url), reason=why)


def require_secure(url: str, sources: IndexConfig) -> None:
    """Raise Error `index-insecure` where others on the network could read or change `url`.

    Raises `index-unreachable` for what names no host.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    safe = host in {"localhost", "::1"} or host.startswith("127.") or is_trusted(url, sources)
    if parts.scheme in {"https", "file"} or (parts.scheme == "http" and safe):
        return
    if not host:  # `pypi.example.org/simple`
        raise _no_address(url)
    raise Error("index-insecure", url=without_credentials(url), host=host)


def is_trusted(url: str, sources: IndexConfig) -> bool:
    """Return whether the user's configuration trusts the host of `url` without a certificate."""
    parts = urlsplit(url)
    return bool({parts.hostname, parts.netloc.rpartition("@")[2]} & sources.trusted_hosts)


def _keyring(
    environ: Mapping[str, str], pip: Mapping[str, str], uv: Mapping[str, str]
) -> str | None:
    """Return the `keyring` program where pip or uv are configured to ask it."""
    wanted = {
        environ.get("PIP_KEYRING_PROVIDER") or pip.get("keyring-provider"),
        environ.get("UV_KEYRING_PROVIDER") or uv.get("keyring-provider"),
    }
    return find_program("keyring", environ) if "subprocess" in wanted else None


def _uv_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings `_UV_NAMES` of the uv.toml files, the user's first."""
    settings: dict[str, str] = {}
    for path in () if environ.get("UV_NO_CONFIG") else _uv_files(environ):
        try:
            if path.is_fifo():  # it would be waited for
                continue
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        tables: object = document.get("index", [])
        for table in cast("list[object]", tables) if isinstance(tables, list) else []:
            if isinstance(table, dict) and table.get("default") is True:
                settings.setdefault("index-url", str(table.get("url")))
        pip = document.get("pip")
        for holder in (document, pip if isinstance(pip, dict) else {}):
            for name in _UV_NAMES:
                if isinstance(holder.get(name), str):
                    settings.setdefault(name, str(holder[name]))
    return settings


def _uv_files(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("UV_CONFIG_FILE"):
        yield Path(environ["UV_CONFIG_FILE"])
        return
    if sys.platform == "win32":
        folders = [environ.get("APPDATA"), environ.get("PROGRAMDATA")]
    else:
        home = environ.get("HOME", "")
        folders = [environ.get("XDG_CONFIG_HOME") or (home and f"{home}/.config"), "/etc"]
    yield from (Path(folder) / "uv" / "uv.toml" for folder in folders if folder)


def _pip_settings(environ: Mapping[str, str], prefix: Path | None) -> dict[str, str]:
    """Return pip's settings for installing; a file that is read later overrides the earlier."""
    settings: dict[str, str] = {}
    for path in _pip_files(environ, prefix):
        parser = configparser.RawConfigParser()
        try:
            if path.is_fifo():
                continue
            parser.read_string(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue
        for section in ("global", "install"):
            if parser.has_section(section):
                settings |= {name.replace("_", "-"): text for name, text in parser.items(section)}
    return settings


def _pip_files(environ: Mapping[str, str], prefix: Path | None) -> Iterator[Path]:
    chosen = environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return
    if sys.platform == "win32":
        name = "pip.ini"
        shared = [Path(environ["PROGRAMDATA"]) / "pip"] if "PROGRAMDATA" in environ else []
        users = [Path(environ["APPDATA"]) / "pip"] if "APPDATA" in environ else []
    else:
        name = "pip.conf"
        shared = [Path("/etc/xdg/pip"), Path("/etc")]
        home = Path(environ["HOME"]) if environ.get("HOME") else None
        users = [home / ".pip", home / ".config" / "pip"] if home else []
        if environ.get("XDG_CONFIG_HOME"):
            users[1:] = [Path(environ["XDG_CONFIG_HOME"]) / "pip"]
    folders = [*shared, *([] if chosen else users), *([prefix] if prefix else [])]
    yield from (folder / name for folder in folders)
    if chosen:
        yield Path(chosen)
