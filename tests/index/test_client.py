"""What is sent to an index, and what each of its answers means; no server: every answer is made."""

from __future__ import annotations

import http.client
import io
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
import requests
import urllib3

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.index import client
from ortgpu_fix.index.client import Index, Limits, TransferStopped
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.network_errors import TransferInterrupted
from ortgpu_fix.utils.background_call import BackgroundCall

T = TypeVar("T")

BASE = "https://example.org/simple"
FILE = "https://example.org/files/a-1-py3-none-any.whl"
JSON = "application/vnd.pypi.simple.v1+json"
Answer = Callable[[], requests.Response]


def answer(status: int = 200, body: bytes = b"", **headers: str) -> Answer:
    def make() -> requests.Response:
        made = requests.Response()
        made.status_code, made.raw, made.url = status, io.BytesIO(body), f"{BASE}/a/"
        made.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        return made

    return make


class Network:
    """Gives the answers one after the other, the last again and again; remembers the questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[Answer] = [answer()]
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.sessions: set[int] = set()
        self._kept: list[object] = []

        def request(session: object, method: str, url: str, **more: Any) -> requests.Response:
            self._kept.append(session)
            self.sessions.add(id(session))
            self.asked.append((method, url, more))
            return (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])()

        monkeypatch.setattr(requests.Session, "request", request)

    @property
    def last(self) -> dict[str, Any]:
        return self.asked[-1][2]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    return Network(monkeypatch)


def index(*pauses: float, **sources: Any) -> Index:
    return Index(IndexConfig(**{"index_url": BASE, **sources}), Limits(pauses=pauses))


def body_of(asked: Index, start: int = 0) -> tuple[int, bytes]:
    with asked.read(FILE, start) as (begins, pieces):
        return begins, b"".join(pieces)


def test_a_file_is_asked_for(network: Network) -> None:
    network.answers = [answer(body=b"abc")]

    assert body_of(Index(IndexConfig(index_url=BASE))) == (0, b"abc")
    [(method, url, more)] = network.asked
    assert (method, url) == ("GET", FILE)
    assert more == {
        "allow_redirects": True,  # files lie elsewhere
        "headers": {"Accept-Encoding": "identity"},  # the bytes are counted and hashed as they are
        "stream": True,  # as they arrive, not when all are here
        "timeout": (10, 20),  # seconds for a connection, and between two pieces
        "verify": True,
        "cert": None,
        "proxies": None,
        "auth": None,
    }


@pytest.mark.parametrize(
    ("sources", "sent"),
    [
        ({"cert": "/a.pem"}, {"verify": "/a.pem"}),
        ({"cert": "/a.pem", "trusted_hosts": frozenset({"example.org"})}, {"verify": False}),
        ({"client_cert": "/c.pem"}, {"cert": "/c.pem"}),
        ({"proxy": "http://p"}, {"proxies": {"http": "http://p", "https": "http://p"}}),
        ({"index_url": "https://me:s%2Ft@example.org/simple"}, {"auth": ("me", "s/t")}),
        ({"tensorrt_index": "https://me:t@example.org/"}, {"auth": ("me", "t")}),
        ({"index_url": "https://me:s@other.org/simple"}, {"auth": None}),
    ],
)
def test_what_the_user_configured_is_used(
    network: Network, sources: dict[str, Any], sent: dict[str, object]
) -> None:
    body_of(index(**sources))

    assert {name: network.last[name] for name in sent} == sent


def test_an_index_that_a_wheel_names_has_its_own_credentials(network: Network) -> None:
    network.answers = [answer(body=b'{"files": []}', Content_Type=JSON)]
    asked = index()

    body_of(asked)
    assert network.last["auth"] is None
    asked.project("https://me:pw@example.org/whl/", "a")
    assert network.asked[-1][1] == "https://me:pw@example.org/whl/a/"
    body_of(asked)
    assert network.last["auth"] == ("me", "pw")


def test_only_what_a_flag_names_need_not_be_secure(network: Network) -> None:
    plain = "http://example.org/simple"
    for sources in (
        {"index_url": plain, "origin": "flag"},
        {"torch_index": "http://example.org"},
        {"trusted_hosts": frozenset({"example.org"})},
    ):
        with index(**sources).read(f"{plain}/a"):
            assert network.asked.pop()[1] == f"{plain}/a"
    for sources in ({}, {"index_url": plain}, {"torch_index": "http://example.org/whl"}):
        with pytest.raises(Error, match="index-insecure"), index(**sources).read(f"{plain}/a"):
            pass
    assert network.asked == []


@pytest.mark.parametrize(
    ("start", "answered", "expected"),
    [
        (0, answer(body=b"abcdef"), (0, b"abcdef")),
        (3, answer(206, b"def", Content_Range="bytes 3-5/6"), (3, b"def")),
        (3, answer(200, b"abcdef"), (0, b"abcdef")),  # cannot resume
        (9, answer(416, b"no such range"), (-1, b"")),  # the file is shorter
    ],
)
def test_where_the_bytes_begin(
    network: Network, start: int, answered: Answer, expected: tuple[int, bytes]
) -> None:
    network.answers = [answered]

    assert body_of(index(), start) == expected
    assert network.last["headers"].get("Range") == (f"bytes={start}-" if start else None)


@pytest.mark.parametrize(
    ("start", "answered", "status"),
    [
        (3, answer(206, b"", Content_Range="bytes 30-35/36"), cause("range-other")),
        (3, answer(206, b""), cause("range-other")),
        (0, answer(416), 416),
        (0, answer(404), 404),
    ],
)
def test_an_answer_that_is_none(
    network: Network, start: int, answered: Answer, status: object
) -> None:
    network.answers = [answered]

    with pytest.raises(Error) as caught:
        body_of(index(), start)

    assert caught.value.code == "index-refused"
    assert caught.value.values == {"url": FILE, "status": status}


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited, each time; a thread of another test waits as it did."""
    seconds: list[float] = []
    mine, really_wait = threading.get_ident(), threading.Event.wait

    def wait(event: threading.Event, timeout: float | None = None) -> bool:
        if timeout is None or threading.get_ident() != mine:
            return really_wait(event, timeout)
        seconds.append(timeout)
        return False

    monkeypatch.setattr("threading.Event.wait", wait)
    return seconds


def test_three_tries_with_pauses(waited: list[float]) -> None:
    last = Error("index-refused", url="u", status=503)
    tries: list[int] = []

    def step() -> None:
        tries.append(1)
        raise TransferInterrupted(last)

    with pytest.raises(Error) as caught:
        Index(IndexConfig()).retry(step)

    assert caught.value is last
    assert (len(tries), waited) == (3, [0.5, 2.0])


def test_who_gets_on_has_as_many_tries_again(waited: list[float]) -> None:
    """Bytes come in the first, second and fourth try: each time it counts anew."""
    have = [0, 10, 20, 20, 30, 30, 30]
    tries: list[int] = []

    def step() -> None:
        tries.append(1)
        raise TransferInterrupted(Error("index-unreachable", url="u", reason="r"))

    with pytest.raises(Error):
        Index(IndexConfig()).retry(step, lambda: have[len(tries)])

    assert len(tries) == 6
    assert waited == [0.5, 0.5, 2.0, 0.5, 2.0]


def test_who_is_stopped_while_nobody_answers_tells_no_reason_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The download that failed is why it ends; "no answer in time" was told instead of it."""
    monkeypatch.setattr("requests.Session.request", lambda *_, **__: time.sleep(1))
    asked = Index(IndexConfig(), Limits(pauses=()))  # so that this try is the last
    asked.stop.set()

    with pytest.raises(TransferStopped):
        asked.project("pypi", "a")


class Slow(io.RawIOBase):
    """Pieces that arrive at times of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rows: Iterable[tuple[float, int]]) -> None:
        self._rows, self._now = iter(rows), 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self._now)

    def read1(self, _: int) -> bytes:
        self._now, size = next(self._rows, (self._now, 0))
        return b"x" * size


@pytest.mark.parametrize(
    ("rows", "speed"),
    [
        ([(59.9, 0), (60, 1)], None),
        ([(60, 4096 * 60)], None),
        ([(60, 4096 * 60 - 1)], 4095),
        ([(30, 1), (64, 639)], 10),
        ([(60, 10**6), (119, 5), (120, 5)], 0),
    ],
)
def test_too_slow_is_less_than_four_kibibytes_a_second_over_a_minute(
    network: Network, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[float, int]], speed: object
) -> None:
    def slow() -> requests.Response:
        made = answer()()
        made.raw = Slow(monkeypatch, rows)
        return made

    network.answers = [slow]
    asked = Index(IndexConfig(index_url=BASE))
    if speed is None:
        body_of(asked)
    else:
        with pytest.raises(Error) as caught:
            body_of(asked)
        assert caught.value.code == "download-too-slow"
        assert caught.value.values == {"url": FILE, "speed": speed}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            urllib3.exceptions.ProtocolError("x", OSError(104, "Connection reset by peer")),
            "Connection reset by peer",
        ),
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
        (http.client.IncompleteRead(b""), cause("connection-broken")),
    ],
)
def test_a_transfer_that_breaks_off_may_go_on(
    network: Network, error: Exception, reason: str
) -> None:
    class Broken(io.RawIOBase):
        def read1(self, _: int) -> bytes:
            raise error

    def broken() -> requests.Response:
        made = answer()()
        made.raw = Broken()
        return made

    network.answers = [broken]
    with pytest.raises(TransferInterrupted) as caught:
        body_of(index())

    assert caught.value.error.code == "index-unreachable"
    assert caught.value.error.values == {"url": FILE, "reason": reason}


def test_a_server_that_does_not_begin_is_given_up_and_its_connection_left(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[float] = []

    class Late(BackgroundCall[T]):
        def result(self, seconds: float = 0, stop: threading.Event | None = None) -> T:
            allowed.append(seconds)
            answered = super().result(seconds, stop)
            if len(allowed) == 1:
                raise TimeoutError
            return answered

    monkeypatch.setattr(client, "BackgroundCall", Late)
    asked = Index(IndexConfig(index_url=BASE))
    with pytest.raises(TransferInterrupted) as caught:
        body_of(asked)
    assert caught.value.error.values == {"url": FILE, "reason": cause("no-answer-in-time")}

    body_of(asked)
    assert len(network.sessions) == 2
    body_of(asked)
    assert len(network.sessions) == 2  # connections are used again
    assert allowed == [60, 60, 60]


@pytest.mark.parametrize(
    ("answered", "size"),
    [
        (answer(Content_Length="7"), 7),
        (answer(Content_Length="-7"), 0),
        (answer(Content_Length="²"), 0),
        (answer(Content_Length="7" * 5000), 0),
        (answer(404, Content_Length="7"), 0),
    ],
)
def test_a_size_is_what_the_server_says(network: Network, answered: Answer, size: int) -> None:
    network.answers = [answered]

    assert index().size(FILE) == size
    assert network.asked[0][0] == "HEAD"  # not the file itself


def test_a_part_of_a_file(network: Network) -> None:
    network.answers = [answer(503), answer(206, b"tail", Content_Range="bytes 6-9/10")]

    assert index(0).read_part(FILE, "-4") == (b"tail", 10)
    assert network.last["headers"]["Range"] == "bytes=-4"


@pytest.mark.parametrize(
    "answered",
    [
        answer(200, b"all of it", Content_Range="bytes 0-8/9"),
        answer(206, b"tail", Content_Range="bytes 6-9/²"),
    ],
)
def test_a_server_that_has_no_parts(network: Network, answered: Answer) -> None:
    network.answers = [answered]

    with pytest.raises(Error) as caught:
        index().read_part(FILE, "-4")

    assert (caught.value.code, caught.value.values) == ("index-without-ranges", {"url": FILE})


PAGE = f'{{"files": [{{"filename": "a-1-py3-none-any.whl", "url": "{FILE}"}}]}}'.encode()


def test_a_page_is_asked_for_once(network: Network) -> None:
    network.answers = [answer(504), answer(body=PAGE, Content_Type=JSON)]
    asked = index(0, index_url="https://me:pw@example.org/simple/")

    for _ in range(2):
        page, [file] = asked.project("pypi", "a b")
        assert (page, file.url) == (f"{BASE}/a%20b/", FILE)
    asked.project("https://other.org/simple", "a b")

    assert [url for _, url, _ in network.asked] == [
        "https://me:pw@example.org/simple/a%20b/",
        "https://me:pw@example.org/simple/a%20b/",
        "https://other.org/simple/a%20b/",
    ]
    assert network.last["headers"]["Accept"].startswith(JSON)  # which has the sizes


@pytest.mark.parametrize(("most", "fits"), [(len(PAGE), True), (len(PAGE) - 1, False)])
def test_a_page_has_an_end(
    network: Network, monkeypatch: pytest.MonkeyPatch, most: int, *, fits: bool
) -> None:
    assert client._MAX_PAGE == 128 << 20  # PyPI's longest have some MiB
    monkeypatch.setattr(client, "_MAX_PAGE", most)
    network.answers = [answer(body=PAGE, Content_Type=JSON)]

    if fits:
        assert index().project("pypi", "a")[1]
    else:
        with pytest.raises(Error) as caught:
            index().project("pypi", "a")
        assert caught.value.values == {"url": f"{BASE}/a/", "problem": cause("page-endless")}
