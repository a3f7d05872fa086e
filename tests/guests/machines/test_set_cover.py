"""The smallest split of things into sets that cover them."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from ortgpu_fix.guests.machines.set_cover import EXACT, maximal_subsets, minimum_set_covers

masks = st.integers(1, (1 << 6) - 1)


@settings(max_examples=40)
@given(st.lists(masks, min_size=1, max_size=7))
def test_no_fewer_sets_cover_it_and_all_ways_are_found(sets: list[int]) -> None:
    goal = 0
    for one in sets:
        goal |= one
    found = minimum_set_covers(sets, goal)
    fewest = len(found[0])

    def covers(count: int) -> list[tuple[int, ...]]:
        return [
            choice
            for choice in itertools.combinations(range(len(sets)), count)
            if sum(1 << bit for bit in range(6) if any(sets[at] >> bit & 1 for at in choice))
            == goal
        ]

    assert found == covers(fewest)
    assert fewest == 0 or covers(fewest - 1) == []


def test_up_to_eight_things_every_pair_is_found_and_of_nine_each_is_in_one() -> None:
    def pairs(mask: int) -> bool:
        return mask.bit_count() <= 2

    assert len(maximal_subsets(8, pairs)) == 8 * 7 // 2
    assert maximal_subsets(9, pairs) == [0b11, 0b1100, 0b110000, 0b11000000, 0b100000000]


def test_of_many_things_each_joins_the_first_set_that_takes_it() -> None:
    count = EXACT + 2

    def works(mask: int) -> bool:
        return mask.bit_count() <= 4

    found = maximal_subsets(count, works)

    assert [mask.bit_count() for mask in found] == [4, 4, 2]
    assert sum(found) == (1 << count) - 1
