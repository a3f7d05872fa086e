"""Downloads by the addresses of a lock, from a real server that misbehaves in the ways they do."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from other_user import closed, with_others

from ortgpu_fix.errors import Error
from ortgpu_fix.index import download as downloads
from ortgpu_fix.index.client import Index, Limits, TransferStopped
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.download import download_all
from ortgpu_fix.index.network_errors import TransferInterrupted
from ortgpu_fix.plan.wheels import Pinned, Wheel
from ortgpu_fix.utils.progress import silent
from support.local_index import Fault, LocalIndex, make_wheel
from support.standin_wheels import as_wheel

QUICK = Limits(connect=2, read=2, window=0.5, pauses=(0.01, 0.02))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalIndex]:
    folder = tmp_path / "served"
    for name in ("one", "two", "three"):
        make_wheel(folder, name, "1.0", files={f"{name}.bin": os.urandom(30_000)})
    with LocalIndex(folder) as running:
        yield running


def pinned(server: LocalIndex) -> list[Pinned]:
    base = server.url.removesuffix("simple") + "files/"
    paths = sorted(server.folder.glob("*.whl"))
    return [Pinned(as_wheel(path), f"{base}{path.name}") for path in paths]


def index(server: LocalIndex, **changes: object) -> Index:
    sources = IndexConfig(index_url=server.url, origin="flag")
    return Index(replace(sources, **changes), QUICK)  # type: ignore[arg-type]


def failure(server: LocalIndex, into: Path, **changes: object) -> Error:
    with pytest.raises(Error) as caught:
        download_all(index(server, **changes), pinned(server), into, silent)
    return caught.value


@pytest.mark.parametrize("fault", ["reset", "truncated"])
def test_a_stumble_is_forgiven(server: LocalIndex, tmp_path: Path, fault: Fault) -> None:
    file = "one-1.0-py3-none-any.whl"
    server.behaviour.faults[file] = fault
    server.behaviour.times[file] = 2

    download_all(index(server), pinned(server), tmp_path, silent)

    assert len(list(tmp_path.glob("*.whl"))) == 3


def test_a_long_file_over_a_poor_network_arrives(server: LocalIndex, tmp_path: Path) -> None:
    """Every try brings a half of what is missing: more tries than an index without progress has."""
    pin = pinned(server)[0]
    wheel = pin.wheel
    server.behaviour.faults[wheel.file] = "truncated"
    server.behaviour.times[wheel.file] = 9

    download_all(index(server), [pin], tmp_path, silent)

    assert len(server.behaviour.requests) == 10


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("denied", "index-refused"),
        ("reset", "index-unreachable"),
        ("other-bytes", "download-hash-mismatch"),
        ("trickle", "download-too-slow"),
    ],
)
def test_a_fault_that_stays_ends_it(
    server: LocalIndex, tmp_path: Path, fault: Fault, code: str
) -> None:
    file = "one-1.0-py3-none-any.whl"
    server.behaviour.faults[file] = fault
    server.behaviour.no_ranges = fault == "reset"
    began = time.monotonic()

    assert failure(server, tmp_path).code == code
    assert time.monotonic() - began < 40
    assert not (tmp_path / file).exists()


def test_a_folder_with_another_file_of_that_name(server: LocalIndex, tmp_path: Path) -> None:
    near = tmp_path / "near" / "one-1.0-py3-none-any.whl"
    near.parent.mkdir()
    near.write_bytes(b"other")
    pin = pinned(server)[0]._replace(url=near.as_uri())

    with pytest.raises(Error, match="download-hash-mismatch"):
        download_all(index(server), [pin], tmp_path / "into", silent)
    assert list((tmp_path / "into").iterdir()) == []
    near.unlink()
    with pytest.raises(Error, match="file-not-on-index"):
        download_all(index(server), [pin], tmp_path / "into", silent)


@with_others
def test_a_folder_that_this_user_may_not_look_into(server: LocalIndex) -> None:
    asked = index(server), pinned(server)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with closed(Path(folder, "into")) as into, pytest.raises(Error, match="disk-failed"):
            download_all(*asked, into, silent)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_ends_it_soon_and_the_rest_is_kept(server: LocalIndex, tmp_path: Path) -> None:
    """The main thread is interrupted while an endless file trickles in."""
    server.behaviour.faults = dict.fromkeys((pin.wheel.file for pin in pinned(server)), "trickle")
    patient = Index(index(server).sources, replace(QUICK, window=60))
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        download_all(patient, pinned(server), tmp_path, silent)

    assert time.monotonic() - began < 30
    assert list(tmp_path.glob("*.part"))


BYTES = b"0123456789"
URL = "https://me:secret@example.org/a.whl?token=x"


def pin(name: str = "a", content: bytes = BYTES, size: int | None = None) -> Pinned:
    wheel = Wheel(
        name=name,
        version="1",
        index_url="pypi",
        file=f"{name}.whl",
        size=len(content) if size is None else size,
        sha256=hashlib.sha256(content).hexdigest(),
    )
    return Pinned(wheel, URL)


class Served:
    """An index whose file is `content`, in pieces of three bytes; what it is asked is kept."""

    def __init__(self, content: bytes = BYTES, *, ranges: bool = True, **sources: Any) -> None:
        self.sources, self.stop = IndexConfig(**sources), threading.Event()
        self.content, self._ranges = content, ranges
        self.asked: list[tuple[str, int]] = []
        self.pieces = 0

    def retry(self, step: Callable[[], str], _moved: Callable[[], int]) -> str:
        return step()

    @contextlib.contextmanager
    def read(self, url: str, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        self.asked.append((url, start))
        begin = start if self._ranges else 0
        if begin > len(self.content):
            yield -1, iter(())
        else:
            yield begin, self._rows(begin)

    def _rows(self, begin: int) -> Iterator[bytes]:
        for at in range(begin, len(self.content), 3):
            self.pieces += 1
            yield self.content[at : at + 3]

    def bring(self, into: Path, *wheels: Pinned) -> list[tuple[int, int, str, int, int]]:
        """Download, and return what was told."""
        told: list[tuple[int, int, str, int, int]] = []

        def progress(code: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
            assert code == "download"
            row = cast("dict[str, Any]", values)
            told.append((done, total, row["file"], row["have"], row["size"]))

        asked = wheels or (pin(),)
        paths = download_all(cast("Index", self), asked, into, progress)
        assert paths == tuple(into / one.wheel.file for one in asked)
        assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths] == [
            one.wheel.sha256 for one in asked
        ]
        return told


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_there_is_no_download(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(BYTES)
    served = Served()

    assert served.bring(tmp_path) == [(10, 10, "a.whl", 10, 10)]
    assert served.asked == []


@pytest.mark.parametrize(
    ("there", "ranges", "asked"),
    [
        (b"0123", True, [4]),
        (b"0123", False, [4]),
        (b"01?3", True, [4, 0]),  # the part of an earlier run is wrong: once more, and anew
        (BYTES, True, []),
        (b"?" * 10, True, [0]),
        (b"?" * 11, True, [0]),
    ],
)
def test_a_part_of_an_earlier_run(
    tmp_path: Path, there: bytes, asked: list[int], *, ranges: bool
) -> None:
    (tmp_path / "a.whl.part").write_bytes(there)
    served = Served(ranges=ranges)

    served.bring(tmp_path)

    assert [start for _, start in served.asked] == asked
    assert names(tmp_path) == ["a.whl"]


def test_another_file_is_refused_after_two_tries(tmp_path: Path) -> None:
    served = Served(b"abcdefghij")

    with pytest.raises(Error) as caught:
        served.bring(tmp_path)

    assert caught.value.code == "download-hash-mismatch"
    assert caught.value.values == {"file": "a.whl", "url": "https://example.org/a.whl"}
    assert len(served.asked) == 2
    assert names(tmp_path) == []


def test_of_a_file_that_is_longer_no_more_is_read_than_shows_it(tmp_path: Path) -> None:
    served = Served(BYTES * 1000)

    with pytest.raises(Error, match="download-hash-mismatch"):
        served.bring(tmp_path)

    assert served.pieces == 2 * 4  # twelve bytes, twice


def test_a_file_that_is_shorter_may_be_whole_next_time(tmp_path: Path) -> None:
    with pytest.raises(TransferInterrupted) as caught:
        Served(BYTES[:9]).bring(tmp_path)

    assert caught.value.error.code == "download-truncated"
    assert caught.value.error.values == {"file": "a.whl", "url": "https://example.org/a.whl"}
    assert (tmp_path / "a.whl.part").read_bytes() == BYTES[:9]


PINNED = [pin(f"w{at}") for at in range(40)]


def replaced(monkeypatch: pytest.MonkeyPatch, step: Callable[[Pinned], Path]) -> None:
    """Do `step` instead of each download."""
    monkeypatch.setattr(downloads, "download", lambda _, one, *__: step(one))


def test_four_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    four, lock = threading.Barrier(4, timeout=20), threading.Lock()
    active: set[str] = set()
    most: list[int] = []

    def step(one: Pinned) -> Path:
        with lock:
            active.add(one.wheel.file)
            most.append(len(active))
        four.wait()
        with lock:
            active.remove(one.wheel.file)
        return tmp_path / one.wheel.file

    replaced(monkeypatch, step)
    served = cast("Index", Served())
    download_all(served, PINNED, tmp_path, silent)

    assert max(most) == 4
    assert not served.stop.is_set()  # the index is used again


def test_the_first_that_fails_ends_the_others_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served()
    begun: list[str] = []
    four = threading.Barrier(4, timeout=20)

    def step(one: Pinned) -> Path:
        begun.append(one.wheel.name)
        if one in PINNED[:4]:
            four.wait()
        if one.wheel.name == "w2":
            raise Error("file-not-on-index", file=one.wheel.file, url="u")
        assert served.stop.wait(20)
        raise TransferStopped

    replaced(monkeypatch, step)
    with pytest.raises(Error, match="file-not-on-index"):
        download_all(cast("Index", served), PINNED, tmp_path, silent)

    assert len(begun) < len(PINNED)
    assert not served.stop.is_set()  # the index is used again


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of Unix")
@pytest.mark.parametrize("kind", ["link", "shared", "pipe"])
def test_a_planted_part_is_neither_followed_nor_waited_for(tmp_path: Path, kind: str) -> None:
    """In a folder of `download -d`, the document that it led to was written over."""
    document, into = tmp_path / "document", tmp_path / "into"
    document.write_bytes(BYTES[:4])
    into.mkdir()
    planted = into / "a.whl.part"
    if kind == "pipe":
        os.mkfifo(planted)
    elif kind == "link":
        planted.symlink_to(document)
    else:
        planted.hardlink_to(document)
    served = Served()

    served.bring(into)

    assert document.read_bytes() == BYTES[:4]
    assert names(into) == ["a.whl"]
    assert not (into / "a.whl").is_symlink()
    assert served.asked == [(URL, 0)]
