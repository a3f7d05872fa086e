"""What a session's profile says, with the times that are each node's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.verify.children.measure_session import own_times


def event(name: str, begin: int, taken: int) -> dict[str, object]:
    return {"name": name, "ts": begin, "dur": taken}


def test_what_a_branch_ran_is_not_counted_twice() -> None:
    """As silero-vad's: an `If` in an `If`, with nodes inside each and after both."""
    events = [
        *(event("first", 0, 2), event("If", 2, 10), event("inside", 3, 4)),
        *(event("inner", 7, 5), event("innermost", 8, 1), event("last", 12, 3)),
    ]

    own = {row["name"]: taken for row, taken in own_times(events)}

    assert own == {"first": 2, "If": 1, "inside": 4, "inner": 4, "innermost": 1, "last": 3}


@given(st.lists(st.integers(0, 9), max_size=30))
def test_all_together_took_as_long_as_the_outermost(depths: list[int]) -> None:
    """Nodes of a microsecond or none inside it: nothing is lost or added."""
    events = [event("all", 0, len(depths) + 1)]
    events += [event(f"at {at}", at, min(depth, 1)) for at, depth in enumerate(depths)]

    assert sum(taken for _, taken in own_times(events)) == len(depths) + 1
