"""The bytes of a log as text, whole where it is short, piece by piece where it is long."""

from __future__ import annotations

import codecs
import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate, chain, pairwise
from typing import Any

from .matcher import PASTED
from .patterns import REACH

PIECE = 1_000_000
"""About how many characters are looked at at a time in a log that is too long to hold."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_TOLD_BY = 4_096
"""How many bytes tell whether it is UTF-16 without a mark."""
_LATIN = 0.05
"""The least share of Latin characters in a log, by which its UTF-16 is known: in the other place a
log of Chinese words and paths has a zero in few different characters (U+4E00)."""

_SPACED = re.compile(r"(?m)^ ?((?:[^\n] ){30,}[^\n]?)$")
"""A line of UTF-16 that was shown byte by byte, its zeros as blanks: `l o a d   f a i l e d`."""
_WRITTEN = ("title", "body", "description", "note", "raw")
"""Where a thread as JSON has what people wrote: GitHub's and GitLab's API, `gh`, Discourse."""
_AUTHOR = ("author", "user", "username")
"""Where it has who wrote it: a name, or what has one."""
_NAME = ("login", "username")
_HEAD = re.compile(
    r"(?m)^(?:author:\t(?P<by>\S+)|@?(?P<author>[\w.-]{1,40})\s{1,2}(?:commented|opened)"
    r"(?:\s{1,2}(?:this issue )?(?:on )?(?:[A-Z][a-z]{2,8} \d|\d{1,3} \w{3,7} ago|last |yesterday)"
    r"[^\n]{0,80})?)\r?$"
)
"""What stands above what a person wrote in a thread, as `gh` prints it or as a page is copied."""


def text_of(blocks: Iterable[bytes]) -> str | Iterator[str]:
    """Return a log as `explain_log` takes it: whole up to `PASTED` characters, else in pieces.

    It is UTF-8, or UTF-16 with or without a mark (PowerShell's `>` writes it); what is neither is
    read as well as it can be, also where it was pasted with a blank after each letter. Of a thread
    as JSON it is what people wrote.
    """
    texts = _decoded(iter(blocks))
    begin: list[str] = []
    length = 0
    for text in texts:
        begin.append(text)
        length += len(text)
        if length > PASTED:
            return _pieces(chain(begin, texts))
    return _SPACED.sub(lambda line: line[1][::2], _written("".join(begin)))


def _written(text: str) -> str:
    """Return what people wrote in a thread as JSON, in its order; any other text as it is."""
    try:
        left: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return text
    words: list[str] = []
    while left:
        value = left.pop(0)
        if isinstance(value, dict):
            its = [value[key] for key in _WRITTEN if isinstance(value.get(key), str)]
            author = _author(value)
            words += [f"{author} commented", *its] if its and author else its
            left[:0] = value.values()
        elif isinstance(value, list):
            left[:0] = value
    return "\n\n".join(words) or text


def _author(post: Mapping[str, Any]) -> str | None:
    who = next((post[key] for key in _AUTHOR if post.get(key)), None)
    if isinstance(who, dict):
        who = next((who[key] for key in _NAME if who.get(key)), None)
    return who if isinstance(who, str) else None


def names_authors(text: str) -> bool:
    """Tell whether a text is a thread that names who wrote what."""
    return _HEAD.search(text) is not None


def of_one_author(text: str, lines: Collection[int]) -> str:
    """Return what one person wrote in a thread, with empty lines where others did.

    It is the first who wrote one of `lines`: the machine and the failure of one are not another's.
    Where nobody did, the text stays as it is.
    """
    heads = [*_HEAD.finditer(text)]
    authors = ["", *(head["by"] or head["author"] for head in heads)]
    starts = [0, *(head.start() for head in heads), len(text)]
    parts = [text[start:end] for start, end in pairwise(starts)]
    ends = [*accumulate(part.count("\n") for part in parts[:-1])]
    told = {authors[bisect_left(ends, line)] for line in lines}
    one = next((author for author in authors if author in told), None)
    if one is None:
        return text
    return "".join(
        part if author == one else "\n" * part.count("\n")
        for author, part in zip(authors, parts, strict=True)
    )


def _decoded(blocks: Iterator[bytes]) -> Iterator[str]:
    first = b""
    while len(first) < _TOLD_BY:
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
    units = [*zip(first[:_TOLD_BY:2], first[1:_TOLD_BY:2], strict=False)]
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
