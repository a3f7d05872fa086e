"""What other distributions need of CUDA's libraries, read from wheels that are made for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evidence_samples as samples
import pytest

from matrix.evidence import consumers
from ortgpu_fix.guests.update.reader import Reader, ReadingCache

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LINUX, WINDOWS = "manylinux_2_28_x86_64", "win_amd64"


@pytest.fixture
def index() -> Iterator[samples.Index]:
    with samples.serve() as served:
        served.files = {name: {} for name in consumers.DISTRIBUTIONS}
        yield served


def rows(index: samples.Index, folder: Path) -> list[dict[str, Any]]:
    reader = Reader(
        samples.source(f"{index.url}/simple", folder), ReadingCache(folder), "", lambda _: None
    )
    found: list[dict[str, Any]] = tomllib.loads("\n".join(consumers.tables(reader, 2))).get(
        "consumer", []
    )
    return found


def put(
    index: samples.Index, name: str, version: str, members: dict[str, Any], tag: str = LINUX
) -> None:
    file = f"{name.replace('-', '_')}-{version}-cp312-cp312-{tag}.whl"
    index.files[name][file] = samples.wheel(members)


def library(*links: str, holds: bytes = b"") -> bytes:
    imports = {links[0]: ["x"]} if links else None
    return samples.elf(links=links, imports=imports, extra=holds)


def test_what_is_linked_and_what_is_named_is_needed_and_what_is_carried_is_not(
    index: samples.Index, tmp_path: Path
) -> None:
    main = library("libcublas.so.12", "libcudart.so.12", holds=b"\0libcudnn.so.9\0libcuda.so.1\0")
    members = {"ctranslate2/_ext.so": main, "ctranslate2.libs/libcudart.so.12": library()}
    put(index, "ctranslate2", "4.5.0", members)

    assert rows(index, tmp_path) == [
        {
            "name": "ctranslate2",
            "platform": "linux_x86_64",
            "first": "4.5.0",
            "last": "4.5.0",
            "cuda": "12",
            "cudnn": "9",
            "needs": ["libcublas.so.12", "libcudnn.so.9"],
            "source": f"ctranslate2-4.5.0-cp312-cp312-{LINUX}.whl",
        }
    ]


def test_releases_that_need_the_same_are_one_row(index: samples.Index, tmp_path: Path) -> None:
    for version in ("4.0.0", "4.1.0", "4.2.0", "4.3.0rc1"):
        put(index, "ctranslate2", version, {"a.so": library("libcublas.so.11")})
    put(index, "ctranslate2", "4.4.0", {"a.so": library("libcublas.so.12")})
    put(index, "ctranslate2", "2.0.0", {"a.so": library("libcublas.so.10")})

    found = [(row["first"], row["last"], row["cuda"]) for row in rows(index, tmp_path)]

    assert found == [("4.0.0", "4.2.0", "11"), ("4.4.0", "4.4.0", "12")]


def test_a_file_that_tells_its_build_says_what_the_binaries_do_not(
    index: samples.Index, tmp_path: Path
) -> None:
    place = consumers.STATED["tensorflow"]
    text = "build_info = dict([('cuda_version', '12.5.1'), ('cudnn_version', '9')])"
    put(index, "tensorflow", "2.19.0", {"a.so": library(), place: text})
    put(index, "tensorflow", "2.19.0", {"a.dll": b"MZ", place: "build_info = {}"}, WINDOWS)
    place = consumers.STATED["paddlepaddle-gpu"]
    put(
        index,
        "paddlepaddle-gpu",
        "2.6.2",
        {place: "cuda_version = '12.0'\ncudnn_version = '8.9.1'"},
        WINDOWS,
    )

    found = {(row["name"], row["platform"]): row for row in rows(index, tmp_path)}
    linux = found["tensorflow", "linux_x86_64"]

    assert (linux["cuda"], linux["cudnn"], linux["needs"]) == ("12", "9", ["libcudnn.so.9"])
    assert found["tensorflow", "windows_x86_64"]["needs"] == []
    assert found["paddlepaddle-gpu", "windows_x86_64"]["needs"] == ["cudnn64_8.dll"]
