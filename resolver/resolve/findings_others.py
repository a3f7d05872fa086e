"""What other distributions mean for a plan: those that use CUDA, and those that go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..matrix.torch import TORCH
from ..plan.model import Rejected
from ..plan.reasons import Finding, Wanting, finding
from .changes import Changes
from .situation import Situation


def consumer_findings(here: Situation, rejected: Sequence[Rejected]) -> Iterator[Finding]:
    """Say who else uses CUDA and decides, who disagrees with whom, and whose files nobody read."""
    deciding = {
        by
        for row in rejected
        for why in row.reasons
        if why.code in {"consumer-other-cuda", "folder-used"}
        for by in why.by
    }
    users = [row for row in here.consumers if row.by in deciding or row.name == TORCH]
    if len({row.cuda for row in users if row.cudnn}) > 1:
        who = tuple(Wanting(row.by, f"CUDA {row.cuda}") for row in users)
        yield finding("consumers-disagree", "error", by=who)
    elif deciding:
        yield finding("consumers-kept", "info", by=tuple(sorted(deciding, key=str)))
    for row in here.consumers:
        if row.why.code in {"consumer-named", "consumer-unread"}:
            yield finding("consumer-not-read", "info", by=row.by)


def removal_findings(here: Situation, changes: Changes) -> Iterator[Finding]:
    """Say why others go, and what goes with them."""
    for name in changes.uninstall:
        if name not in here.matrix.owners:
            yield finding("shared-folder", "error", rival=name)
        elif name in here.matrix.own_providers:
            provider = here.matrix.own_providers[name]
            yield finding("provider-lost", "warning", distribution=name, provider=provider)
