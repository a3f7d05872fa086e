"""For a service: no session goes on without CUDA in silence.

Shell, and not ours: it travels in the wheel that `companions` makes, as `service.py` of the package
`_ortgpu_fix_libraries`. Imported by `demand` where one of these variables is set:

- `ORTGPU_FIX_REQUIRE=cuda`: a session that asked for CUDA or TensorRT and has neither is an error,
  with the reason. It is neither a ValueError nor a RuntimeError, after which onnxruntime would try
  again without CUDA, and so no session is left.
- `ORTGPU_FIX_PROVIDERS=cuda`: a session that names no provider gets CUDA before the CPU, and a line
  on standard error says so.
"""

# ruff: noqa: ANN401, PTH113, PTH118, PTH120, T201
from __future__ import annotations

import ctypes
import os
import sys

from . import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CUDA = "CUDAExecutionProvider"
GPU = {CUDA, "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider"}


class GpuRequiredError(Exception):
    """A session asked for the GPU and cannot have it."""


def guard(module: Any) -> None:
    """Look at each session that onnxruntime's compiled module `module` begins."""
    requires, adds = wants("REQUIRE"), wants("PROVIDERS")
    folder = os.path.dirname(module.__file__ or "")
    original = module.InferenceSession.initialize_session

    def initialize_session(self: Any, providers: Any = (), *rest: Any, **named: Any) -> Any:
        asked = [str(name) for name in providers or ()]
        if adds and not asked and not has_own(getattr(self, "session_options", None)):
            if CUDA in module.get_available_providers():
                asked, providers = [CUDA], [CUDA, "CPUExecutionProvider"]
                rest = ([{}, {}], *rest[1:])
                tell("a session without providers uses CUDA (ORTGPU_FIX_PROVIDERS)")
            elif requires:
                raise refusal(reason(folder))
            else:
                tell(
                    "a session without providers cannot use CUDA (ORTGPU_FIX_PROVIDERS): "
                    + reason(folder)
                )
        if not requires or not GPU.intersection(asked):
            return original(self, providers, *rest, **named)
        try:
            result = original(self, providers, *rest, **named)
        except Exception as error:
            raise refusal(str(error)) from error
        if not GPU.intersection(self.get_providers()):
            raise refusal(reason(folder))
        return result

    initialize_session.__doc__ = original.__doc__
    module.InferenceSession.initialize_session = initialize_session


def guard_runs(module: Any) -> None:
    """Refuse what onnxruntime does where CUDA fails in a run: the same session without it."""
    session = getattr(module, "InferenceSession", None)
    original = getattr(session, "set_providers", None)
    if original is None or not wants("REQUIRE"):
        return

    def set_providers(self: Any, providers: Any = None, provider_options: Any = None) -> Any:
        failed = sys.exc_info()[1]
        if failed is not None and GPU.intersection(self.get_providers()):
            raise refusal(str(failed)) from failed
        return original(self, providers, provider_options)

    set_providers.__doc__ = original.__doc__
    session.set_providers = set_providers  # type: ignore[union-attr]


def wants(name: str) -> bool:
    """Tell whether the variable ORTGPU_FIX_`name` asks for CUDA."""
    return os.environ.get("ORTGPU_FIX_" + name, "").lower() == "cuda"


def has_own(options: Any) -> bool:
    """Tell whether the options of a session hold providers."""
    try:
        return bool(options.has_providers())
    except AttributeError:
        return False


def refusal(why: str) -> GpuRequiredError:
    """Return the error, with the reason, and say it: a program may catch it and take the CPU."""
    text = "a session requested CUDA but cannot use it (ORTGPU_FIX_REQUIRE=cuda): " + why
    tell(text)
    return GpuRequiredError("ortgpu-fix: " + text)


def reason(folder: str) -> str:
    """Return why the provider in `folder` was not used: it lacks, or does not load, or cannot."""
    for name in load.PROVIDERS:
        file = os.path.join(folder, name)
        if os.path.isfile(file):
            try:
                ctypes.CDLL(file)
            except OSError as error:
                return str(error)
            return "its library loads; onnxruntime's message above shows what failed"
    return "this onnxruntime is built without CUDA"


def tell(text: str) -> None:
    """Say something to whoever reads the service's log."""
    if sys.stderr is not None:
        print("ortgpu-fix: " + text, file=sys.stderr, flush=True)
