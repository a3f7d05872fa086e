"""Downloads from a real index that misbehaves in the ways indexes do."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.download import download_all
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
