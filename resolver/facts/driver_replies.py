"""What one of NVIDIA's libraries answered, in the lines that `gpu_query.py` printed.

A library that hung or crashed has answered too: what it said before counts.
"""

import re
from typing import Literal, NamedTuple, cast, get_args

from ..utils.json_reader import LenientObject, read_rows
from .model import Gpu

QueryState = Literal["absent", "unloadable", "answered", "hangs", "crashed", "unasked"]
STATES = get_args(QueryState)


class LibraryReply(NamedTuple):
    """What became of asking one library."""

    state: QueryState
    call: str = ""
    """The call that hangs or crashed."""
    code: int = 0
    """What its initialisation returned; 0 is success."""
    problem: str = ""
    driver: str | None = None
    cuda: str | None = None
    gpus: tuple[Gpu, ...] | None = None
    lost: str = ""
    """What NVML says of a GPU that it cannot read."""
    mig: tuple[int, ...] = ()
    """The indices of the GPUs whose MIG mode is on."""
    file: str | None = None


def parse_reply(
    stdout: str, library: str, *, returncode: int | None, timed_out: bool
) -> LibraryReply:
    """Read what `gpu_query.py` printed of one library, and how it ended where it did not finish.

    A line: `{"library": "nvml", "state": "answered", "code": 0, "driver": "535.104.12", …}`.
    """
    rows = [row for row in read_rows(stdout) if row.text("library") == library]
    row = rows[-1] if rows else None
    if row is None:
        return LibraryReply(state="hangs" if timed_out else "unasked", call="dlopen")
    state = row.text("state")
    if state == "asking":  # a library that only hangs leaves the child to end by itself
        state = "hangs" if timed_out or returncode == 0 else "crashed"
    if state not in STATES:
        return LibraryReply(state="unasked")
    gpus = row.rows("gpus")
    return LibraryReply(
        state=cast("QueryState", state),
        call=_said(row, "call"),
        code=row.integer("code") or 0,
        problem=_said(row, "problem"),
        driver=release(_said(row, "driver")),
        cuda=cuda_version(row.integer("cuda")),
        gpus=None if row.values("gpus") is None else tuple(_gpu(gpu) for gpu in gpus),
        lost=next((_said(gpu, "problem") for gpu in gpus if gpu.has("problem")), ""),
        mig=tuple(at for at, gpu in enumerate(gpus) if gpu.flag("mig")),
        file=_said(row, "file") or None,
    )


def _said(row: LenientObject, key: str) -> str:
    return (row.text(key) or "").strip()


def _gpu(row: LenientObject) -> Gpu:
    """Read `{"name": "…", "compute_capability": [8, 0], "memory": 85899345920}` (bytes)."""
    memory, pair = row.integer("memory"), row.values("compute_capability")
    capability = None
    if pair is not None and len(pair) == 2:  # noqa: PLR2004 - major and minor
        capability = compute_capability(f"{pair[0]}.{pair[1]}")
    return Gpu(
        name=_said(row, "name") or None,
        compute_capability=capability,
        memory_mib=memory // 2**20 if memory and memory > 0 else None,
    )


def release(text: str) -> str | None:
    """Return the driver release in `text` (`535.104.12`), None where there is none."""
    found = re.search(r"(?<![\d.])[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?![\d.])", text)
    return found[0] if found else None


def compute_capability(text: str) -> str | None:
    """Return `text` where it is a compute capability (`8.6`), else None (`[N/A]`)."""
    return text if re.fullmatch(r"[0-9]{1,2}\.[0-9]", text) else None


def cuda_version(number: int | None) -> str | None:
    """Return `12.2` for 12020, as cuDriverGetVersion writes it; None for what is no version."""
    if number is None or not 1000 <= number < 100_000:  # noqa: PLR2004 - CUDA 1.0 to 99
        return None
    return f"{number // 1000}.{number % 1000 // 10}"
