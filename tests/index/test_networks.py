"""Staging through networks as companies have them, with real uv; nothing mocked.

The index speaks https with a certificate of an authority of our own, its name is known to a proxy
alone, and it wants to know who asks. What the user has configured for pip or for uv must be enough.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from networks import HOST, Certificates, Proxy
from stand import CUDA, REQUIRES, Stand

from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import load_index_config
from ortgpu_fix.utils.process import run
from ortgpu_fix.uv.program import Uv
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import find_uv

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs openssl to make certificates"
)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls") / "certificates")


LEFT = {
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
}


class Office:
    """A user's home, and the environment of a shell in it."""

    def __init__(self, home: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.stand = home, stand
        self._monkeypatch = monkeypatch
        home.mkdir()
        for name in list(os.environ):
            if name.startswith(("PIP_", "UV_", "SSL_", "VIRTUAL_ENV")) or name.upper() in LEFT:
                monkeypatch.delenv(name)
        self.set(HOME=str(home), XDG_CONFIG_HOME=str(home / ".config"), UV_NO_CACHE="1")

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    def write(self, path: str, text: str) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def apply(self, *requires: str) -> None:
        """Apply as the command does: everything is read from the environment and the home."""
        environ = dict(os.environ)
        sources = load_index_config(environ, prefix=self.stand.venv.folder)
        self.stand.apply(
            self.stand.plan(*CUDA, requires=requires),
            index=Index(sources, Limits(read=5, pauses=(0.01,))),
            uv=Uv(program=find_uv(), version="0", environ=environ, runner=run),
        )


@pytest.fixture
def office(tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> Office:
    return Office(tmp_path / "home", stand, monkeypatch)


@pytest.fixture
def inspected(
    wheels: dict[str, Path], certificates: Certificates
) -> Iterator[tuple[LocalIndex, Proxy]]:
    """An https index that wants a client's certificate, behind a proxy."""
    folder = next(iter(wheels.values())).parent
    with LocalIndex(folder, certificates.context(client=True), HOST) as index, Proxy() as proxy:
        yield index, proxy


def by_pip(office: Office, index: str, proxy: str, ours: Certificates) -> None:
    office.write(
        ".config/pip/pip.conf",
        f"[global]\nindex-url = {index}\nproxy = {proxy}\n"
        f"cert = {ours.authority}\nclient-cert = {ours.client}\n",
    )


def by_uv(office: Office, index: str, proxy: str, ours: Certificates) -> None:
    office.write(".config/uv/uv.toml", f'[[index]]\nurl = "{index}"\ndefault = true\n')
    office.set(SSL_CERT_FILE=str(ours.authority), SSL_CLIENT_CERT=str(ours.client))
    office.set(HTTPS_PROXY=proxy, https_proxy=proxy)


@pytest.mark.parametrize("configure", [by_pip, by_uv])
def test_a_proxy_an_authority_of_one_s_own_and_a_client_s_certificate(
    office: Office,
    inspected: tuple[LocalIndex, Proxy],
    certificates: Certificates,
    configure: Callable[..., None],
) -> None:
    index, proxy = inspected
    configure(office, index.url, proxy.url, certificates)

    office.apply(*REQUIRES)

    assert office.stand.names().keys() >= {"onnxruntime-gpu", "nvidia-cudnn-cu12", "protobuf"}
    assert set(proxy.asked) == {f"{HOST}:{index.port}"}


@pytest.mark.parametrize(
    ("missing", "code", "reason"),
    [
        ("PIP_CERT", "index-certificate", "self-signed certificate in certificate chain"),
        ("PIP_PROXY", "index-unreachable", ""),
    ],
)
def test_what_is_missing_is_named(  # noqa: PLR0917
    stand: Stand,
    inspected: tuple[LocalIndex, Proxy],
    certificates: Certificates,
    missing: str,
    code: str,
    reason: str,
) -> None:
    index, proxy = inspected
    environ = {
        "PIP_INDEX_URL": index.url,
        "PIP_PROXY": proxy.url,
        "PIP_CERT": str(certificates.authority),
        "PIP_CLIENT_CERT": str(certificates.client),
    }
    del environ[missing]

    sources = load_index_config(environ | {"HOME": "/nonexistent"})
    error = stand.fails(
        stand.plan(*CUDA), index=Index(sources, Limits(connect=2, read=2, pauses=(0.01,)))
    )

    assert error.code == code
    assert reason in str(error.values["reason"])


def test_a_certificate_of_another_time(stand: Stand, certificates: Certificates) -> None:
    """So it looks where the clock of the machine is wrong: the date is named."""
    folder = stand.server.folder
    environ = {"HOME": "/nonexistent", "PIP_CERT": str(certificates.authority)}
    with LocalIndex(folder, certificates.context(expired=True)) as index:
        sources = load_index_config(environ | {"PIP_INDEX_URL": index.url})
        error = stand.fails(stand.plan(*CUDA), index=Index(sources, Limits(pauses=(0.01,))))

    assert (error.code, error.values["reason"]) == (
        "index-certificate",
        "certificate has expired",
    )


def test_credentials_in_a_netrc(office: Office) -> None:
    office.stand.server.behaviour.login = "name:s/cret"
    office.write(".netrc", "machine 127.0.0.1 login name password s/cret\n").chmod(0o600)
    office.set(PIP_INDEX_URL=office.stand.server.url)

    office.apply(*REQUIRES)

    assert office.stand.names().keys() >= {"onnxruntime-gpu", "protobuf"}
    for path in office.stand.venv.folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert b"cret@" not in path.read_bytes()


def test_a_keyring_that_knows_nothing_or_is_not_there(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand.server.behaviour.login = "name:secret"
    url = stand.server.url.replace("//", "//name@")
    environ = {"HOME": "/nonexistent", "PIP_INDEX_URL": url, "PIP_KEYRING_PROVIDER": "subprocess"}
    (tmp_path / "keyring").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "keyring").chmod(0o755)
    assert load_index_config(environ | {"PATH": "/nonexistent"}).keyring is None

    sources = load_index_config(environ | {"PATH": str(tmp_path)})
    error = stand.fails(stand.plan(*CUDA), index=Index(sources))
    assert (error.code, error.values["status"]) == ("index-refused", 401)

    (tmp_path / "keyring").write_text("no program")
    error = stand.fails(stand.plan(*CUDA), index=Index(sources))
    assert error.code == "index-refused"
    monkeypatch.undo()


def test_configuration_that_would_change_what_is_installed(office: Office, tmp_path: Path) -> None:
    """Another file of the same name and version, in a folder that pip and uv are told of."""
    evil = tmp_path / "evil"
    make_wheel(evil, "onnxruntime-gpu", "1.26.0", files={"evil.py": ""})
    for place in (".config/pip/pip.conf", ".pip/pip.conf"):
        office.write(
            place,
            f"[global]\nfind-links = {evil}\n[install]\nno-binary = :all:\nuser = yes\n"
            f"target = {tmp_path / 'target'}\nno-index = yes\n",
        )
    shutil.copy(office.home / ".pip/pip.conf", office.stand.venv.folder)
    office.write(
        ".config/uv/uv.toml", f'no-binary = true\nfind-links = ["{evil}"]\nno-index=true\n'
    )
    office.set(PIP_FIND_LINKS=str(evil), UV_FIND_LINKS=str(evil), PIP_TARGET=str(tmp_path / "t"))
    office.set(PIP_INDEX_URL=office.stand.server.url)

    office.apply()

    assert office.stand.names().keys() >= {"onnxruntime-gpu"}
    assert not (office.stand.venv.site / "evil.py").exists()
    assert office.stand.venv.target().build is not None
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] == "t") == []


def test_the_user_s_own_constraints_hold_for_what_is_chosen(office: Office) -> None:
    make_wheel(office.stand.server.folder, "flatbuffers", "24.1", files={"flatbuffers/x.py": ""})
    rules = office.write("rules.txt", "flatbuffers<25\n")
    office.write(".config/pip/pip.conf", f"[global]\nconstraint = {rules}\n")
    office.set(PIP_INDEX_URL=office.stand.server.url)
    try:
        office.apply(*REQUIRES)
    finally:
        next(office.stand.server.folder.glob("flatbuffers-24.1-*")).unlink()

    assert office.stand.names()["flatbuffers"] == "24.1"


def test_no_other_index_of_the_user_s_configuration_is_asked(
    office: Office, tmp_path: Path
) -> None:
    make_wheel(tmp_path / "more", "flatbuffers", "99.0", files={"evil.py": ""})
    with LocalIndex(tmp_path / "more") as more:
        office.write(
            ".config/pip/pip.conf",
            f"[global]\nindex-url = {office.stand.server.url}\nextra-index-url = {more.url}\n",
        )
        office.write(".config/uv/uv.toml", f'[[index]]\nname = "more"\nurl = "{more.url}"\n')
        office.set(UV_EXTRA_INDEX_URL=more.url, UV_INDEX=more.url, PIP_EXTRA_INDEX_URL=more.url)
        office.apply(*REQUIRES)

        assert more.behaviour.requests == []
    assert office.stand.names()["flatbuffers"] == "25.9.23"
