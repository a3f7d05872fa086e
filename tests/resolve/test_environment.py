"""What a whole environment requires, what a change of it breaks, and what nobody needs after it."""

from __future__ import annotations

from typing import Any

import synthetic
from ortgpu_fix.facts.markers import marker_environment
from ortgpu_fix.facts.model import Package
from ortgpu_fix.plan.reasons import RequirementLine
from ortgpu_fix.resolve.environment import CameAlong, Demands, Environment, consequences
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.versions import requirement

MARKERS = marker_environment(synthetic.facts())


def package(name: str, version: str = "1", *requires: str, **more: Any) -> Package:
    return Package(name=name, version=version, requires=requires, **more)


def environment(*packages: Package, lines: tuple[RequirementLine, ...] = ()) -> Environment:
    return Environment(packages, MARKERS, lines)


def found(*packages: Package) -> dict[str, list[str]]:
    there = environment(*packages)
    return {
        name: [f"{row.by} {row.of(name)}" for row in there.demanded(name)] for name in names(there)
    }


def names(there: Environment) -> list[str]:
    return sorted(there.names())


def broken(before: Environment, *leaving: str, coming: tuple[Package, ...] = ()) -> list[str]:
    return [str(row) for row in consequences(before, leaving, coming).unmet]


# What is required.


def test_extras_that_one_asks_another_for_bring_theirs() -> None:
    one = package("one", "1", "two[cuda, all]")
    two = package(
        "two", "2", "three==3; extra == 'cuda'", "two[cuda]; extra == 'all'", "four; extra == 'no'"
    )

    assert found(one, two) == {
        "three": ['two 2 three==3; extra == "cuda"'],
        "two": ['two 2 two; extra == "all"', "one 1 two"],
    }


def test_who_asks_for_an_extra_on_another_system_does_not_ask_here() -> None:
    one = package("one", "1", "two[x]; extra == 'a' and os_name == 'nt'")
    two = package("two", "1", "three; extra == 'x'")

    assert found(one, two, package("app", "1", "one[a]")) == {"one": ["app 1 one"]}


def test_many_that_ask_for_extras_of_one_another_are_asked_once_each() -> None:
    """vllm 0.2.2 with fastapi, uvicorn, ray and pydantic: a plan took longer than anybody waits."""
    each = [f"p{number}" for number in range(14)]
    rows = [
        package(
            name,
            "1",
            "missing; extra == 'all'",
            *(f"{other}[all]; extra == 'all'" for other in each if other != name),
        )
        for name in each
    ]

    assert found(*rows) == {}
    last = package("app", "1", "p7[all]")
    assert found(*rows, last)["missing"] == [
        f'{name} 1 missing; extra == "all"' for name in reversed(each)
    ]


def test_an_extra_is_in_force_where_all_that_it_requires_is_installed_as_it_allows() -> None:
    """Nobody records with which extras something was installed."""
    tool = package("tool", "1", "a>=2; extra == 'onnx'", "b; extra == 'onnx'")

    assert found(tool, package("a", "2"), package("b")) == {
        "a": ['tool 1 a>=2; extra == "onnx"'],
        "b": ['tool 1 b; extra == "onnx"'],
    }
    assert found(tool, package("a", "1"), package("b")) == {}
    assert found(tool, package("a", "2")) == {}


def test_an_extra_of_extras_is_in_force_where_each_of_them_is() -> None:
    lines = (
        "tool[x,y]; extra == 'all'",
        "a; extra == 'x'",
        "b; extra == 'y'",
        "c<2; extra == 'all'",
    )
    tool = package("tool", "1", *lines)

    assert (
        'tool 1 c<2; extra == "all"' in found(tool, package("a"), package("b"), package("c"))["c"]
    )
    assert "c" not in found(tool, package("a"), package("c"))


def test_a_plan_parses_the_requirements_that_it_asks_about() -> None:
    many = tuple(
        package(f"many-{at}", "1", f"many-{at - 1}>=1", *(f"never-{at}-{n}>1" for n in range(9)))
        for at in range(300)
    )
    facts = synthetic.facts()
    requirement.cache_clear()

    resolve(facts._replace(packages=(*facts.packages, *many)), PlanOptions(), synthetic.matrix())

    assert requirement.cache_info().currsize < 100


# What is not met.


def test_what_nothing_meets() -> None:
    lines = (
        "b>=2",
        "old; python_version < '3.8'",
        "more; extra == 'all'",
        "odd>=1",
        "!!",
        "c==1.0",
    )
    there = environment(
        package("a", "1", *lines, "missing"),
        package("b", "1.5"),
        package("c", "1.0"),
        package("odd", "not a version"),
    )

    assert [str(row) for row in there.unmet()] == ["a 1: b>=2 (1.5)", "a 1: missing"]


def test_a_gpu_build_serves_whoever_requires_onnxruntime() -> None:
    asks = package("fastembed", "1", "onnxruntime>=1.17")
    old = package("onnxruntime-gpu", "1.16.3")

    assert environment(asks, package("onnxruntime-gpu", "1.26.0")).unmet() == ()
    assert environment(asks, old).unmet()[0].found == "1.16.3"
    assert environment(asks, old, package("onnxruntime", "1.20")).unmet() == ()


def test_a_release_candidate_that_is_installed_counts_as_it_is() -> None:
    """As `pip check` has it: what is there is there, however new."""
    asks = package("a", "1", "b>=2", "c<2")

    assert environment(asks, package("b", "2.1rc1"), package("c", "1.9.dev3")).unmet() == ()
    [unmet] = environment(asks, package("c", "1.9.dev3"), package("b", "2.0rc1")).unmet()
    assert unmet.found == "2.0rc1"


# What a change breaks.


def test_only_what_is_new_is_a_conflict() -> None:
    asks, one, two = (
        package("a", "1", "x", "numpy<2"),
        package("numpy", "1.26"),
        package("numpy", "2"),
    )

    assert broken(environment(asks, one), coming=(one,)) == []
    assert broken(environment(asks, one), coming=(two,)) == ["a 1: numpy<2 (2)"]
    assert broken(environment(asks, two), "numpy") == []
    assert broken(environment(asks, one), "numpy") == ["a 1: numpy<2"]
    assert broken(environment(asks, one), "numpy", "a") == []


def test_an_extra_that_was_in_force_before_the_change_is_a_conflict_after_it() -> None:
    tool = package("tool", "1", "lib~=1.24.2; extra == 'onnx'")
    before = environment(tool, package("lib", "1.24.4"))

    assert broken(before, coming=(package("lib", "1.31.1"),)) == [
        'tool 1: lib~=1.24.2; extra == "onnx" (1.31.1)'
    ]
    assert (
        broken(environment(tool, package("lib", "1.20")), coming=(package("lib", "1.31.1"),)) == []
    )


def test_whoever_requires_what_is_not_met_could_move_but_for_the_users_own_sources() -> None:
    own = package("own", "1", "lib<2", held="editable")
    before = environment(package("app", "1", "lib<2"), own, package("lib"))

    assert consequences(before, (), [package("lib", "2")]).movable == {"app"}
    assert consequences(before, (), [package("lib", "1.1")]).movable == set()


# What nobody needs any more.


def test_two_that_require_one_another_hold_nothing() -> None:
    ring = (package("nvidia-a", "1", "nvidia-b"), package("nvidia-b", "1", "nvidia-a"))
    names = frozenset(row.name for row in ring)
    before = environment(package("torch", "2", "nvidia-a"), *ring)
    along = CameAlong(names, frozenset(), frozenset())

    assert {*consequences(before, ("torch",), (), along).needless} == names


def test_what_counts_is_as_much_as_its_names() -> None:
    there = environment(package("app", "1", "numpy>1", "flatbuffers"), package("x", "1", "numpy"))
    counted = Demands(there, lambda row: str(row.by) == "app 1")

    assert (len(counted), sorted(counted)) == (2, ["flatbuffers", "numpy"])
    assert [str(row.by) for row in counted["numpy"]] == ["app 1"]
