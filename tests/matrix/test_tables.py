"""The compiled tables, the matrix of them, and what an update adds to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix import data_files
from ortgpu_fix.errors import Error
from ortgpu_fix.matrix import load
from ortgpu_fix.matrix.additions import Additions


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    before = load.used_additions()
    yield
    load.use_additions(before)
    data_files.load_table.cache_clear()
    data_files.compiled_tables.cache_clear()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that the tables are read from."""
    monkeypatch.setattr(data_files, "DATA", tmp_path)
    data_files.load_table.cache_clear()
    data_files.compiled_tables.cache_clear()
    return tmp_path / "compiled.jsonl"


def test_each_line_is_the_table_whose_name_has_its_place(data: Path) -> None:
    data.write_bytes(b'{"a": "sha of a", "b": "sha of b"}\n{"x": 1}\n{"y": 2}\n\n')

    assert data_files.load_table("a") == {"x": 1}
    assert data_files.load_table("b") == {"y": 2}
    assert (data_files.table_hash("a"), data_files.table_hash("b")) == ("sha of a", "sha of b")


@pytest.mark.parametrize(
    "content",
    [b'{"a": "1", "b": "2"}\n{"x": 1}\n', b"no json\n{}\n"],
)
def test_compiled_tables_that_are_damaged_are_told(data: Path, content: bytes) -> None:
    data.write_bytes(content)

    with pytest.raises(Error) as caught:
        data_files.load_table("a")

    assert (caught.value.code, caught.value.values["file"]) == ("matrix-invalid", "compiled.jsonl")


def test_a_data_file_that_cannot_be_read_is_told_with_the_reason(data: Path) -> None:
    with pytest.raises(Error) as caught:
        data_files.read_data_file("absent.json")

    assert caught.value.code == "matrix-invalid"
    assert caught.value.values == {"file": "absent.json", "problem": "No such file or directory"}
    data.with_name("there").write_bytes(b"\x00\xff")
    assert data_files.read_data_file("there") == b"\x00\xff"


def added(version: str = "99.0", index: str = "https://a.example", **row: Any) -> Additions:
    [build, *_] = data_files.load_table("onnxruntime")["build"]
    tables = {
        "onnxruntime": {"build": [{**build, "version": version, **row}]},
        "nvidia": {"distribution": []},
        "toolkits": {"toolkit": []},
        "torch": {"torch": [], "companion": []},
    }
    return Additions("2026-11-22", index, json.loads(json.dumps(tables)), f"digest of {version}")


def test_a_matrix_has_what_an_update_added_and_another_digest() -> None:
    load.use_additions(())
    shipped = load.load_matrix(torch=False)
    feed = "https://feed.example"
    load.use_additions(iter([added(), added("99.1", feed, index_url=feed)]))  # type: ignore[arg-type]
    grown = load.load_matrix(torch=False)

    assert [row.version for row in grown.builds[len(shipped.builds) :]] == ["99.0", "99.1"]
    assert [tuple(row) for row in grown.added] == [
        ("2026-11-22", "https://a.example", ("onnxruntime-gpu 99.0",), False),
        ("2026-11-22", feed, ("onnxruntime-gpu 99.1",), True),
    ]
    assert shipped.added == ()
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", grown.digest)
    assert grown.digest != shipped.digest
    load.use_additions([added("99.1", feed, index_url=feed), added()])
    assert load.load_matrix(torch=False).digest not in {grown.digest, shipped.digest}
    assert [one.index_url for one in load.used_additions()] == [feed, "https://a.example"]


def test_the_digest_is_the_same_with_and_without_torch() -> None:
    without, whole = load.load_matrix(torch=False), load.load_matrix()

    assert without.torch.builds == ()
    assert whole.torch.builds
    assert without.digest == whole.digest
    assert load.add_torch(without).torch.builds == whole.torch.builds
