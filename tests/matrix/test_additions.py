"""The rows that `matrix --update` read: their file, and the tables with them."""

from __future__ import annotations

import copy
import functools
import json
import operator
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ortgpu_fix.__main__ import main
from ortgpu_fix.cli.matrix_files import other_lines
from ortgpu_fix.errors import Error
from ortgpu_fix.guests.update.reader import ReadingCache
from ortgpu_fix.matrix import additions
from ortgpu_fix.matrix.additions import (
    Additions,
    additions_json,
    parse_additions,
    parse_all,
    with_additions,
)
from ortgpu_fix.matrix.load import use_additions

WHEEL = {"python": "cp312", "size": 5, "sha256": "ab" * 32, "file": "a.whl"}
PLACE = {"version": "1.32.0", "platform": "linux_x86_64"}
ORT = PLACE | {
    "cuda": "13.0",
    "cudnn": "9",
    "needs": [{"library": "libcuda.so.1", "how": "loads"}],
    "sass": ["8.0"],
    "ptx": [],
    "preload_dlls": True,
    "requires": ["numpy>=2"],
    "wheels": [WHEEL],
}
TORCH = {**PLACE, "version": "2.20.0", "wheels": [WHEEL]}


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
    row = {"platform": platform, "size": size}
    return {
        "name": "nvidia-cublas-cu12",
        "cuda": "12",
        "releases": [{**WHEEL, **row, "version": one} for one in versions],
        "files": [{**row, "versions": [one], "libraries": {"a.so": "b/a.so"}} for one in versions],
        "code": [{**row, "first": one, "last": one, "sass": [], "ptx": []} for one in versions],
    }


def toolkit(version: str) -> dict[str, Any]:
    return {"version": version, "components": {"nvidia-cublas": "13.1"}}


def companion(name: str, version: str) -> dict[str, Any]:
    return {**TORCH, "name": name, "version": version, "torch": "==2.20.0"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", 2),
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


def test_the_digest_covers_the_day_the_index_and_the_rows() -> None:
    digests = {
        added().digest,
        added(read="2026-11-23").digest,
        added(index="https://other.example/simple").digest,
        added(onnxruntime={"build": []}).digest,
    }

    assert len(digests) == 4


def test_a_day_that_is_none_is_refused() -> None:
    with pytest.raises(Error) as caught:
        added(read="today")

    assert caught.value.code == "matrix-file-invalid"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "JSONDecodeError"),
        (b"[]", "TypeError"),
        (b"{}", "KeyError"),
        (b"[" * 100_000, "RecursionError"),
        (b'{"read": "", "index": "a", "tables": {}}', "read: cannot be ''"),
    ],
)
def test_a_file_that_is_no_document_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(Error) as caught:
        parse_all(content, "rows.json")

    assert caught.value.code == "matrix-file-invalid"
    assert caught.value.values["file"] == "rows.json"
    assert str(caught.value.values["problem"]).startswith(problem)


def test_rows_of_plugins_are_read_too() -> None:
    kind = "plugin"
    none: dict[str, list[object]] = {"plugin": [], "wheel": []}
    assert added(plugins=none).tables["plugins"] == none

    with pytest.raises(Error, match=rf"{kind}\[0\]") as caught:
        added(plugins={**none, kind: [{}]})
    assert caught.value.code == "matrix-file-invalid"


def test_the_releases_that_were_added_are_told_once_and_sorted() -> None:
    found = added(
        onnxruntime={"build": [ORT, {**ORT, "platform": "windows_x86_64"}]},
        nvidia={"distribution": [cublas("12.9.9", "12.9.8")]},
        toolkits={"toolkit": [toolkit("12.9.9")]},
        torch={
            "torch": [TORCH],
            "companion": [companion("torchvision", "0.35.0")],
        },
    )

    assert found.releases == (
        *("cuda-toolkit 12.9.9", "nvidia-cublas-cu12 12.9.8", "nvidia-cublas-cu12 12.9.9"),
        *("onnxruntime-gpu 1.32.0", "torch 2.20.0", "torchvision 0.35.0"),
    )


def test_what_the_shipped_table_has_is_not_taken_from_the_file() -> None:
    shipped: dict[str, Any] = {
        "build": [{**ORT, "size": 1}],
        "gone": ["kept"],
        "date": "2026-11-20",
    }
    other: list[dict[str, Any]] = [
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


def test_a_table_that_does_not_grow_stays() -> None:
    table = {"floor": [1]}

    assert with_additions("drivers", table, [added()]) is table


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


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ({"onnxruntime": {"build": [{**ORT, "version": "1.x"}]}}, "build[0].version: "),
        ({"onnxruntime": {"build": [PLACE]}}, "KeyError: "),
        (
            {"onnxruntime": {"build": [{**ORT, "wheels": [{**WHEEL, "file": "../a.whl"}]}]}},
            "build[0].wheels[0].file: cannot be '../a.whl'",
        ),
        (
            {"onnxruntime": {"build": [{**ORT, "requires": ["a\x1b[2J"]}]}},
            "build[0].wheels[0].requires[0]: cannot be ",
        ),
        (
            {"onnxruntime": {"build": [{**ORT, "requires": ["numpy @ https://a.invalid/n.whl"]}]}},
            "build[0].wheels[0].requires[0]: cannot be 'numpy @ ",
        ),
        (
            {"nvidia": {"distribution": [cublas("12.9", size=10**15)]}},
            "distribution[0].releases[0].size: cannot be '1000000000000000'",
        ),
        (
            {"toolkits": {"toolkit": [{**toolkit("13.9"), "ranges": {"a b": ">1"}}]}},
            "toolkit[0].ranges[a key]: cannot be 'a b'",
        ),
        (
            {"torch": {"torch": [], "companion": [{**companion("a", "1"), "torch": "2.9"}]}},
            "companion[0].torch: Invalid specifier",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_with_their_key(rows: Any, problem: str) -> None:
    with pytest.raises(Error) as caught:
        added(**rows)

    assert caught.value.code == "matrix-file-invalid"
    assert str(caught.value.values["problem"]).startswith(problem)
    assert len(str(caught.value.values["problem"])) <= 300


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = text()
    monkeypatch.setattr(additions, "LARGEST", len(whole))
    assert len(parse_all(whole, "rows.json")) == 1

    with pytest.raises(Error) as caught:
        parse_all(whole + b" ", "rows.json")

    assert caught.value.code == "matrix-file-invalid"


DAMAGE: tuple[Any, ...] = (
    *(None, 1, -1, True, 1.5, "", "x", "1.x", "9" * 3000, "\ud800", "../x", "a b", "\n", "²"),
    *([], {}, ["x"], [1], {"a": "b"}, {"a": 1}),
)


def _places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        yield from _places(inner, (*path, key))
    for at, inner in enumerate(value) if isinstance(value, list) else ():
        yield (*path, at)
        yield from _places(inner, (*path, at))


def test_whatever_stands_in_a_row_ends_in_a_plan_or_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The digest of each file is right: it is of these rows."""
    monkeypatch.setenv("HOME", str(tmp_path))
    whole = tables(
        nvidia={"distribution": [cublas("12.99.1")]},
        toolkits={"toolkit": [toolkit("13.99.0")]},
        torch={"torch": [TORCH], "companion": [companion("torchvision", "0.99.0")]},
    )
    places, random = [*_places(whole)], Random(7)  # noqa: S311 - the same damage each time
    commands = (
        ("--facts", "example", "--json"),
        ("--driver", "580.65.06", "--gpu", "8.0", "--torch", "match"),
        ("matrix", "1.32.0"),
    )
    codes = set()
    for turn in range(30):
        rows, (*path, last) = copy.deepcopy(whole), random.choice(places)
        functools.reduce(operator.getitem, path, rows)[last] = random.choice(DAMAGE)
        file = tmp_path / "rows.json"
        file.write_text(json.dumps(additions_json("2026-11-23", "https://a.example", rows)))
        code = main([*commands[turn % 3], "--matrix", str(file)])
        codes.add(code)
        told = capsys.readouterr()
        assert code in {0, 1, 7}, (path, last, told.err)
        if code == 7:
            assert "is not valid compatibility data" in told.out + told.err
    assert 7 in codes
    assert codes & {0, 1}
    use_additions(())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_place_of_the_users_rows_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    kept = tmp_path / ".local/share/ortgpu-fix/matrix.json"
    kept.parent.mkdir(parents=True)
    os.mkfifo(kept)

    assert main(["matrix"]) == 0
    assert f"Ignored {kept}: it is not a regular file" in " ".join(capsys.readouterr().err.split())
    assert other_lines(kept, "https://a.example") == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("kind", ["pipe", "deep", "of another", "of none"])
def test_a_reading_that_is_kept_and_is_not_that_reading_is_made_anew(
    tmp_path: Path, kind: str
) -> None:
    """A pipe was waited for, and a file copied over another told of another wheel."""
    cache = ReadingCache(tmp_path)
    assert cache.get("a", lambda: [1]) == cache.get("a", list) == [1]
    (kept,) = tmp_path.glob("*/*.json")
    assert cache.get("b", lambda: [2]) == [2]
    (other,) = {*tmp_path.glob("*/*.json")} - {kept}
    text = {"deep": "[" * 100_000, "of another": other.read_text(), "of none": '{"value": 1}'}
    kept.unlink()
    if kind == "pipe":
        os.mkfifo(kept)
    elif kind == "folder":
        kept.mkdir()
        with pytest.raises(OSError, match="directory"):
            cache.get("a", lambda: [3])
        return
    else:
        kept.write_text(text[kind])

    assert cache.get("a", lambda: [3]) == [3]
    assert cache.get("a", list) == [3]
