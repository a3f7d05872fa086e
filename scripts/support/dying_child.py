"""Does something in a child that dies, or meets an error or a user, at a step on the disk."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from ortgpu_fix.errors import Error

STEPS = frozenset(
    {*("os.rename", "os.remove", "os.rmdir", "os.mkdir"), "os.chmod", "os.link", "os.truncate"}
)
"""What Python tells its audit hooks of changes to the disk, beside a file that is opened."""
KILLED = 9
counting = threading.Event()
"""Not set while the files of wheels are unpacked: what uv does is no step."""


class Ended(NamedTuple):
    """How something ended."""

    code: str
    """Empty: done; `killed`; or the code of the Error."""
    said: str = ""


def run_until(
    act: Callable[[], None],
    step: int = 0,
    *,
    fails: bool = False,
    meets: Callable[[], None] | None = None,
) -> Ended:
    """Do `act`; with a `step`, in a child that dies at that step on the disk, or meets an error.

    A write to the journal that is the step is half done. Where it `meets` what somebody does just
    then, it goes on.
    """
    if not step:
        try:
            act()
        except Error as error:
            return Ended(error.code, str(error.values))
        return Ended("")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _die_at(step, fails=fails, meets=meets)
        try:
            ended = run_until(act)
        except BaseException as error:  # noqa: BLE001 - it is told
            ended = Ended("internal", repr(error))
        os.write(write, "\0".join(ended).encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        said = file.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ended("killed") if code == KILLED else Ended(*said.split("\0"))


def _die_at(step: int, *, fails: bool, meets: Callable[[], None] | None) -> None:
    """Let this process end, or one operation fail, at the `step` on the disk from now."""
    left, real, lock = [step], os.write, threading.Lock()

    def counted() -> bool:
        with lock:
            left[0] -= counting.is_set()
            return left[0] == 0 and counting.is_set()

    def end() -> None:
        if meets is not None:
            counting.clear()
            return meets()
        if fails:
            raise OSError(28, "No space left on device")
        os._exit(KILLED)

    def hook(event: str, values: tuple[Any, ...]) -> None:
        written = event == "open" and isinstance(values[2], int) and values[2] & 3
        if (event in STEPS or written) and counted():
            end()

    def half(descriptor: int, data: bytes) -> int:
        if data[:1] == b"\n" and counted():
            if meets is None:
                real(descriptor, data[: len(data) // 2])
            end()
        return real(descriptor, data)

    counting.set()
    sys.addaudithook(hook)
    vars(os)["write"] = half
