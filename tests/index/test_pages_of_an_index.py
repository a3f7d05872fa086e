"""Pages of a real index, or of what stands where one should be."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from support.local_index import Fault, LocalIndex, make_wheel

QUICK = Limits(connect=2, read=2, window=0.5, pauses=(0.01, 0.02))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalIndex]:
    make_wheel(tmp_path / "served", "one", "1.0", files={"one.bin": os.urandom(30_000)})
    with LocalIndex(tmp_path / "served") as running:
        yield running


def index(server: LocalIndex, **changes: object) -> Index:
    sources = IndexConfig(index_url=server.url, origin="flag")
    return Index(replace(sources, **changes), QUICK)  # type: ignore[arg-type]


def names(server: LocalIndex, **changes: object) -> list[str]:
    return [file.name for file in index(server, **changes).project("pypi", "one")[1]]


def failure(server: LocalIndex, **changes: object) -> Error:
    with pytest.raises(Error) as caught:
        names(server, **changes)
    return caught.value


@pytest.mark.parametrize("as_json", [False, True])
def test_a_page_names_its_files(server: LocalIndex, *, as_json: bool) -> None:
    server.behaviour.json = as_json

    assert names(server) == ["one-1.0-py3-none-any.whl"]


@pytest.mark.parametrize("fault", ["busy", "reset"])
def test_a_stumble_is_forgiven(server: LocalIndex, fault: Fault) -> None:
    server.behaviour.faults["one"] = fault
    server.behaviour.times["one"] = 2

    assert names(server) == ["one-1.0-py3-none-any.whl"]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("missing", "index-refused"),
        ("denied", "index-refused"),
        ("busy", "index-refused"),
        ("reset", "index-unreachable"),
    ],
)
def test_a_fault_that_stays_ends_it(server: LocalIndex, fault: Fault, code: str) -> None:
    server.behaviour.faults["one"] = fault

    assert failure(server).code == code


def test_a_page_without_end(server: LocalIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ortgpu_fix.index.client._MAX_PAGE", 20)

    assert failure(server).code == "index-page-unreadable"


@pytest.mark.parametrize(
    ("kind", "text"),
    [("text/html", "<html><h1>Sign in</h1></html>"), ("image/png", "x"), ("application/json", "{")],
)
def test_a_page_with_status_200_that_is_none(server: LocalIndex, kind: str, text: str) -> None:
    server.behaviour.page = (kind, text)

    assert failure(server).code == "index-page-unreadable"


def test_nobody_listens(server: LocalIndex) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://name:secret@127.0.0.1:{taken.getsockname()[1]}/simple"
        error = failure(server, index_url=url)

    assert error.code == "index-unreachable"
    assert error.values["reason"] == "Connection refused"
    assert "secret" not in str(error)


def test_somebody_listens_and_says_nothing() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/simple"
        slow = Index(IndexConfig(index_url=url), replace(QUICK, read=0.2))
        with pytest.raises(Error) as caught:
            slow.project("pypi", "one")

    assert caught.value.code == "index-unreachable"
    assert caught.value.values["reason"] == cause("no-answer-in-time")


def test_a_proxy_that_is_not_there(server: LocalIndex) -> None:
    error = failure(server, index_url="https://a.invalid/simple", proxy="http://127.0.0.1:9")

    assert error.code == "index-proxy"


def test_a_host_that_is_not_known(server: LocalIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    error = failure(server, index_url="https://no-such-host.invalid/simple")

    assert error.code == "index-unreachable"


@pytest.mark.parametrize("url", ["https://", "https://exa mple.org:port/", "gopher://x/simple"])
def test_an_address_that_is_none(server: LocalIndex, url: str) -> None:
    assert failure(server, index_url=url).code in {
        "index-unreachable",
        "index-insecure",
    }


def test_plain_http_to_elsewhere_only_where_it_is_asked_for(server: LocalIndex) -> None:
    url = "http://mirror.invalid/simple"

    assert failure(server, index_url=url, origin="pip").code == "index-insecure"
    assert failure(server, index_url=url, origin="flag").code == "index-unreachable"


def test_credentials_in_a_netrc(
    server: LocalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.behaviour.login = "name:secret"
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login name password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    assert names(server) == ["one-1.0-py3-none-any.whl"]
