"""Say once that this environment's set for CUDA is not what it was, and what brings it back.

Shell, and not ours: it travels in the wheel that `companions` makes, as `lost.py` of the package
`_ortgpu_fix_libraries`. Imported by `demand` where another onnxruntime lies in the folder than the
one that the libraries belong to, or where libraries are gone. Any installation may have done that:
the build for CPUs is ahead of the one for CUDA, so that `pip install -U` brings it.

The line is for a process that asks for CUDA, or which providers there are; one that wants the CPU
hears nothing. ORTGPU_FIX_NOTICE=0 turns it off.
"""

# ruff: noqa: ANN401, PTH116, PTH118, PTH120, PTH123, PTH208
from __future__ import annotations

import os
import sys

from . import load, service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TOLD: list[str] = []
WITHOUT_CUDA = {"CPUExecutionProvider", "AzureExecutionProvider"}
STAND_IN = "ORTGPU_FIX_PROVIDED"
"""The file in the folder of metadata of an `onnxruntime` that this program made."""


def watch(module: Any, release: str) -> None:
    """Tell whoever asks the onnxruntime `module` for CUDA that it is not `release`.

    Nothing where it is, or where nobody's metadata says what it is.
    """
    folder = os.path.dirname(module.__file__)
    has_cuda = load.has_cuda(module)
    name, version, installer = owner(os.path.dirname(folder))
    known = name + " " + version not in {" ", release}
    if has_cuda and not known:
        return
    text = "the onnxruntime in " + folder
    if known:
        text = name + " " + version + (" (by " + installer + ")" if installer else "")
    text += "" if has_cuda else ", built without CUDA,"
    text += " has replaced " + release

    def before_session(_: Any, *given: Any, **named: Any) -> None:
        _, options, providers = (*given, None, None, None)[:3]
        names = [*map(name_of, named.get("providers", providers) or ())]
        is_given = service.wants("PROVIDERS") and not names
        if is_given and service.has_own(named.get("sess_options", options)):
            return
        if is_given or not WITHOUT_CUDA.issuperset(names):
            if not has_cuda and service.wants("REQUIRE"):
                raise service.refusal(text + ". " + way_back())
            tell(text)

    call_before(module.InferenceSession, "__init__", before_session)
    for question in ("get_available_providers", "get_device"):
        call_before(module, question, lambda: tell(text))


def name_of(provider: Any) -> str:
    """Return the name in `"CUDAExecutionProvider"` or `("CUDAExecutionProvider", {...})`."""
    return str(provider[0] if isinstance(provider, (tuple, list)) and provider else provider)


def call_before(owner: Any, name: str, function: Callable[..., None]) -> None:
    """Put a function in the place of `owner.name` that first calls `function` likewise."""
    original = getattr(owner, name)

    def calling(*arguments: Any, **named: Any) -> Any:
        function(*arguments, **named)
        return original(*arguments, **named)

    calling.__name__, calling.__doc__ = name, original.__doc__
    setattr(owner, name, calling)


def owner(site: str) -> tuple[str, str, str]:
    """Return who wrote the folder `onnxruntime` in `site` last: name, version, and by which tool.

    That is the distribution with the newest folder of metadata among those that list its module;
    three times nothing where none does.
    """
    found = [(0.0, ("", "", ""))]
    for entry in os.listdir(site):
        folder = os.path.join(site, entry)
        if entry.lower().startswith("onnxruntime") and entry.endswith(".dist-info"):
            listed = "\n" + read(os.path.join(folder, "RECORD"))
            if "\nonnxruntime/__init__.py," in listed and STAND_IN not in os.listdir(folder):
                name, _, version = entry[: -len(".dist-info")].partition("-")
                row = name.replace("_", "-").lower(), version
                by = read(os.path.join(folder, "INSTALLER")).strip()
                found.append((os.stat(folder).st_mtime, (*row, by)))
    return max(found)[1]


def read(file: str) -> str:
    """Return the text of a file, nothing where it cannot be read."""
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def missing(files: list[str]) -> None:
    """Say that libraries of the set are gone."""
    names = ", ".join(os.path.basename(file) for file in files)  # noqa: PTH119
    tell("CUDA libraries of this environment are missing: " + names)


def tell(text: str) -> None:
    """Say it, and the one command that helps; once a process."""
    if not TOLD and os.environ.get("ORTGPU_FIX_NOTICE") != "0":
        TOLD.append(text)
        service.tell(text + ". " + way_back())


def way_back() -> str:
    """Return the command that brings the set back, for this environment."""
    import shlex  # noqa: PLC0415 - only here, and it takes a while

    place = '"' + sys.prefix + '"' if os.name == "nt" else shlex.quote(sys.prefix)
    command = "ortgpu-fix --python " + place + " --apply"
    return "To restore the environment, run: " + command
