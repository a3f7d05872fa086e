"""The first lines of PTX text: which version of the language, and so which CUDA toolkit."""

from __future__ import annotations

import re

_ISA = re.compile(rb"\.version ([0-9]+\.[0-9]+)")
_ENOUGH = 2048


def version(payload: bytes, compression: str) -> str:
    """Return the PTX ISA version (`8.7`) of a payload; empty where it cannot be read.

    Only the first 2 KiB are inflated: the directive stands at the start.
    """
    text = _lz4_front(payload, _ENOUGH) if compression == "lz4" else payload[:_ENOUGH]
    found = _ISA.search(text)
    return found[1].decode() if found else ""


def _lz4_front(block: bytes, wanted: int) -> bytes:
    """Inflate the first `wanted` bytes of an LZ4 block; less where the block ends or is damaged."""
    out = bytearray()
    position = 0

    def length(nibble: int) -> int:
        nonlocal position
        total = nibble
        while nibble == 15 and position < len(block):  # noqa: PLR2004
            total += block[position]
            position += 1
            if block[position - 1] != 255:  # noqa: PLR2004
                break
        return total

    while position < len(block) and len(out) < wanted:
        token = block[position]
        position += 1
        literals = length(token >> 4)
        out += block[position : position + literals]
        position += literals
        if position + 2 > len(block):
            break
        distance = int.from_bytes(block[position : position + 2], "little")
        position += 2
        match = length(token & 15) + 4
        if not 0 < distance <= len(out):
            break
        for _ in range(min(match, wanted)):
            out.append(out[-distance])
    return bytes(out[:wanted])
