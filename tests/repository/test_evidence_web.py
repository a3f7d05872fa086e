"""Project pages, range requests, zip archives on the web, the cache."""

from __future__ import annotations

import random
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import evidence_samples as samples
import pytest

from ortgpu_fix.binaries.native import BinaryError
from ortgpu_fix.errors import Error
from ortgpu_fix.evidence import ranges
from ortgpu_fix.evidence.wheels import EvidenceError, IndexWheel, wheels_on
from ortgpu_fix.guests.update import torch_rows
from ortgpu_fix.guests.update.index_source import IndexSource
from ortgpu_fix.guests.update.reader import Reader, ReadingCache
from ortgpu_fix.guests.update.spread import Room
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.index.page import parse_index_page

PAGE_URL = "https://index.example/simple/nvidia-cublas-cu12/"


def wheels(kind: str, page: str) -> list[IndexWheel]:
    """Return the wheels on a page."""
    return wheels_on(parse_index_page(kind, page, PAGE_URL))


def test_of_several_wheels_for_one_python_the_highest_build_number_counts() -> None:
    """torch 2.10.0 came again as build 3: pip and uv take that, though its name sorts before."""
    names = [
        f"torch-2.10.0{build}-{python}-{python}-manylinux_2_28_x86_64.whl"
        for python in ("cp311", "cp310")
        for build in ("-3", "", "-12", "-2")
    ]
    page = "".join(f'<a href="{name}">x</a>' for name in names)
    listed = wheels("text/html", page)
    reader: Any = SimpleNamespace(wheels=lambda _: listed)

    (group,) = torch_rows._groups(reader, "torch", torch_rows.OLDEST)

    assert [wheel.file for wheel in group] == [
        "torch-2.10.0-12-cp310-cp310-manylinux_2_28_x86_64.whl",
        "torch-2.10.0-12-cp311-cp311-manylinux_2_28_x86_64.whl",
    ]


def test_reading_one_member_fetches_little(tmp_path: Path) -> None:
    """A small file in a large wheel costs the tail and one part."""
    content = samples.wheel({"big.bin": bytes(range(256)) * 4096 * 3, "small.txt": "hello"})
    big = samples.wheel(
        {"a.bin": _noise(3_000_000), "small.txt": "hello", "b.bin": _noise(200_000)}
    )
    with samples.serve() as index:
        index.files["x"] = {"big.whl": big, "c.whl": content}
        web = samples.source(f"{index.url}/simple", tmp_path)
        archive, size = ranges.open_zip(web.get_range, f"{index.url}/files/x/big.whl")

        assert ranges.read_member(archive, "small.txt") == b"hello"
        assert size == len(big)
        assert web.bytes_received < 200_000
        assert ranges.read_member(archive, "a.bin") == _noise(3_000_000)
        assert ranges.read_member(archive, "a.bin", 100) == _noise(3_000_000)[:100]


def test_no_byte_of_a_wheel_comes_twice(tmp_path: Path) -> None:
    """However often its libraries are asked, and whatever about: each part is fetched once."""
    code = samples.fatbin(samples.fatbin_entry(80), samples.fatbin_entry(90))
    library = samples.elf(links=["libcublas.so.12"], exports=["open"], extra=_noise(400_000) + code)
    plain = samples.elf(exports=["close"], extra=_noise(300_000))
    members = {"lib/liba.so.1": library, "lib/libb.so.1": plain, "lib/libc.so.1": library}
    content = samples.wheel({**members, "rest.bin": _noise(100_000)})
    name = "nvidia_x-1.0-py3-none-manylinux_2_27_x86_64.whl"
    with samples.serve() as index:
        index.files["nvidia-x"] = {name: content}
        source = IndexSource(
            Index(IndexConfig(index_url=f"{index.url}/simple", origin="flag")), tmp_path
        )
        reader = Reader(source, ReadingCache(tmp_path / "cache"), "", lambda _: None)
        [wheel] = reader.wheels("nvidia-x")
        for member in members:
            reader.contents(wheel)
            reader.library(wheel, member)
            reader.uses(wheel, member)
            reader.exports(wheel, member)

        parts = [wanted for path, wanted in index.requests if path.endswith(name)]

    assert source.received[name] <= len(content)
    assert len(parts) == 4  # the end, and each library
    assert reader.exports(wheel, "lib/libb.so.1") == {"close"}


@pytest.mark.parametrize("fault", ["missing", "ranges", "damaged", "not a zip"])
def test_what_cannot_be_read_is_the_one_error(fault: str, tmp_path: Path) -> None:
    """Absent files, servers without ranges, damaged and foreign content."""
    content = samples.wheel({"a.bin": _noise(300_000)})
    if fault == "damaged":
        content = content[:2000] + b"\0" * 64 + content[2064:]
    with samples.serve() as index:
        index.ranges = fault != "ranges"
        index.files["x"] = {"a.whl": b"nothing" if fault == "not a zip" else content}
        name = "b.whl" if fault == "missing" else "a.whl"
        with pytest.raises((EvidenceError, Error)):  # noqa: PT012
            archive, _ = ranges.open_zip(
                samples.source(f"{index.url}/simple", tmp_path).get_range,
                f"{index.url}/files/x/{name}",
            )
            ranges.read_member(archive, "a.bin")


def test_a_kept_reading_of_a_library_is_the_same_value(tmp_path: Path) -> None:
    """JSON has lists only; what is read does not change."""
    member, name = "lib/liba.so.1", "nvidia_x-1.0-py3-none-manylinux_2_27_x86_64.whl"
    with samples.serve() as index:
        library = samples.elf(links=["libcublas.so.12"], exports=["open"])
        index.files["nvidia-x"] = {name: samples.wheel({member: library})}
        web = samples.source(f"{index.url}/simple", tmp_path)
        first, again = (
            Reader(web, ReadingCache(tmp_path / "cache"), "", lambda _: None) for _ in range(2)
        )
        [wheel] = first.wheels("nvidia-x")
        read = first.library(wheel, member)

        assert again.library(wheel, member) == read
        assert {type(each) for each in (read.links, read.delayed, read.mentions, read.isa)} == {
            tuple
        }
        assert read.mentions == ("libcublas.so.12",)


def test_a_member_that_is_larger_than_any_library_is_not_inflated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel of 35 MB may have 8 GB in it."""
    name = "nvidia_x-1.0-py3-none-manylinux_2_27_x86_64.whl"
    members = {"lib/liba.so.1": bytes(3000), "lib/libb.so.1": bytes(2000), "a.txt": bytes(2000)}
    with samples.serve() as index:
        index.files["nvidia-x"] = {name: samples.wheel(members)}
        web = samples.source(f"{index.url}/simple", tmp_path)
        reader = Reader(web, ReadingCache(tmp_path / "cache"), "", lambda _: None)
        [wheel] = reader.wheels("nvidia-x")
        monkeypatch.setattr(ranges, "LARGEST_LIBRARY", 2000)
        monkeypatch.setattr(ranges, "LARGEST_TEXT", 1999)
        asked = (
            lambda: reader.library(wheel, "lib/liba.so.1"),
            lambda: reader.uses(wheel, "lib/liba.so.1"),
            lambda: reader.natives(wheel),
            lambda: reader.text(wheel, "a.txt"),
        )
        for ask in asked:
            with pytest.raises(EvidenceError, match=r"(3000|2000) bytes are too many"):
                ask()
        with pytest.raises(BinaryError):  # it is read, and is no library
            reader.library(wheel, "lib/libb.so.1")


def test_what_the_memory_has_no_room_for_is_the_one_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", "content")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        member = ranges.ArchiveMember(archive, "a")
        member._stream = SimpleNamespace(read=_no_room)  # type: ignore[assignment]

        with pytest.raises(EvidenceError, match="MemoryError"):
            member.read()


def _no_room(_: int) -> bytes:
    raise MemoryError


def test_an_interrupted_reading_leaves_nothing(tmp_path: Path) -> None:
    """What fails while it is made is not kept."""

    def fail() -> None:
        raise EvidenceError("no")

    with pytest.raises(EvidenceError):
        ReadingCache(tmp_path).get("key", fail)

    assert not list(tmp_path.rglob("*.*"))
    assert ReadingCache(tmp_path).get("key", lambda: 7) == 7


def _noise(count: int) -> bytes:
    """Return bytes that do not compress, the same each time."""
    return random.Random(1).randbytes(count)  # noqa: S311 - nobody must not guess them


def test_room_lets_in_what_fits_and_the_largest_alone() -> None:
    """Together they never hold more than there is room; one that is larger waits for all others."""
    room = Room(10)
    held: list[int] = []
    most: list[list[int]] = []

    def hold(count: int) -> None:
        with room.for_bytes(count):
            held.append(count)
            most.append(list(held))
            time.sleep(0.01)
            held.remove(count)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(hold, [4, 5, 20, 6, 3, 20, 1]))

    assert all(sum(counts) <= 10 or counts == [20] for counts in most)
    assert max(len(counts) for counts in most) > 1


@pytest.mark.parametrize("there", [("a", "b"), ("a",), ()], ids=["all", "one", "none"])
def test_an_index_need_not_have_every_project_but_one(
    there: tuple[str, ...], tmp_path: Path
) -> None:
    with samples.serve() as served:
        served.files = {name: {f"{name}-1-py3-none-any.whl": b""} for name in there}
        source = samples.source(f"{served.url}/simple", tmp_path)
        for name in ("a", "b"):
            assert len(source.wheels("", name)) == (name in there)

    if there:
        source.check_found()
    else:
        with pytest.raises(Error, match="index-refused"):
            source.check_found()


def test_a_member_that_an_archive_does_not_have_is_named(tmp_path: Path) -> None:
    with samples.serve() as index:
        index.files["x"] = {"a.whl": samples.wheel({})}
        archive, _ = ranges.open_zip(
            samples.source(f"{index.url}/simple", tmp_path).get_range, f"{index.url}/files/x/a.whl"
        )

        with pytest.raises(EvidenceError, match=r"nowhere\.txt"):
            ranges.read_member(archive, "nowhere.txt")


def test_a_remote_file_reads_and_seeks_like_a_local_one(tmp_path: Path) -> None:
    content = _noise(500_000)
    path = tmp_path / "a"
    path.write_bytes(content)
    with samples.serve() as index, path.open("rb") as local:
        index.files["x"] = {"a": content}
        far = ranges.RemoteFile(
            samples.source(f"{index.url}/simple", tmp_path).get_range, f"{index.url}/files/x/a"
        )
        for offset, whence, count in [(5, 0, 10), (0, 1, 200_000), (-9, 2, 99), (3, 0, 0)]:
            assert far.seek(offset, whence) == local.seek(offset, whence)
            wanted, got = local.read(count), b""
            while len(got) < len(wanted):
                got += far.read(count - len(got))
            assert wanted == got
            assert local.tell() == far.tell()
