"""One download by itself: what is asked for, told, kept and left; no server."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.index import download
from ortgpu_fix.index.client import Index, TransferStopped
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.download import download_all, download_one
from ortgpu_fix.index.network_errors import TransferInterrupted
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.progress import silent

BYTES = b"0123456789"
URL = "https://me:secret@example.org/a.whl?token=x"


def wheel(name: str = "a", content: bytes = BYTES, size: int | None = None) -> Wheel:
    return Wheel(
        name=name,
        version="1",
        index_url="pypi",
        file=f"{name}.whl",
        size=len(content) if size is None else size,
        sha256=hashlib.sha256(content).hexdigest(),
    )


class Served:
    """An index whose file is `content`, in pieces of three bytes; what it is asked is kept."""

    def __init__(self, content: bytes = BYTES, *, ranges: bool = True, **sources: Any) -> None:
        self.sources, self.stop = IndexConfig(**sources), threading.Event()
        self.content, self._ranges = content, ranges
        self.asked: list[tuple[str, int]] = []
        self.pieces = 0

    def find(self, _: Wheel) -> str:
        return URL

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

    def bring(
        self, into: Path, *wheels: Wheel, urls: dict[str, str] | None = None
    ) -> list[tuple[int, int, str, int, int]]:
        """Download, and return what was told."""
        told: list[tuple[int, int, str, int, int]] = []

        def progress(code: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
            assert code == "download"
            row = cast("dict[str, Any]", values)
            told.append((done, total, row["file"], row["have"], row["size"]))

        asked = wheels or (wheel(),)
        paths = download_all(cast("Index", self), asked, into, progress, urls)
        assert paths == tuple(into / one.file for one in asked)
        assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths] == [
            one.sha256 for one in asked
        ]
        return told


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_each_piece_is_told(tmp_path: Path) -> None:
    assert Served().bring(tmp_path / "not" / "there") == [
        (have, 10, "a.whl", have, 10) for have in (3, 6, 9, 10)
    ]
    assert names(tmp_path / "not" / "there") == ["a.whl"]


def test_of_several_files_the_sum_is_told(tmp_path: Path) -> None:
    told = Served().bring(tmp_path, wheel("a"), wheel("b"))

    assert told[-1][:2] == (20, 20)
    assert {row[1] for row in told} == {20}


def test_what_is_there_is_no_download(tmp_path: Path) -> None:
    """It read `Nothing to download` and then `Downloading 2.0 GB`."""
    (tmp_path / "a.whl").write_bytes(BYTES)
    served = Served()

    assert served.bring(tmp_path) == []
    assert served.asked == []


@pytest.mark.parametrize("content", [b"", b"of an earlier release"])
def test_what_is_there_and_is_another_file_is_brought_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.whl").write_bytes(content)
    served = Served()

    served.bring(tmp_path)

    assert served.asked == [(URL, 0)]
    with pytest.raises(Error, match="files-not-here"):
        Served(offline=True).bring(tmp_path, wheel(content=b"another"))


@pytest.mark.parametrize("offline", [False, True])
def test_what_lies_near_is_copied(tmp_path: Path, *, offline: bool) -> None:
    near = tmp_path / "near"
    near.mkdir()
    (near / "a.whl").write_bytes(BYTES)
    served = Served(find_links=near, offline=offline)

    assert served.bring(tmp_path / "into") == []
    assert served.asked == []
    assert names(tmp_path / "into") == ["a.whl"]
    assert (tmp_path / "into" / "a.whl").stat().st_nlink == 1


def test_another_file_of_that_name_near_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    near = tmp_path / "near"
    near.mkdir()
    (near / "a.whl").write_bytes(b"other")

    with pytest.raises(Error) as caught:
        Served(find_links=near).bring(tmp_path / "into")

    assert caught.value.code == "download-hash-mismatch"
    assert caught.value.values == {"file": "a.whl", "url": str(near / "a.whl")}
    assert names(tmp_path / "into") == []


@pytest.mark.parametrize("offline", [False, True])
def test_what_is_kept_is_taken(tmp_path: Path, *, offline: bool) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "a.whl").write_bytes(BYTES)

    assert Served(kept=kept, offline=offline).bring(tmp_path / "into") == []
    assert names(tmp_path / "into") == ["a.whl"]


@pytest.mark.parametrize("content", [b"damaged", bytes(len(BYTES))])
def test_a_damaged_one_that_is_kept_is_removed_and_brought_anew(
    tmp_path: Path, content: bytes
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "a.whl").write_bytes(content)
    served = Served(kept=kept)

    assert served.bring(tmp_path / "into")[-1] == (10, 10, "a.whl", 10, 10)

    assert served.asked == [(URL, 0)]
    assert names(tmp_path / "into") == ["a.whl"]
    assert (kept / "a.whl").read_bytes() == BYTES


def test_where_the_folder_is_the_one_that_keeps_nothing_is_kept_twice(tmp_path: Path) -> None:
    Served(kept=tmp_path).bring(tmp_path)

    assert names(tmp_path) == ["a.whl"]
    assert (tmp_path / "a.whl").stat().st_nlink == 1


@pytest.mark.parametrize(("folder", "said"), [(None, "-"), ("near", "near")])
def test_offline_what_is_missing_is_named(tmp_path: Path, folder: str | None, said: str) -> None:
    (tmp_path / "b.whl").write_bytes(BYTES)
    links = None if folder is None else Path(folder)
    served = Served(offline=True, find_links=links, kept=tmp_path / "kept")

    with pytest.raises(Error) as caught:
        served.bring(tmp_path, wheel("a"), wheel("b"), wheel("c"))

    assert caught.value.values == {"files": "a.whl, c.whl", "folder": said}


def test_a_known_address_is_taken_and_others_are_looked_up(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(BYTES)
    urls = {"a.whl": "https://other.org/a.whl", "b.whl": (tmp_path / "b.whl").as_uri()}
    served = Served()

    served.bring(tmp_path / "into", wheel("a"), wheel("b"), wheel("c"), urls=urls)

    assert sorted(served.asked) == sorted([("https://other.org/a.whl", 0), (URL, 0)])


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


def test_a_part_that_is_longer_than_the_file_of_unknown_size(tmp_path: Path) -> None:
    (tmp_path / "a.whl.part").write_bytes(b"?" * 11)
    served = Served()

    assert served.bring(tmp_path, wheel(size=0))[-1] == (10, 0, "a.whl", 10, 0)
    assert [start for _, start in served.asked] == [11, 0]


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


def test_what_the_disk_refuses_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.whl" / "folder").mkdir(parents=True)

    with pytest.raises(Error) as caught:
        Served().bring(tmp_path)

    assert caught.value.code == "disk-failed"
    assert caught.value.values == {"path": str(tmp_path / "a.whl"), "reason": "Is a directory"}


def test_one_file(tmp_path: Path) -> None:
    served = cast("Index", Served())
    for _ in range(2):  # the second time the folder is there
        path = download_one(served, wheel(), tmp_path / "not" / "there", URL)
        assert path == tmp_path / "not" / "there" / "a.whl"
        assert path.read_bytes() == BYTES
        path.unlink()

    (tmp_path / "file").touch()
    with pytest.raises(Error) as caught:
        download_one(served, wheel(), tmp_path / "file" / "into", URL)
    assert caught.value.code == "disk-failed"


@pytest.mark.parametrize("file", ["", "../a.whl", "x/a.whl"])
@pytest.mark.parametrize("one", [False, True])
def test_a_name_that_is_a_path_is_none(tmp_path: Path, file: str, *, one: bool) -> None:
    served, bad = cast("Index", Served()), wheel()._replace(file=file)
    into = tmp_path / "into"

    def bring() -> None:
        if one:
            download_one(served, bad, into, URL)
        else:
            download_all(served, [wheel("b"), bad], into, silent)

    with pytest.raises(Error) as caught:
        bring()

    assert caught.value.code == "wheel-escapes"
    assert caught.value.values == {"file": "a", "member": file}
    assert names(tmp_path) == []


WHEELS = [wheel(f"w{at}") for at in range(40)]


def replaced(monkeypatch: pytest.MonkeyPatch, step: Callable[[Wheel], Path]) -> None:
    """Do `step` instead of each download."""
    monkeypatch.setattr(download._Downloader, "download", lambda _, wheel: step(wheel))


def test_four_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    four, lock = threading.Barrier(4, timeout=20), threading.Lock()
    active: set[str] = set()
    most: list[int] = []

    def step(one: Wheel) -> Path:
        with lock:
            active.add(one.file)
            most.append(len(active))
        four.wait()
        with lock:
            active.remove(one.file)
        return tmp_path / one.file

    replaced(monkeypatch, step)
    served = cast("Index", Served())
    download_all(served, WHEELS, tmp_path, silent)

    assert max(most) == 4
    assert not served.stop.is_set()  # the index is used again


def test_the_first_that_fails_ends_the_others_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served()
    begun: list[str] = []
    four = threading.Barrier(4, timeout=20)

    def step(one: Wheel) -> Path:
        begun.append(one.name)
        if one in WHEELS[:4]:
            four.wait()
        if one.name == "w2":
            raise Error("file-not-on-index", file=one.file, url="u")
        assert served.stop.wait(20)
        raise TransferStopped

    replaced(monkeypatch, step)
    with pytest.raises(Error, match="file-not-on-index"):
        download_all(cast("Index", served), WHEELS, tmp_path, silent)

    assert len(begun) < len(WHEELS)
    assert not served.stop.is_set()  # the index is used again
