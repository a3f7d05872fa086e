"""What is printed where the encoding of a stream lacks it."""

from __future__ import annotations

import io
import sys

import pytest

from ortgpu_fix.cli.console import user_language
from ortgpu_fix.cli.streams import open_streams


def printed(monkeypatch: pytest.MonkeyPatch, encoding: str, text: str) -> bytes:
    """Return the bytes that reach a pipe of this encoding."""
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, encoding, newline=""))
    open_streams()
    print(text, end="", flush=True)
    return pipe.getvalue()


@pytest.mark.parametrize(
    ("encoding", "text", "shown"),
    [
        ("cp1252", "✗ 1 → 2 …", "x 1 -> 2 …"),
        ("cp437", "✗ 1 × 2 · …", "x 1 x 2 · ..."),
        ("ascii", "✗✓·→×… “a” ‘b’ – —", "x+-->x... \"a\" 'b' - -"),
        ("cp936", "已修复", "已修复"),
        ("cp1252", "C:/用户/venv", r"C:/\u7528\u6237/venv"),
    ],
)
def test_signs_and_paths(
    monkeypatch: pytest.MonkeyPatch, encoding: str, text: str, shown: str
) -> None:
    assert printed(monkeypatch, encoding, text).decode(encoding) == shown


@pytest.mark.parametrize(("encoding", "language"), [("cp936", "zh"), ("cp1252", "en")])
def test_english_where_chinese_cannot_be_shown(
    monkeypatch: pytest.MonkeyPatch, encoding: str, language: str
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding))

    assert user_language({"ORTGPU_FIX_LANG": "zh"}) == language
