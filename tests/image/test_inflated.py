"""A stream of gzip, read on and passed over, against Python's own reader."""

from __future__ import annotations

import gzip
import importlib
import io
import random
import sys
import zlib

import pytest
from isal import isal_zlib

from ortgpu_fix.image import inflated
from ortgpu_fix.image.inflated import Inflated

CONTENT = random.Random(1).randbytes(900_000) + bytes(3_000_000) + b"the end" * 100_000  # noqa: S311


@pytest.fixture(params=[isal_zlib, zlib], ids=["isal", "zlib"], autouse=True)
def unpacker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What unpacks: zlib, where isal cannot be had."""
    assert vars(inflated)["inflater"].__name__ == "isal.isal_zlib"
    monkeypatch.setattr(inflated, "inflater", request.param)


@pytest.mark.parametrize("members", [1, 3])
def test_it_reads_what_gzip_reads(members: int) -> None:
    step = len(CONTENT) // members + 1
    parts = [CONTENT[at : at + step] for at in range(0, len(CONTENT), step)]
    ours = Inflated(io.BytesIO(b"".join(map(gzip.compress, parts))))
    theirs = io.BytesIO(CONTENT)
    chance = random.Random(2)  # noqa: S311 - the same each time
    while ours.tell() < len(CONTENT):
        ahead = chance.choice([0, 1, 511, 70_000, 1_100_000])
        to = min(ours.tell() + ahead, len(CONTENT))
        assert ours.seek(to) == theirs.seek(to) == ours.tell()
        size = chance.choice([0, 1, 512, 100_000])
        assert ours.read(size) == theirs.read(size)
        assert ours.tell() == theirs.tell()
    assert ours.read(10) == b""
    assert ours.seek(len(CONTENT) + 10) == len(CONTENT)


def test_it_goes_back_only_within_a_piece() -> None:
    ours = Inflated(io.BytesIO(gzip.compress(CONTENT)))
    ours.read(1000)
    assert ours.seek(10) == 10
    assert ours.read(5) == CONTENT[10:15]
    ours.seek(2_500_000)
    with pytest.raises(io.UnsupportedOperation):
        ours.seek(10)


def test_what_is_damaged_or_cut_off() -> None:
    whole = gzip.compress(CONTENT)
    wrong_sum = whole[:-8] + bytes(4) + whole[-4:]
    for broken, expected in (
        (whole[:-9], EOFError),
        (whole[:-1], EOFError),
        (whole[:20], EOFError),
        (wrong_sum, zlib.error),
        (whole + b"no gzip at all", zlib.error),
        (b"no gzip at all", zlib.error),
    ):
        with pytest.raises(expected):
            Inflated(io.BytesIO(broken)).read(len(CONTENT) + 1)
    for short in (whole + b"no gzip", b"no gzip"):  # isal judges a head once it has all of it
        with pytest.raises((zlib.error, EOFError)):
            Inflated(io.BytesIO(short)).read(len(CONTENT) + 1)
    assert Inflated(io.BytesIO(gzip.compress(b""))).read(1) == b""


def test_zlib_serves_where_isal_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    try:
        assert importlib.reload(inflated).inflater is zlib
    finally:
        monkeypatch.undo()
        importlib.reload(inflated)
