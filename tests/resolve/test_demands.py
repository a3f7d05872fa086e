"""What installed distributions require, and how little of it is parsed."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import synthetic
from ortgpu_fix.facts.markers import marker_environment
from ortgpu_fix.facts.model import Package
from ortgpu_fix.resolve.demands import demands_of
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.versions import requirement

MARKERS = marker_environment(synthetic.facts())


def found(*packages: Package, extras: Any = ()) -> dict[str, list[str]]:
    demands = demands_of(packages, tuple(MARKERS.items()), extras)
    return {name: [f"{row.by} {row.specifier}" for row in demands[name]] for name in demands}


def test_what_is_in_force_counts_by_canonical_name() -> None:
    one = Package(
        name="one",
        version="1",
        requires=("Some_Thing >=2", "other; sys_platform == 'win32'", "x; extra == 'more'", "?"),
    )

    assert found(one) == {"some-thing": ["one 1 >=2"]}
    assert len(demands_of((one,), tuple(MARKERS.items()), ())) == 1


def test_what_nothing_in_force_requires_is_not_among_them() -> None:
    one = Package(name="one", version="1", requires=("other; sys_platform == 'win32'", "x"))
    demands = demands_of((one,), tuple(MARKERS.items()), ())

    assert ("x" in demands, "other" in demands, "nothing" in demands) == (True, False, False)
    assert demands.get("other") is None


def test_extras_that_one_asks_another_for_bring_theirs() -> None:
    one = Package(name="one", version="1", requires=("two[cuda, all]",))
    lines = ("three==3; extra == 'cuda'", "two[cuda]; extra == 'all'", "four; extra == 'none'")
    two = Package(name="two", version="2", requires=lines)

    assert found(one, two) == {"two": ["one 1 ", "two 2 "], "three": ["two 2 ==3"]}
    assert found(two, extras=(("two", ("none",)),)) == {"four": ["two 2 "]}


def test_who_asks_twice_is_heard_once_and_hinders_nobody_else() -> None:
    rows = [
        Package(name="app", version="1", requires=('lib>1; extra == "x" or python_version > "3"',)),
        Package(name="asks", version="1", requires=("app[x]",)),
        Package(name="other", version="1", requires=("lib<9",)),
    ]

    for order in (rows, rows[::-1]):
        assert sorted(found(*order)["lib"]) == ["app 1 >1", "other 1 <9"]


names = st.sampled_from(["a", "b", "c", "nvidia-x"])
tails = st.sampled_from(["", ">=1", "; extra == 'p'", "; python_version < '3'", " (==2)", "[p]"])
packages = st.lists(
    st.builds(
        lambda name, rows: Package(name=name, version="1", requires=tuple(map("".join, rows))),
        names,
        st.lists(st.tuples(names, tails), max_size=5),
    ),
    max_size=4,
    unique_by=lambda row: row.name,
)


@given(packages)
def test_without_extras_it_is_what_each_line_says(rows: list[Package]) -> None:
    plain = [
        row._replace(requires=tuple(text for text in row.requires if "[" not in text))
        for row in rows
    ]
    expected: dict[str, set[str]] = {}
    for row in plain:
        for wanted in map(Requirement, row.requires):
            if wanted.marker is None or wanted.marker.evaluate({**MARKERS, "extra": ""}):
                told = f"{row.name} 1 {wanted.specifier}"
                expected.setdefault(canonicalize_name(wanted.name), set()).add(told)

    assert {name: set(each) for name, each in found(*plain).items()} == expected


def test_a_plan_parses_the_requirements_that_it_asks_about() -> None:
    many = tuple(
        Package(
            name=f"many-{at}",
            version="1",
            requires=(f"many-{at - 1}>=1", *(f"never-{at}-{n}>1" for n in range(9))),
        )
        for at in range(300)
    )
    facts = synthetic.facts()
    requirement.cache_clear()

    resolve(facts._replace(packages=(*facts.packages, *many)), PlanOptions(), synthetic.matrix())

    assert requirement.cache_info().currsize < 100
