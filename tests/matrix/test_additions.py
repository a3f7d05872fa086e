"""The rows that `matrix --update` read: their file, and the tables with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ortgpu_fix.errors import Error
from ortgpu_fix.matrix.additions import (
    Additions,
    additions_json,
    parse_additions,
    parse_all,
    with_additions,
)

ORT = {"version": "1.32.0", "platform": "linux_x86_64"}


def tables(**changed: Any) -> dict[str, Any]:
    rows = {
        "onnxruntime": {"build": [ORT]},
        "nvidia": {"distribution": []},
        "toolkits": {"toolkit": []},
        "torch": {"torch": [], "companion": []},
    }
    return {**rows, **changed}


def text(read: str = "2026-11-22", index: str = "https://pypi.org/simple", **changed: Any) -> bytes:
    return json.dumps(additions_json(read, index, tables(**changed))).encode()


def added(**changed: Any) -> Additions:
    return parse_additions(text(**changed), "rows.json")


def cublas(*versions: str, platform: str = "linux_x86_64", size: int = 1) -> dict[str, Any]:
    return {
        "name": "nvidia-cublas-cu12",
        "cuda": "12",
        "releases": [{"version": one, "platform": platform, "size": size} for one in versions],
        "files": [{"versions": [one], "platform": platform, "size": size} for one in versions],
        "code": [
            {"first": one, "last": one, "platform": platform, "size": size} for one in versions
        ],
    }


def test_what_is_written_is_read_back() -> None:
    found = added(toolkits={"toolkit": [{"version": "13.9"}]})

    assert (found.read, found.index_url) == ("2026-11-22", "https://pypi.org/simple")
    assert found.tables == tables(toolkits={"toolkit": [{"version": "13.9"}]})
    assert found.digest == json.loads(text(toolkits={"toolkit": [{"version": "13.9"}]}))["digest"]
    assert found.digest.startswith("sha256:")


def test_every_line_is_a_document() -> None:
    first, second = text(), text(read="2026-11-23")

    assert [one.read for one in parse_all(first + b"\n" + second + b"\n", "f")] == [
        *("2026-11-22", "2026-11-23"),
    ]


def test_the_digest_covers_the_day_the_index_and_the_rows() -> None:
    digests = {
        added().digest,
        added(read="2026-11-23").digest,
        added(index="https://other.example/simple").digest,
        added(onnxruntime={"build": []}).digest,
    }

    assert len(digests) == 4
    backwards = dict(reversed(tables().items()))
    assert additions_json("2026-11-22", "https://pypi.org/simple", backwards)["digest"] in digests


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", 2),
        ("read", "2026-11-23"),
        ("index", "https://other.example/simple"),
        ("digest", "sha256:0"),
        ("tables", tables(onnxruntime={"build": [{**ORT, "version": "1.33.0"}]})),
    ],
)
def test_a_document_that_was_changed_is_refused(key: str, value: object) -> None:
    document = {**json.loads(text()), key: value}

    with pytest.raises(Error) as caught:
        parse_additions(json.dumps(document).encode(), "rows.json")

    assert (caught.value.code, caught.value.values) == (
        "matrix-file-invalid",
        {"file": "rows.json", "problem": "its content does not have its digest"},
    )


@pytest.mark.parametrize("read", ["", "today", "2026-11-22T10", "2026-1-2"])
def test_a_day_that_is_none_is_refused(read: str) -> None:
    with pytest.raises(Error) as caught:
        added(read=read)

    assert caught.value.code == "matrix-file-invalid"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "JSONDecodeError"),
        (b"[]", "TypeError"),
        (b"{}", "KeyError"),
        (b"[" * 100_000, "RecursionError"),
        (b"\xff", "UnicodeDecodeError"),
        (b'{"read": "", "index": "", "tables": {}}', "KeyError"),
        (b'{"read": "", "index": "", "tables": null}', "TypeError"),
        (text(toolkits={"toolkit": []}).replace(b'"schema": 1, ', b""), "KeyError"),
    ],
)
def test_a_file_that_is_no_document_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(Error) as caught:
        parse_all(content, "rows.json")

    assert caught.value.code == "matrix-file-invalid"
    assert caught.value.values["file"] == "rows.json"
    assert str(caught.value.values["problem"]).startswith(problem)


def test_the_releases_that_were_added_are_told_once_and_sorted() -> None:
    found = added(
        onnxruntime={"build": [ORT, {**ORT, "platform": "windows_x86_64"}]},
        nvidia={"distribution": [cublas("12.9.9", "12.9.8")]},
        toolkits={"toolkit": [{"version": "12.9.9"}]},
        torch={
            "torch": [{"version": "2.20.0"}],
            "companion": [{"name": "torchvision", "version": "0.35.0"}],
        },
    )

    assert found.releases == (
        *("cuda-toolkit 12.9.9", "nvidia-cublas-cu12 12.9.8", "nvidia-cublas-cu12 12.9.9"),
        *("onnxruntime-gpu 1.32.0", "torch 2.20.0", "torchvision 0.35.0"),
    )


@pytest.mark.parametrize(
    ("rows", "alone"),
    [([ORT], False), ([ORT, {**ORT, "index_url": "https://feed.example"}], True), ([], False)],
)
def test_builds_of_one_index_alone_are_known_as_such(rows: list[Any], *, alone: bool) -> None:
    assert added(onnxruntime={"build": rows}).alone is alone


def test_what_the_shipped_table_has_is_not_taken_from_the_file() -> None:
    shipped: dict[str, Any] = {
        "build": [{**ORT, "size": 1}],
        "gone": ["kept"],
        "date": "2026-11-20",
    }
    other = [
        {**ORT, "size": 2},
        {**ORT, "platform": "windows_x86_64"},
        {**ORT, "version": "1.33.0"},
        {**ORT, "index_url": "https://feed.example"},
        {**ORT, "index_url": "pypi", "size": 3},
    ]
    grown = with_additions("onnxruntime", shipped, [added(onnxruntime={"build": other})])

    assert grown["build"] == [{**ORT, "size": 1}, *other[1:4]]
    assert (grown["gone"], grown["date"]) == (["kept"], "2026-11-20")
    assert len(shipped["build"]) == 1


def test_companions_of_two_names_may_have_one_version() -> None:
    rows = [{"name": name, "version": "2.9.0"} for name in ("torchaudio", "torchvision")]
    torch = {"torch": [{"version": "2.9.0"}], "companion": rows}
    shipped = {"torch": [], "companion": rows[:1], "variant": ["kept"]}

    assert with_additions("torch", shipped, [added(torch=torch)]) == {
        "torch": torch["torch"],
        "companion": rows,
        "variant": ["kept"],
    }


def test_of_two_files_the_first_counts() -> None:
    first = added(onnxruntime={"build": [{**ORT, "size": 1}]})
    second = added(onnxruntime={"build": [{**ORT, "size": 2}]})

    assert with_additions("onnxruntime", {"build": []}, [first, second])["build"] == [
        {**ORT, "size": 1}
    ]


@pytest.mark.parametrize("name", ["drivers", "limits"])
def test_a_table_that_does_not_grow_stays(name: str) -> None:
    table = {"floor": [1]}

    assert with_additions(name, table, [added()]) is table


def test_without_a_file_the_table_stays() -> None:
    table = {"build": [1]}

    assert with_additions("onnxruntime", table, []) is table


def test_new_releases_of_a_distribution_come_with_their_files_and_code() -> None:
    shipped = {"distribution": [cublas("12.8"), {**cublas("1"), "name": "nvidia-other"}]}
    new = {**cublas("12.8", "12.9", size=2), "cuda": "99"}
    windows = cublas("12.8", platform="windows_x86_64", size=3)
    grown = with_additions(
        "nvidia",
        shipped,
        [added(nvidia={"distribution": [new]}), added(nvidia={"distribution": [windows]})],
    )["distribution"]

    assert [row["name"] for row in grown] == ["nvidia-cublas-cu12", "nvidia-other"]
    assert grown[0]["cuda"] == "12"
    for key in ("releases", "files", "code"):
        assert grown[0][key] == [
            *cublas("12.8")[key],
            cublas("12.9", size=2)[key][0],
            *windows[key],
        ]
    assert grown[1] == shipped["distribution"][1]


def test_a_distribution_that_is_shipped_without_files_gets_them() -> None:
    bare = {"name": "nvidia-cublas-cu12", "cuda": "12", "releases": []}
    [grown] = with_additions(
        "nvidia", {"distribution": [bare]}, [added(nvidia={"distribution": [cublas("12.9")]})]
    )["distribution"]

    assert grown == cublas("12.9")


def test_a_distribution_that_the_matrix_lacks_is_added_whole() -> None:
    [grown] = with_additions(
        "nvidia", {"distribution": []}, [added(nvidia={"distribution": [cublas("12.9")]})]
    )["distribution"]

    assert grown == cublas("12.9")
