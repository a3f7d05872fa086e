"""What onnxruntime and torch prove in one process.

In come the verification of onnxruntime alone and those with torch imported before and after
it; out comes the first, with what the others add. What torch cannot do by itself is told, and is
no fault of the pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from ..plan.reasons import Reason
from .model import UP_TO_THE_DRIVER, Verification

Order = Literal["first", "last", "alone"]
ORDERS: tuple[Order, ...] = ("first", "last")
"""When torch is imported, and computes: before all that onnxruntime does, or after it."""


def needs_torch_check(alone: Verification) -> bool:
    """Tell whether torch must be looked at: it is for CUDA, and onnxruntime does what it can."""
    fine = alone.verdict == "works" or alone.verdict in UP_TO_THE_DRIVER
    return fine and alone.build is not None


def needs_torch_alone(alone: Verification, orders: Mapping[Order, Verification]) -> bool:
    """Tell whether torch has to show what it can by itself."""
    return any(_trouble(alone, seen) is not None for seen in orders.values())


def combine(alone: Verification, orders: Mapping[Order, Verification]) -> Verification:
    """Return `alone`, the verification of onnxruntime, with what `orders` prove besides.

    `orders` has torch `alone` too where one of the others is `needs_torch_alone`.
    """
    by_itself = orders.get("alone")
    own = _torch_trouble(alone, by_itself) if by_itself else None
    pairs = [(order, orders[order]) for order in ORDERS]
    troubles = [(order, seen, _trouble(alone, seen)) for order, seen in pairs]
    # Where torch was alive and onnxruntime failed it is the pair, whatever torch can do alone.
    conflicts = [
        (order, what)
        for order, seen, what in troubles
        if what and (own is None or (_alive(seen) and seen.verdict != alone.verdict))
    ]
    version = alone.build.version if alone.build else "?"
    notes = [
        Reason(code=f"torch-{order}-fails", values=(("what", what),)) for order, what in conflicts
    ]
    if not conflicts and own is not None:
        notes.append(Reason(code="torch-broken", values=(("version", version), ("what", own))))
    elif not conflicts:
        code = "torch-works" if alone.verdict == "works" else "torch-loads"
        notes.append(Reason(code=code, values=(("version", version),)))
    twice = [note for _, seen in pairs for note in seen.notes if note.code == "library-twice"]
    evidence = [
        f"torch imported {order}: {line}"
        for order, seen in pairs
        for line in (seen.torch.lines() if seen.torch else [f"onnxruntime: {seen.verdict}"])
    ]
    return replace(
        alone,
        verdict="torch-conflict" if conflicts else alone.verdict,
        values=(("version", version),) if conflicts else alone.values,
        notes=tuple(dict.fromkeys((*alone.notes, *notes, *twice))),
        evidence=(*alone.evidence, *evidence),
        orders=tuple(orders.items()),
    )


def _trouble(alone: Verification, seen: Verification) -> str | None:
    """Return what went wrong with both in one process, and not with onnxruntime alone."""
    if seen.verdict != alone.verdict:
        last = seen.evidence[-1] if seen.evidence else ""
        return f"onnxruntime: {seen.verdict}" + (f" ({last})" if last else "")
    if seen.torch is None:  # onnxruntime ended the process, as it does alone
        return None
    return _torch_trouble(alone, seen)


def _torch_trouble(alone: Verification, seen: Verification) -> str | None:
    """Return what torch failed at; that it has no GPU is none where onnxruntime has none."""
    torch = seen.torch
    if torch is None:
        return seen.evidence[-1] if seen.evidence else "torch ended the process"
    if torch.error or (alone.verdict == "works" and not torch.works):
        return next(iter(line for line in torch.lines()), "torch computed nothing")
    return None


def _alive(seen: Verification) -> bool:
    return seen.torch is not None and seen.torch.error is None
