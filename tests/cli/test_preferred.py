"""Which wheels are preferred where nobody says so."""

from __future__ import annotations

import pytest

from ortgpu_fix.cli.options import plan_options_of
from ortgpu_fix.cli.parser import parse
from ortgpu_fix.cli.requests import LockRequest


@pytest.mark.parametrize(
    ("words", "small"),
    [
        ((), False),
        (("--prefer", "small"), True),
        (("lock", "--format", "dockerfile"), True),
        (("lock", "--format", "dockerfile", "--prefer", "newest"), False),
        (("lock", "--format", "requirements", "--prefer", "small"), True),
    ],
)
def test_an_image_gets_the_smallest(words: tuple[str, ...], *, small: bool) -> None:
    asked = parse(words).request

    plan = asked.preferred if isinstance(asked, LockRequest) else asked
    assert plan_options_of(plan).small is small
