"""Whose code made a session: of a distribution, of the program, of neither."""

from __future__ import annotations

import pytest

from ortgpu_fix.guests.run.events import Frame, InferenceSession
from ortgpu_fix.guests.run.makers import made_by


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("/usr/lib/python3.11/threading.py", False),
        (r"C:\Python311\Lib\concurrent\futures\thread.py", False),
        ("<string>", False),
        ("/home/me/project/Lib/detect.py", True),
        (r"C:\project\Lib\detect.py", True),
    ],
)
def test_pythons_own_files_made_no_session(file: str, *, own: bool) -> None:
    frame = Frame(file, 3, "main")
    made = made_by(InferenceSession(id="1", pid=7, frames=(frame,)))

    assert (made.maker is not None, made.caller) == (own, frame if own else None)
