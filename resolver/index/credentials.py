"""Name and password for an index: from its address, or from the user's keyring.

requests itself reads netrc files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from threading import Lock
from urllib.parse import unquote, urlsplit

from ..utils.child_environment import child_environment
from ..utils.process import run
from .page import without_credentials

SECONDS = 60.0
"""The longest wait for a keyring, which may ask the user to unlock it."""


class Credentials:
    """The credentials of each index; a keyring is asked once."""

    def __init__(self, keyring: str | None) -> None:
        self._keyring = keyring
        self._passwords: dict[tuple[str, str], str] = {}
        self._lock = Lock()

    def of(self, url: str, indexes: Iterable[str]) -> tuple[str, str] | None:
        """Return name and password of the index on whose host `url` is; None where it has none."""
        scheme, host = _scheme_and_host(url)
        for address in indexes:
            index = urlsplit(address)
            if index.username and _scheme_and_host(address) == (scheme, host):
                name = unquote(index.username)
                if index.password is None and self._keyring is not None:
                    shown = without_credentials(address)
                    return name, self._from_keyring(self._keyring, shown, host, name)
                return name, unquote(index.password or "")
        return None

    def _from_keyring(self, keyring: str, address: str, host: str, name: str) -> str:
        """Ask the `keyring` program as pip and uv do: for the address, then for the host."""
        with self._lock:
            if (address, name) not in self._passwords:
                found = _ask(keyring, address, name) or _ask(keyring, host, name)
                self._passwords[address, name] = found
            return self._passwords[address, name]


def _ask(keyring: str, service: str, name: str) -> str:
    try:
        env = child_environment(os.environ, "index")
        reply = run([keyring, "get", service, name], timeout=SECONDS, env=env)
    except OSError:
        return ""
    return reply.stdout.strip("\r\n") if reply.returncode == 0 else ""


def _scheme_and_host(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2]
