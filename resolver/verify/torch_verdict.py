"""What onnxruntime and torch prove in one process.

What torch cannot do alone is reported, and is no conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from ..plan.reasons import Reason
from .verification import UP_TO_THE_DRIVER, Verification

Order = Literal["first", "last", "alone"]
ORDERS: tuple[Order, ...] = ("first", "last")
"""When torch is imported and computes: before onnxruntime or after it."""


def needs_torch_check(alone: Verification) -> bool:
    """Return whether torch must be checked: it is for CUDA, and onnxruntime has no defect."""
    return alone.verdict in UP_TO_THE_DRIVER | {"works"} and alone.build is not None


def needs_torch_alone(alone: Verification, orders: Mapping[Order, Verification]) -> bool:
    """Return whether one of `orders` failed, so that torch must be checked alone too."""
    return any(_problem(alone, both) is not None for both in orders.values())


def combine(alone: Verification, orders: Mapping[Order, Verification]) -> Verification:
    """Return `alone`, the verification of onnxruntime, with what `orders` prove besides.

    `orders` has torch `alone` too where `needs_torch_alone` says so.
    """
    torch_alone = orders.get("alone")
    defect = _torch_problem(alone, torch_alone) if torch_alone else None
    pairs = [(order, orders[order]) for order in ORDERS]
    version = (("version", alone.build.version if alone.build else "?"),)
    # Where torch was imported and onnxruntime failed it is a conflict, whatever torch does alone.
    conflicts = [
        Reason(code=f"torch-{order}-fails", values=(("what", problem),))
        for order, both in pairs
        if (problem := _problem(alone, both))
        and (
            defect is None
            or (both.torch and both.torch.error is None and both.verdict != alone.verdict)
        )
    ]
    notes = list(conflicts)
    if not conflicts and defect is not None:
        notes.append(Reason(code="torch-broken", values=(*version, ("what", defect))))
    elif not conflicts:
        code = "torch-works" if alone.verdict == "works" else "torch-loads"
        notes.append(Reason(code=code, values=version))
    twice = [note for _, both in pairs for note in both.notes if note.code == "library-twice"]
    evidence = [
        f"torch imported {order}: {line}"
        for order, both in pairs
        for line in (both.torch.lines() if both.torch else [f"onnxruntime: {both.verdict}"])
    ]
    return replace(
        alone,
        verdict="torch-conflict" if conflicts else alone.verdict,
        values=version if conflicts else alone.values,
        notes=tuple(dict.fromkeys((*alone.notes, *notes, *twice))),
        evidence=(*alone.evidence, *evidence),
        orders=tuple(orders.items()),
    )


def _problem(alone: Verification, both: Verification) -> str | None:
    """Return what failed with both in one process, and not with onnxruntime alone."""
    if both.verdict != alone.verdict:
        evidence = f" ({both.evidence[-1]})" if both.evidence else ""
        return f"onnxruntime: {both.verdict}{evidence}"
    if both.torch is None:  # onnxruntime ended the process, as it does alone
        return None
    return _torch_problem(alone, both)


def _torch_problem(alone: Verification, verification: Verification) -> str | None:
    """Return what torch failed at; a missing GPU is no failure where onnxruntime has none."""
    torch = verification.torch
    if torch is None:
        return verification.evidence[-1] if verification.evidence else "torch ended the process"
    if torch.error or (alone.verdict == "works" and not torch.works):
        return next(iter(torch.lines()), "torch computed nothing")
    return None
