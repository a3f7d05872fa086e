"""Pages, names and servers that mean harm, or are odd."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ortgpu_fix.data_files import example_machine
from ortgpu_fix.errors import Error, cause
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.facts.wheel_tags import tags_of
from ortgpu_fix.index.client import Index, Limits, TransferStopped
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.download import download
from ortgpu_fix.index.page import parse_index_page
from ortgpu_fix.plan.wheels import Pinned, Wheel
from ortgpu_fix.uv.indexes import Indexes
from ortgpu_fix.uv.output import parse_uv_output
from ortgpu_fix.uv.project import Question

BASE = "https://example.org/simple/a/"
DIGEST = "0" * 64
ESCAPES = [
    "..%2F..%2Fa-1-py3-none-any.whl",
    "..%5C..%5Ca-1-py3-none-any.whl",
]


@pytest.mark.parametrize("name", ESCAPES)
def test_a_name_with_a_folder_in_it_is_a_name(name: str) -> None:
    (file,) = parse_index_page("text/html", f'<a href="{name}">x</a>', BASE)
    assert file.name == "a-1-py3-none-any.whl"

    rows = [{"filename": "../../a-1-py3-none-any.whl", "url": name}]
    (file,) = parse_index_page("application/json", json.dumps({"files": rows}), BASE)
    assert file.name == "a-1-py3-none-any.whl"

    url = f"https://example.org/{name}"
    lock = (
        f'packages = [{{name="a", version="1", wheels=[{{url="{url}", hashes={{sha256="0"}}}}]}}]'
    )
    tags = tuple(tags_of(from_json(example_machine())))
    question = Question(wheels=(), version="3.11.7", tags=tags)
    (pinned,) = parse_uv_output(lock, Path("/"), question, Indexes("https://a.org/simple"))
    assert pinned.wheel.file == "a-1-py3-none-any.whl"


@pytest.mark.parametrize("name", ["../a.whl", "a\\b.whl", "", "a\0.whl"])
def test_a_name_that_is_a_path_is_not_downloaded(tmp_path: Path, name: str) -> None:
    wheel = Wheel(name="a", version="1", index_url="pypi", file=name, size=1, sha256=DIGEST)
    folder = tmp_path / "stage"

    with pytest.raises(Error, match="wheel-escapes"):
        download(Index(IndexConfig()), Pinned(wheel, "https://example.org/a.whl"), folder)

    assert list(tmp_path.iterdir()) == []


DEEP = "[" * 100_000
PAGES = {
    "deep": DEEP,
    "numbers": '{"files": [{"filename": 1, "url": 2}]}',
    "long-number": f'{{"files": [{{"filename": "a", "url": "b", "size": {"9" * 9999}}}]}}',
    "null": "null",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_another_shape_is_unreadable(name: str) -> None:
    with pytest.raises(Error, match="index-page-unreadable"):
        parse_index_page("application/json", PAGES[name], BASE)


def test_odd_values_of_a_page_count_as_absent() -> None:
    row = {"filename": "a-1-py3-none-any.whl", "url": "x", "size": -1, "hashes": {"sha256": "../x"}}
    nothing = {"filename": "..", "url": "x"}
    page = json.dumps({"files": [row, nothing]})

    (file,) = parse_index_page("application/json", page, BASE)

    assert (file.size, file.sha256) == (None, None)
    html = '<base href="http://["><a href="a-1-py3-none-any.whl">a</a>'
    assert parse_index_page("text/html", html, BASE)[0].url.startswith(BASE)


@contextlib.contextmanager
def sending(begin: bytes, piece: bytes, pause: float, count: int | None = None) -> Iterator[str]:
    """Run a server that sends `piece` again and again, `count` times or without end."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(1 << 16)  # what is closed unread is reset, with what was sent
                    connection.sendall(begin)
                    for _ in itertools.count() if count is None else range(count):
                        if stop.wait(pause):
                            return
                        connection.sendall(piece)
                except OSError:
                    return

        def serve() -> None:
            while not stop.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=drip, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/simple"
        stop.set()
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_what_arrives_in_small_pieces_is_not_too_slow_where_they_are_many() -> None:
    """A thousand bytes each are too few for a window; those of a window together are enough."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n"
    with sending(head, b"x" * 1000, 0.001, 500) as address:
        limits = Limits(window=0.3, floor=10_000, pauses=())
        index = Index(IndexConfig(index_url=address, origin="flag"), limits)
        with index.read(address) as (start, pieces):
            assert (start, sum(map(len, pieces))) == (0, 500_000)


def test_headers_that_never_end_are_given_up() -> None:
    limits = Limits(answer=0.3, pauses=(0.01,))
    began = time.monotonic()

    with sending(b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.02) as address:
        index = Index(IndexConfig(index_url=address, origin="flag"), limits)
        with pytest.raises(Error) as caught:
            index.project("pypi", "a")

    assert (caught.value.code, caught.value.values["reason"]) == (
        "index-unreachable",
        cause("no-answer-in-time"),
    )
    assert time.monotonic() - began < 10


def test_who_waits_for_an_answer_is_stopped_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during `matrix --update` was heard when the index had been given up."""
    ended, closed = threading.Event(), set[str]()

    def late(*_: object, **__: object) -> object:
        ended.wait(20)
        return SimpleNamespace(close=lambda: closed.add("response"))

    monkeypatch.setattr("requests.Session.request", late)
    monkeypatch.setattr("requests.Session.close", lambda _: closed.add("session"))
    index = Index(IndexConfig(index_url="https://example.org/simple"))
    began = time.monotonic()
    threading.Timer(0.2, index.stop.set).start()

    with pytest.raises(TransferStopped):
        index.project("pypi", "a")

    assert time.monotonic() - began < 5
    ended.set()
    while len(closed) < 2 and time.monotonic() - began < 20:
        time.sleep(0.01)
    assert closed == {"response", "session"}
