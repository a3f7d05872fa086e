"""Where the password of an index comes from, asked of a real program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.credentials import Credentials
from ortgpu_fix.utils.process import Finished
from support.local_index import LocalIndex

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
INDEX = "https://me@mirror.example:8443/simple"
FILE = "https://mirror.example:8443/packages/a.whl"


class Keyring:
    """A `keyring` that knows the password of one service, and writes down what it is asked."""

    def __init__(self, folder: Path, service: str) -> None:
        self._log = folder / "keyring.log"
        self.program = folder / "keyring"
        knows = f'[ "$1 $2 $3" = "get {service} me" ] && echo s/cret'
        self.program.write_text(f'#!/bin/sh\necho "$@" >> {self._log}\n{knows}\n')
        self.program.chmod(0o755)

    def asked(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []


def test_a_password_in_the_address_is_taken_and_no_keyring_asked(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path, "mirror.example:8443")
    index = INDEX.replace("me@", "me:in%2Fthe%20address@")

    assert Credentials(str(keyring.program)).of(FILE, [index]) == ("me", "in/the address")
    assert keyring.asked() == []


def test_a_keyring_is_asked_for_the_address_first_and_then_for_the_host(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path, "mirror.example:8443")

    assert Credentials(str(keyring.program)).of(FILE, [INDEX]) == ("me", "s/cret")
    assert keyring.asked() == [
        "get https://mirror.example:8443/simple me",
        "get mirror.example:8443 me",
    ]


def test_a_keyring_is_asked_for_an_address_without_the_slash_at_its_end(tmp_path: Path) -> None:
    """So pip and uv ask, however it is written."""
    keyring = Keyring(tmp_path, "nothing")
    with LocalIndex(tmp_path) as server:
        address = f"{server.url.replace('//', '//me@')}/"
        index = Index(IndexConfig(index_url=address, keyring=str(keyring.program)))
        index.size(server.url.replace("simple", "files/a.whl"))

    assert keyring.asked()[0] == f"get {server.url} me"


def test_a_keyring_is_asked_once_whatever_it_says(tmp_path: Path) -> None:
    """It may ask the user to unlock it."""
    keyring = Keyring(tmp_path, "nothing")
    credentials = Credentials(str(keyring.program))

    assert credentials.of(FILE, [INDEX]) == credentials.of(f"{FILE}.metadata", [INDEX])
    assert len(keyring.asked()) == 2


@pytest.mark.parametrize(
    "url", ["http://mirror.example:8443/a.whl", "https://mirror.example/a.whl"]
)
def test_another_host_or_scheme_gets_nothing(tmp_path: Path, url: str) -> None:
    keyring = Keyring(tmp_path, "mirror.example:8443")

    assert Credentials(str(keyring.program)).of(url, [INDEX]) is None
    assert Credentials(None).of(url, [INDEX.replace("me@", "me:secret@")]) is None
    assert keyring.asked() == []


def test_what_a_keyring_says_when_it_fails_is_no_password(tmp_path: Path) -> None:
    keyring = tmp_path / "keyring"
    keyring.write_text("#!/bin/sh\necho no backend\nexit 1\n")
    keyring.chmod(0o755)

    assert Credentials(str(keyring)).of(FILE, [INDEX]) == ("me", "")


def test_a_keyring_has_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may ask the user to unlock it."""
    waited: list[float] = []

    def run(argv: list[str], *, timeout: float, env: dict[str, str]) -> Finished:
        assert env["PATH"]
        waited.append(timeout)
        return Finished(argv=tuple(argv), returncode=0, stdout=" a b \r\n", stderr="")

    monkeypatch.setattr("ortgpu_fix.index.credentials.run", run)

    assert Credentials(str(tmp_path)).of(FILE, [INDEX]) == ("me", " a b ")
    assert waited == [60]
