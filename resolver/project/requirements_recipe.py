"""Write the two wheels into a requirements file, as pip, uv and pip-tools read it.

pip and uv find them by `--find-links`, a directory beside the file. Their versions have a local
label, which no index has, so nobody can take another file for them. All else stays, byte for byte.
"""

from __future__ import annotations

import re

from packaging.markers import Marker
from packaging.requirements import Requirement

from ..companions.contents import LABEL, LIBRARIES
from ..errors import Error
from ..facts.model import CPU_BUILD, GPU_BUILD
from ..requirements.lines import logical_lines, without_options
from .model import COMMENT, FOLDER, Wanted
from .requirement_lines import named_build, serves

_HASH = re.compile(r"\s--hash[ =]")
_REMARK = re.compile(r"[ \t]+#[^\n]*")
_OURS = (f"# {COMMENT}", f"--find-links {FOLDER}")


def edited_requirements(text: str, wanted: Wanted, *, adds: bool) -> str:
    """Return a requirements file with the lines of onnxruntime that fit the plan.

    `adds`: it gets the lines of the two wheels. The user's line of onnxruntime that the placeholder
    does not meet is for the other machines, and one of onnxruntime-gpu has the planned version.
    Raises Error `project-hashes` where the file has hashes: then a lock is what it wants.
    """
    if _HASH.search(text):
        raise Error("project-hashes")
    end = "\r\n" if "\r\n" in text else "\n"
    pieces: list[str] = []
    at: int | None = None
    for _, raw in logical_lines(text):
        if _is_ours(raw):
            at = len(pieces) if at is None else at
        else:
            pieces.append(_edited(raw, wanted))
    if adds:
        block = end.join(_block(wanted)) + end
        if at is None:
            at = len(pieces)
            if pieces and "".join(pieces) and not "".join(pieces).endswith("\n"):
                block = end + block
        pieces.insert(at, block)
    return "".join(pieces)


def _block(wanted: Wanted) -> list[str]:
    pins = [f"{wheel.name}=={wheel.version}" for wheel in (wanted.placeholder, wanted.libraries)]
    return [*_OURS, *(f"{pin} ; {wanted.marker}" for pin in pins)]


def _is_ours(raw: str) -> bool:
    line = raw.strip()
    pin = line.partition(";")[0].rstrip()
    placeholder = pin.startswith(f"{CPU_BUILD}==") and pin.endswith(LABEL)
    return line in _OURS or placeholder or pin.startswith(f"{LIBRARIES}==")


def _edited(raw: str, wanted: Wanted) -> str:
    """Return a line, with its comment and its end, as it is to be."""
    line = without_options(raw)
    name = named_build(line, wanted)
    if name is None or serves(line, wanted):
        return raw
    found = Requirement(line)
    if name == GPU_BUILD:
        extras = f"[{','.join(sorted(found.extras))}]" if found.extras else ""
        new = f"{found.name}{extras}=={wanted.release}"
        new += f" ; {found.marker}" if found.marker else ""
    else:
        both = f"({found.marker}) and ({wanted.elsewhere})" if found.marker else wanted.elsewhere
        found.marker = None
        new = f"{found} ; {Marker(both)}"
    remark = _REMARK.search(raw)
    kept = remark[0].rstrip("\r") if remark else ""
    return new + kept + raw[len(raw.rstrip("\r\n")) :]
