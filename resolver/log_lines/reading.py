"""The bytes of a log as text, whole where it is short, piece by piece where it is long."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from .matcher import PASTED
from .patterns import REACH

PIECE = 1_000_000
"""About how many characters are looked at at a time in a log that is too long to hold."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 4_096
"""How many bytes show whether it is UTF-16 without a mark."""
_LATIN = 0.05
"""The least share of Latin characters in a log, by which its UTF-16 is known: in the other place a
log of Chinese words and paths has a zero in few different characters (U+4E00)."""

_SPACED = re.compile(r"(?m)^ ?((?:[^\n] ){30,}[^\n]?)$")
"""A line of UTF-16 that was shown byte by byte, its zeros as blanks: `l o a d   f a i l e d`."""


def text_of(blocks: Iterable[bytes]) -> str | Iterator[str]:
    """Return a log as `explain_log` takes it: whole up to `PASTED` characters, else in pieces.

    It is UTF-8, or UTF-16 with or without a mark (PowerShell's `>` writes it); what is neither is
    read as well as it can be, also where it was pasted with a blank after each letter. Of JSON it
    is the texts in it.
    """
    texts = decoded(blocks)
    begin: list[str] = []
    length = 0
    for text in texts:
        begin.append(text)
        length += len(text)
        if length > PASTED:
            return _pieces(chain(begin, texts))
    return _SPACED.sub(lambda line: line[1][::2], _of_json("".join(begin)))


def _of_json(text: str) -> str:
    """Return the texts in a document of JSON, in its order; any other text unchanged."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        left: list[object] = [json.loads(text)]
    except (ValueError, RecursionError):
        return text
    texts: list[str] = []
    while left:
        value = left.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, (dict, list)):
            left += reversed([*(value.values() if isinstance(value, dict) else value)])
    return "\n\n".join(texts)


def decoded(blocks: Iterable[bytes]) -> Iterator[str]:
    """Yield the text of bytes: UTF-8, or UTF-16 with or without a mark."""
    blocks = iter(blocks)
    first = b""
    while len(first) < _SAMPLE:
        block = next(blocks, b"")
        if not block:
            break
        first += block
    decoder = codecs.getincrementaldecoder(_encoding(first))(errors="replace")
    yield decoder.decode(first)
    for block in blocks:
        yield decoder.decode(block)
    yield decoder.decode(b"", final=True)


def _encoding(first: bytes) -> str:
    for mark, encoding in _MARKS:
        if first.startswith(mark):
            return encoding
    units = [*zip(first[:_SAMPLE:2], first[1:_SAMPLE:2], strict=False)]
    little = [low for low, high in units if high == 0 != low]
    big = [low for high, low in units if high == 0 != low]
    few, many = sorted(len(set(letters)) for letters in (little, big))
    if max(len(little), len(big)) <= len(units) * _LATIN or 2 * few > many:
        return "utf-8"
    return "utf-16-le" if len(set(little)) == many else "utf-16-be"


def _pieces(texts: Iterator[str]) -> Iterator[str]:
    """Yield pieces that end where a line ends; of a line without an end, pieces that overlap."""
    rest = ""
    for text in texts:
        rest += text
        if len(rest) < PIECE:
            continue
        end = rest.rfind("\n") + 1
        if end:
            yield rest[:end]
            rest = rest[end:]
        else:
            yield rest
            rest = rest[-REACH:]
    if rest:
        yield rest
