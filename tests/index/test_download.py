"""Downloads from a real index that misbehaves in the ways indexes do."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import socket
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

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.index import download
from ortgpu_fix.index.client import Index, Limits, TransferStopped
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.download import download_all, download_one
from ortgpu_fix.index.network_errors import TransferInterrupted
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.files import disk_error
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


def wheels(server: LocalIndex) -> list[Wheel]:
    return [as_wheel(path) for path in sorted(server.folder.glob("*.whl"))]


def index(server: LocalIndex, **changes: object) -> Index:
    sources = IndexConfig(index_url=server.url, origin="flag")
    return Index(replace(sources, **changes), QUICK)  # type: ignore[arg-type]


def failure(server: LocalIndex, into: Path, **changes: object) -> Error:
    with pytest.raises(Error) as caught:
        download_all(index(server, **changes), wheels(server), into, silent)
    return caught.value


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("hashes", [False, True])
def test_all_arrive_whole(
    server: LocalIndex, tmp_path: Path, *, as_json: bool, hashes: bool
) -> None:
    server.behaviour.json, server.behaviour.hashes = as_json, hashes
    heard: list[tuple[int, int]] = []

    def progress(_code: str, /, *, done: int = 0, total: int = 0, **_: object) -> None:
        heard.append((done, total))

    asked = wheels(server)
    paths = download_all(index(server), asked, tmp_path / "into", progress)

    assert [as_wheel(path) for path in paths] == asked
    assert sorted(path.name for path in (tmp_path / "into").iterdir()) == [w.file for w in asked]
    total = sum(wheel.size for wheel in asked)
    assert max(heard) == (total, total)


def test_what_is_there_does_not_count_for_what_comes(server: LocalIndex, tmp_path: Path) -> None:
    there, *coming = asked = wheels(server)
    totals: set[int] = set()

    def progress(_code: str, /, *, total: int = 0, **_: object) -> None:
        totals.add(total)

    shutil.copy(server.folder / there.file, tmp_path)
    download_all(index(server), asked, tmp_path, progress)

    assert max(totals) == sum(wheel.size for wheel in coming)


def test_what_is_there_is_not_asked_for_again(server: LocalIndex, tmp_path: Path) -> None:
    download_all(index(server), wheels(server), tmp_path, silent)
    server.behaviour.requests.clear()

    download_all(index(server), wheels(server), tmp_path, silent)

    assert server.behaviour.requests == []


@pytest.mark.parametrize("no_ranges", [False, True])
def test_a_begun_file_is_completed(server: LocalIndex, tmp_path: Path, *, no_ranges: bool) -> None:
    server.behaviour.no_ranges = no_ranges
    wheel = wheels(server)[0]
    whole = (server.folder / wheel.file).read_bytes()
    (tmp_path / f"{wheel.file}.part").write_bytes(whole[:1000])

    (path,) = download_all(index(server), [wheel], tmp_path, silent)

    assert path.read_bytes() == whole
    assert server.behaviour.requests[-1].endswith("bytes=1000-")


@pytest.mark.parametrize("length", [500, 10**6])
def test_a_begun_file_that_is_rubbish_is_begun_anew(
    server: LocalIndex, tmp_path: Path, length: int
) -> None:
    wheel = wheels(server)[0]
    (tmp_path / f"{wheel.file}.part").write_bytes(b"?" * length)

    (path,) = download_all(index(server), [wheel], tmp_path, silent)

    assert as_wheel(path) == wheel


def test_a_begun_file_that_is_longer_than_the_index_has(server: LocalIndex, tmp_path: Path) -> None:
    wheel = wheels(server)[0]._replace(size=0)  # not known
    (tmp_path / f"{wheel.file}.part").write_bytes(b"?" * 10**6)

    (path,) = download_all(index(server), [wheel], tmp_path, silent)

    assert as_wheel(path).sha256 == wheel.sha256


def test_an_index_that_answers_with_another_range(server: LocalIndex, tmp_path: Path) -> None:
    wheel = wheels(server)[0]
    (tmp_path / f"{wheel.file}.part").write_bytes(b"x" * 1000)
    server.behaviour.faults[wheel.file] = "other-range"

    assert failure(server, tmp_path).values["status"] == cause("range-other")


def test_a_page_without_end(
    server: LocalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ortgpu_fix.index.client._MAX_PAGE", 20)

    assert failure(server, tmp_path).code == "index-page-unreadable"


@pytest.mark.parametrize("fault", ["busy", "reset", "truncated"])
@pytest.mark.parametrize("where", ["one", "one-1.0-py3-none-any.whl"])
def test_a_stumble_is_forgiven(
    server: LocalIndex, tmp_path: Path, fault: Fault, where: str
) -> None:
    server.behaviour.faults[where] = fault
    server.behaviour.times[where] = 2

    download_all(index(server), wheels(server), tmp_path, silent)

    assert len(list(tmp_path.glob("*.whl"))) == 3


def test_a_long_file_over_a_poor_network_arrives(server: LocalIndex, tmp_path: Path) -> None:
    """Every try brings a half of what is missing: more tries than an index without progress has."""
    wheel = wheels(server)[0]
    server.behaviour.faults[wheel.file] = "truncated"
    server.behaviour.times[wheel.file] = 9

    download_all(index(server), [wheel], tmp_path, silent)

    assert len(server.behaviour.requests) == 11


@pytest.mark.parametrize(
    ("fault", "where", "code"),
    [
        ("missing", "one", "index-refused"),
        ("missing", "one-1.0-py3-none-any.whl", "index-refused"),
        ("denied", "one", "index-refused"),
        ("busy", "one", "index-refused"),
        ("busy", "one-1.0-py3-none-any.whl", "index-refused"),
        ("reset", "one", "index-unreachable"),
        ("other-bytes", "one-1.0-py3-none-any.whl", "download-hash-mismatch"),
        ("trickle", "one-1.0-py3-none-any.whl", "download-too-slow"),
    ],
)
def test_a_fault_that_stays_ends_it(
    server: LocalIndex, tmp_path: Path, fault: Fault, where: str, code: str
) -> None:
    server.behaviour.faults[where] = fault
    began = time.monotonic()

    assert failure(server, tmp_path).code == code
    assert time.monotonic() - began < 40
    assert not (tmp_path / "one-1.0-py3-none-any.whl").exists()


def test_a_file_that_ends_too_early_every_time(server: LocalIndex, tmp_path: Path) -> None:
    server.behaviour.no_ranges = True
    wheel = wheels(server)[0]
    longer = wheel._replace(size=wheel.size + 10)

    with pytest.raises(Error, match="download-truncated"):
        download_all(index(server), [longer], tmp_path, silent)


def test_a_file_that_is_longer_than_it_can_be(server: LocalIndex, tmp_path: Path) -> None:
    shorter = wheels(server)[0]._replace(size=100)

    with pytest.raises(Error, match="download-hash-mismatch"):
        download_all(index(server), [shorter], tmp_path, silent)


def test_the_index_s_own_word_for_the_hash_is_not_taken(server: LocalIndex, tmp_path: Path) -> None:
    """A mirror that serves another file, with the right hash of that other file."""
    asked = wheels(server)[0]
    make_wheel(server.folder, "one", "1.0", files={"evil.py": "import os\n"})

    with pytest.raises(Error, match="download-hash-mismatch"):
        download_all(index(server), [asked._replace(size=0)], tmp_path, silent)


def test_a_file_is_found_by_its_hash_under_another_name(server: LocalIndex, tmp_path: Path) -> None:
    asked = wheels(server)[0]
    renamed = asked._replace(file="one-1.0-1-py3-none-any.whl")

    (path,) = download_all(index(server), [renamed], tmp_path, silent)

    assert path.name == renamed.file


def test_a_file_that_the_index_does_not_have(server: LocalIndex, tmp_path: Path) -> None:
    asked = wheels(server)[0]._replace(file="one-2.0-py3-none-any.whl", sha256="0" * 64)

    with pytest.raises(Error, match="file-not-on-index"):
        download_all(index(server), [asked], tmp_path, silent)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("text/html", "<html><h1>Sign in</h1></html>"), ("image/png", "x"), ("application/json", "{")],
)
def test_a_page_with_status_200_that_is_none(
    server: LocalIndex, tmp_path: Path, kind: str, text: str
) -> None:
    server.behaviour.page = (kind, text)

    assert failure(server, tmp_path).code == "index-page-unreadable"


def test_nobody_listens(server: LocalIndex, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://name:secret@127.0.0.1:{taken.getsockname()[1]}/simple"
        error = failure(server, tmp_path, index_url=url)

    assert error.code == "index-unreachable"
    assert error.values["reason"] == "Connection refused"
    assert "secret" not in str(error)


def test_somebody_listens_and_says_nothing(server: LocalIndex, tmp_path: Path) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/simple"
        slow = Index(IndexConfig(index_url=url), replace(QUICK, read=0.2))
        with pytest.raises(Error) as caught:
            download_all(slow, wheels(server), tmp_path, silent)

    assert caught.value.code == "index-unreachable"
    assert caught.value.values["reason"] == cause("no-answer-in-time")


def test_a_proxy_that_is_not_there(server: LocalIndex, tmp_path: Path) -> None:
    error = failure(
        server, tmp_path, index_url="https://a.invalid/simple", proxy="http://127.0.0.1:9"
    )

    assert error.code == "index-proxy"


def test_a_host_that_is_not_known(
    server: LocalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    error = failure(server, tmp_path, index_url="https://no-such-host.invalid/simple")

    assert error.code == "index-unreachable"


@pytest.mark.parametrize("url", ["https://", "https://exa mple.org:port/", "gopher://x/simple"])
def test_an_address_that_is_none(server: LocalIndex, tmp_path: Path, url: str) -> None:
    assert failure(server, tmp_path, index_url=url).code in {
        "index-unreachable",
        "index-insecure",
    }


def test_plain_http_to_elsewhere_only_where_it_is_asked_for(
    server: LocalIndex, tmp_path: Path
) -> None:
    url = "http://mirror.invalid/simple"

    assert failure(server, tmp_path, index_url=url, origin="pip").code == "index-insecure"
    assert failure(server, tmp_path, index_url=url, origin="flag").code == "index-unreachable"


def test_offline_everything_that_is_missing_is_named(server: LocalIndex, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(server.folder / "two-1.0-py3-none-any.whl", folder)

    error = failure(server, tmp_path / "into", offline=True, find_links=folder)

    assert error.code == "files-not-here"
    assert error.values["files"] == "one-1.0-py3-none-any.whl, three-1.0-py3-none-any.whl"
    assert server.behaviour.requests == []


def test_a_folder_is_enough(server: LocalIndex, tmp_path: Path) -> None:
    offline = index(server, offline=True, find_links=server.folder)
    paths = download_all(offline, wheels(server), tmp_path / "into", silent)

    assert [path.stat().st_nlink for path in paths] == [1, 1, 1]
    assert len(list(server.folder.iterdir())) == 3
    assert server.behaviour.requests == []

    download_all(index(server, offline=True), wheels(server), tmp_path / "into", silent)


def test_a_folder_with_another_file_of_that_name(server: LocalIndex, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    make_wheel(folder, "one", "1.0", files={"other.py": ""})

    error = failure(server, tmp_path / "into", find_links=folder)

    assert error.code == "download-hash-mismatch"


@pytest.mark.parametrize("with_page", [False, True])
def test_an_index_on_this_disk(server: LocalIndex, tmp_path: Path, *, with_page: bool) -> None:
    wheel = wheels(server)[0]
    simple = tmp_path / "a b" / "simple" / "one"
    simple.mkdir(parents=True)
    if with_page:
        (simple / "index.html").write_text(f'<a href="../{wheel.file}">one</a>')
        shutil.copy(server.folder / wheel.file, simple.parent)
    else:
        shutil.copy(server.folder / wheel.file, simple)
    local = index(server, index_url=simple.parent.as_uri())

    (path,) = download_all(local, [wheel], tmp_path / "into", silent)

    assert as_wheel(path) == wheel
    with pytest.raises(Error, match="index-unreachable"):
        download_all(local, wheels(server), tmp_path / "into", silent)


@pytest.mark.parametrize("absolute", [False, True])
def test_credentials_of_the_index_address(
    server: LocalIndex, tmp_path: Path, *, absolute: bool
) -> None:
    server.behaviour.login, server.behaviour.absolute = "name:s/cret", absolute
    url = server.url.replace("//", "//name:s%2Fcret@")

    download_all(index(server, index_url=url), wheels(server), tmp_path, silent)
    error = failure(server, tmp_path / "other")

    assert (error.code, error.values["status"]) == ("index-refused", 401)


def test_credentials_in_a_netrc(
    server: LocalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.behaviour.login = "name:secret"
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login name password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    assert len(download_all(index(server), wheels(server), tmp_path, silent)) == 3


def test_a_known_address_needs_no_page(server: LocalIndex, tmp_path: Path) -> None:
    wheel = wheels(server)[0]
    address = server.url.replace("/simple", f"/files/{wheel.file}")

    download_all(index(server), [wheel], tmp_path, silent, {wheel.file: address})
    gone = (tmp_path / "gone.whl").as_uri()
    other = wheels(server)[1]
    with pytest.raises(Error, match="file-not-on-index"):
        download_all(index(server), [other], tmp_path, silent, {other.file: gone})

    assert [line.split()[1] for line in server.behaviour.requests] == [f"/files/{wheel.file}"]


def test_another_index_is_asked_for_what_the_plan_wants_from_there(
    server: LocalIndex, tmp_path: Path
) -> None:
    wheel = wheels(server)[0]._replace(index_url=f"{server.url}/whl/cu128")

    download_all(index(server, index_url="https://pypi.invalid/simple"), [wheel], tmp_path, silent)

    assert server.behaviour.requests[0] == "GET /simple/whl/cu128/one/"


@pytest.mark.parametrize("end", ["", "/"])
def test_an_address_may_end_with_a_slash(server: LocalIndex, tmp_path: Path, end: str) -> None:
    """Some servers know `//` for another path."""
    [wheel, other, *_] = wheels(server)
    asked = [wheel, other._replace(index_url=f"{server.url}/whl{end}")]

    download_all(index(server, index_url=f"{server.url}{end}"), asked, tmp_path, silent)

    pages = {line for line in server.behaviour.requests if line.endswith("/")}
    assert pages == {f"GET /simple/{wheel.name}/", f"GET /simple/whl/{other.name}/"}


def test_no_room_and_no_right() -> None:
    path = Path("/x/y.whl")

    assert disk_error(OSError(28, "No space left on device"), path).code == "disk-full"
    assert disk_error(OSError(122, "Disk quota exceeded"), path).code == "disk-full"
    assert disk_error(OSError(13, "Permission denied"), path).code == "disk-failed"


def test_a_folder_that_cannot_be_made(server: LocalIndex, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert failure(server, tmp_path / "file" / "into").code == "disk-failed"


@with_others
def test_a_folder_that_this_user_may_not_look_into(server: LocalIndex) -> None:
    asked = index(server), wheels(server)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with closed(Path(folder, "into")) as into, pytest.raises(Error, match="disk-failed"):
            download_all(*asked, into, silent)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_ends_it_soon_and_the_rest_is_kept(server: LocalIndex, tmp_path: Path) -> None:
    """The main thread is interrupted while an endless file trickles in."""
    server.behaviour.faults = dict.fromkeys((wheel.file for wheel in wheels(server)), "trickle")
    patient = Index(index(server).sources, replace(QUICK, window=60))
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        download_all(patient, wheels(server), tmp_path, silent)

    assert time.monotonic() - began < 30
    assert list(tmp_path.glob("*.part"))


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
    with pytest.raises(Error, match="files-not-kept"):
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


def test_what_lay_near_is_kept_for_when_the_folder_is_gone(tmp_path: Path) -> None:
    """The loader's command names no folder, and failed without network."""
    near, kept = tmp_path / "near", tmp_path / "kept"
    near.mkdir()
    (near / "a.whl").write_bytes(BYTES)
    Served(find_links=near, offline=True, kept=kept).bring(tmp_path / "first")

    assert Served(offline=True, kept=kept).bring(tmp_path / "second") == []
    assert names(tmp_path / "second") == ["a.whl"]


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


@pytest.mark.parametrize("content", [bytes(len(BYTES)), b"another size"])
def test_offline_a_damaged_one_that_is_kept_is_missing(tmp_path: Path, content: bytes) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "a.whl").write_bytes(content)
    served = Served(offline=True, kept=kept)

    with pytest.raises(Error, match="files-not-kept") as caught:
        served.bring(tmp_path / "into")

    assert caught.value.values == {"files": "a.whl"}
    assert served.asked == []


def test_offline_one_of_another_size_and_one_of_none_are_named_together(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"another size")
    served = Served(offline=True, kept=tmp_path)

    with pytest.raises(Error) as caught:
        served.bring(tmp_path / "into", wheel("a"), wheel("b"), wheel("c", size=0))

    assert caught.value.values == {"files": "a.whl, b.whl, c.whl"}


def test_offline_a_kept_one_of_unknown_size_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(BYTES)
    served = Served(offline=True, kept=tmp_path)

    assert served.bring(tmp_path / "into", wheel(size=0)) == []


def test_where_the_folder_is_the_one_that_keeps_nothing_is_kept_twice(tmp_path: Path) -> None:
    Served(kept=tmp_path).bring(tmp_path)

    assert names(tmp_path) == ["a.whl"]
    assert (tmp_path / "a.whl").stat().st_nlink == 1


@pytest.mark.parametrize(("folder", "said"), [(None, {}), (Path("near"), {"folder": "near"})])
def test_offline_what_is_missing_is_named(
    tmp_path: Path, folder: Path | None, said: dict[str, str]
) -> None:
    (tmp_path / "b.whl").write_bytes(BYTES)
    served = Served(offline=True, find_links=folder, kept=tmp_path / "kept")

    with pytest.raises(Error) as caught:
        served.bring(tmp_path, wheel("a"), wheel("b"), wheel("c"))

    assert caught.value.values == {"files": "a.whl, c.whl", **said}


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


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of Unix")
@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("kind", ["link", "shared", "pipe"])
def test_a_planted_part_is_neither_followed_nor_waited_for(
    tmp_path: Path, kind: str, *, near: bool
) -> None:
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
    served = Served(find_links=tmp_path / "near")
    if near:
        (tmp_path / "near").mkdir()
        (tmp_path / "near" / "a.whl").write_bytes(BYTES)

    served.bring(into)

    assert document.read_bytes() == BYTES[:4]
    assert names(into) == ["a.whl"]
    assert not (into / "a.whl").is_symlink()
    assert served.asked == ([] if near else [(URL, 0)])
