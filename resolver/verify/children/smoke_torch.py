"""Describe torch, and compute with it, in the process of `smoke`.

Run by the target's interpreter (3.8 or newer), with the standard library and the target's torch.
"""

from __future__ import annotations

import importlib.util
import math
import re
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

Tensor = Any
SIDE = 64
"""Of the matrices. All numbers are small and whole: exact in TF32 too."""


def found() -> dict[str, str | None]:
    """Return the version of the installed torch, and its CUDA, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return {"version": None, "cuda": None}
    try:
        text = Path(spec.origin).with_name("version.py").read_text("utf-8", "replace")
    except OSError:
        text = ""

    def value(name: str) -> str | None:  # cuda: Optional[str] = '12.8'
        row = re.search(rf"^{name}\b[^=\n]*=\s*['\"]([^'\"\n]+)['\"]", text, re.MULTILINE)
        return row.group(1) if row else None

    return {"version": value("__version__"), "cuda": value("cuda")}


def import_torch() -> tuple[ModuleType | None, str | None]:
    """Return torch, or the error of its import."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer
        return None, short(error)
    return torch, None


def unavailable(torch: ModuleType) -> str | None:
    """Return torch's own error where it cannot use a GPU, else None."""
    if torch.cuda.is_available():
        return None
    try:
        torch.cuda.init()
    except Exception as error:  # noqa: BLE001 - an answer like every other
        return short(error)
    return "torch.cuda.is_available() is False"


def compute(torch: ModuleType, device: str) -> dict[str, object]:
    """Multiply and convolve on `device` and on the CPU; return the largest relative differences."""
    result: dict[str, object] = {"product": None, "convolution": None, "error": None}
    functional = torch.nn.functional

    def numbers(*shape: int) -> Tensor:
        return torch.arange(math.prod(shape)).remainder(5).sub(2).to(torch.float32).reshape(shape)

    def apart(cpu: Tensor, gpu: Tensor) -> float:
        largest = max(1.0, float(cpu.abs().max()))
        return float((cpu - gpu.cpu()).abs().max()) / largest

    try:
        left, right = numbers(SIDE, SIDE), numbers(SIDE, SIDE).t().contiguous()
        result["product"] = apart(left @ right, left.to(device) @ right.to(device))
        image, kernel = numbers(1, 3, 16, 16), numbers(4, 3, 3, 3)
        convolved = functional.conv2d(image.to(device), kernel.to(device))
        result["convolution"] = apart(functional.conv2d(image, kernel), convolved)
    except Exception as error:  # noqa: BLE001 - an answer like every other
        result["error"] = short(error)
    return result


def short(error: BaseException) -> str:
    """Return the error as one line."""
    return " ".join("".join(traceback.format_exception_only(type(error), error)).split())
