"""What the flags ask of a plan."""

from __future__ import annotations

import pytest

from ortgpu_fix.cli.options import plan_options_of
from ortgpu_fix.cli.parser import parse


@pytest.mark.parametrize(
    ("words", "conflicts", "providers"),
    [
        ((), False, False),
        (("--allow", "conflicts"), True, False),
        (("--allow", "provider"), False, True),
        (("--allow", "conflicts", "--allow", "provider"), True, True),
    ],
)
def test_nothing_is_allowed_that_nobody_names(
    words: tuple[str, ...], *, conflicts: bool, providers: bool
) -> None:
    options = plan_options_of(parse(words).request)

    assert (options.conflicts, options.providers) == (conflicts, providers)


def test_the_libraries_are_provided_and_loaded_where_nobody_objects() -> None:
    lines = ((), ("--no-autoload", "--no-provide"))
    usual, without = (plan_options_of(parse(words).request) for words in lines)

    assert (usual.autoload, usual.provide) == (True, True)
    assert (without.autoload, without.provide) == (False, False)
