"""Parse the lines that `query_gpus` printed of one of NVIDIA's libraries.

What a library printed before it hung or crashed counts too.
"""

import re
from typing import Literal, NamedTuple, cast, get_args

from ..utils.json_reader import LenientObject, read_rows
from .model import Gpu

QueryState = Literal["absent", "unloadable", "answered", "hangs", "crashed", "unasked"]
STATES = get_args(QueryState)


class LibraryReply(NamedTuple):
    """What one library replied, or why it did not."""

    state: QueryState
    call: str = ""
    """The call that hangs or crashed."""
    code: int = 0
    """The result of its initialisation; 0 is success."""
    problem: str = ""
    driver: str | None = None
    cuda: str | None = None
    gpus: tuple[Gpu, ...] | None = None
    lost: str = ""
    """What NVML says of a GPU that it cannot read."""
    mig: tuple[int, ...] = ()
    """The indices of the GPUs whose MIG mode is on."""
    file: str | None = None

    def answered(self, *codes: int) -> bool:
        """Return whether its initialisation returned one of `codes`."""
        return self.state == "answered" and self.code in codes


def parse_reply(
    stdout: str, library: str, *, returncode: int | None, timed_out: bool
) -> LibraryReply:
    """Read what `query_gpus` printed of one library; how it ended shows a hang or a crash.

    A line: `{"library": "nvml", "state": "answered", "code": 0, "driver": "535.104.12", …}`.
    """
    replies = [reply for reply in read_rows(stdout) if reply.text("library") == library]
    if not replies:
        return LibraryReply(state="hangs" if timed_out else "unasked", call="dlopen")
    reply = replies[-1]
    state = reply.text("state")
    if state == "asking":  # a library that only hangs leaves the child to end by itself
        state = "hangs" if timed_out or returncode == 0 else "crashed"
    if state not in STATES:
        return LibraryReply(state="unasked")
    gpus = reply.rows("gpus")
    return LibraryReply(
        state=cast("QueryState", state),
        call=_text(reply, "call"),
        code=reply.integer("code") or 0,
        problem=_text(reply, "problem"),
        driver=release(_text(reply, "driver")),
        cuda=cuda_version(reply.integer("cuda")),
        gpus=None if reply.values("gpus") is None else tuple(_gpu(gpu) for gpu in gpus),
        lost=next((_text(gpu, "problem") for gpu in gpus if gpu.has("problem")), ""),
        mig=tuple(at for at, gpu in enumerate(gpus) if gpu.flag("mig")),
        file=_text(reply, "file") or None,
    )


def _text(reply: LenientObject, key: str) -> str:
    return (reply.text(key) or "").strip()


def _gpu(gpu: LenientObject) -> Gpu:
    """Read `{"name": "…", "compute_capability": [8, 0], "memory": 85899345920}` (bytes)."""
    memory, pair = gpu.integer("memory"), gpu.values("compute_capability")
    capability = None
    if pair is not None and len(pair) == 2:  # noqa: PLR2004 - major and minor
        capability = compute_capability(f"{pair[0]}.{pair[1]}")
    return Gpu(
        name=_text(gpu, "name") or None,
        compute_capability=capability,
        memory_mib=memory // 2**20 if memory is not None and memory >= 2**20 else None,
    )


def release(text: str) -> str | None:
    """Return the driver release in `text` (`535.104.12`), None where there is none."""
    number = re.search(r"(?<![\d.])[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?![\d.])", text)
    return number[0] if number else None


def compute_capability(text: str) -> str | None:
    """Return `text` where it is a compute capability (`8.6`), else None (`[N/A]`)."""
    return text if re.fullmatch(r"[0-9]{1,2}\.[0-9]", text) else None


def cuda_version(number: int | None) -> str | None:
    """Return `12.2` for 12020, as cuDriverGetVersion writes it; None for what is no version."""
    if number is None or not 1000 <= number < 100_000:  # noqa: PLR2004 - CUDA 1.0 to 99
        return None
    return f"{number // 1000}.{number % 1000 // 10}"
