"""Name and password for an index: from its address, or from the user's keyring.

What a netrc file holds is looked up by the network library itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from threading import Lock
from urllib.parse import unquote, urlsplit

from ..utils.process import run
from .page import without_credentials

SECONDS = 60.0
"""How long a keyring may take; some ask the user to unlock them."""


class Credentials:
    """What is known of each index; a keyring is asked once."""

    def __init__(self, keyring: str | None) -> None:
        self._keyring = keyring
        self._asked: dict[tuple[str, str], str] = {}
        self._lock = Lock()

    def of(self, url: str, indexes: Iterable[str]) -> tuple[str, str] | None:
        """Return name and password of the index on whose host `url` is; None where it has none."""
        asked = urlsplit(url)
        host = asked.netloc.rpartition("@")[2]
        for address in indexes:
            index = urlsplit(address)
            where = index.netloc.rpartition("@")[2]
            if index.username and (index.scheme, where) == (asked.scheme, host):
                name = unquote(index.username)
                if index.password is None and self._keyring is not None:
                    return name, self._from_keyring(without_credentials(address), where, name)
                return name, unquote(index.password or "")
        return None

    def _from_keyring(self, address: str, host: str, name: str) -> str:
        """Ask the `keyring` program as pip and uv do: for the address, then for the host."""
        with self._lock:
            if (address, name) not in self._asked:
                self._asked[address, name] = self._ask(address, name) or self._ask(host, name)
            return self._asked[address, name]

    def _ask(self, service: str, name: str) -> str:
        try:
            said = run(
                [self._keyring or "", "get", service, name], timeout=SECONDS, env=dict(os.environ)
            )
        except OSError:
            return ""
        return said.stdout.strip("\r\n") if said.returncode == 0 else ""
