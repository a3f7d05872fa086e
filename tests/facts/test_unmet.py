"""What a change would break that was not broken before."""

from __future__ import annotations

from example_target import TARGET
from packaging.requirements import Requirement

from ortgpu_fix.facts.markers import target_markers
from ortgpu_fix.facts.target import Installed
from ortgpu_fix.facts.unmet import (
    UnmetRequirement,
    new_conflicts,
    unmet_requirements,
)

HERE = target_markers(TARGET)


def installed(name: str, version: str, requires: tuple[str, ...] = ()) -> Installed:
    return Installed(name=name, version=version, metadata_path="", requires=requires)


def unmet(by: str, version: str, requirement: str, found: str | None = None) -> UnmetRequirement:
    return UnmetRequirement(
        by=by, version=version, requirement=Requirement(requirement), found=found
    )


def test_what_nothing_meets() -> None:
    there = [
        installed(
            "a",
            "1",
            (
                "b>=2",
                "old; python_version < '3.8'",
                "more; extra == 'all'",
                "odd>=1",
                "!!",
                "c==1.0",
                "missing",
            ),
        ),
        installed("b", "1.5"),
        installed("c", "1.0"),
        installed("odd", "not a version"),
    ]

    assert unmet_requirements(there, HERE) == (
        unmet("a", "1", "b>=2", "1.5"),
        unmet("a", "1", "missing"),
    )


def test_a_gpu_build_serves_whoever_requires_onnxruntime() -> None:
    asks = installed("fastembed", "1", ("onnxruntime>=1.17",))
    gpu = installed("onnxruntime-gpu", "1.26.0")
    old = installed("onnxruntime-gpu", "1.16.3")

    assert unmet_requirements([asks, gpu], HERE) == ()
    assert unmet_requirements([asks, old], HERE)[0].found == "1.16.3"
    assert unmet_requirements([asks, old, installed("onnxruntime", "1.20")], HERE) == ()


def test_only_what_is_new_is_a_conflict() -> None:
    broken = installed("a", "1", ("x", "numpy<2"))
    numpy1, numpy2 = (
        installed("numpy", "1.26"),
        installed("numpy", "2.0"),
    )

    assert new_conflicts([broken, numpy1], [broken, numpy1], HERE) == ()
    assert new_conflicts([broken, numpy1], [broken, numpy2], HERE) == (
        unmet("a", "1", "numpy<2", "2.0"),
    )
    assert new_conflicts([broken, numpy2], [broken], HERE) == ()


def test_conflicts_are_in_order_and_told_by_distribution() -> None:
    """Another version of the same distribution that lacks the same is nothing new."""
    there = [
        installed("z", "1", ("missing", "also-missing")),
        installed("a", "1", ("missing",)),
    ]
    newer = [installed("z", "2", ("missing", "also-missing")), installed("a", "1", ("missing",))]

    assert unmet_requirements(there, HERE) == (
        unmet("a", "1", "missing"),
        unmet("z", "1", "also-missing"),
        unmet("z", "1", "missing"),
    )
    assert new_conflicts(there, newer, HERE) == ()
    new = new_conflicts(there[1:], newer, HERE)
    assert [(row.by, row.version) for row in new] == [("z", "2"), ("z", "2")]


def test_of_two_with_one_name_the_first_counts() -> None:
    asks, old, new = installed("a", "1", ("b>=2",)), installed("B", "1"), installed("b", "2")

    assert unmet_requirements([asks, new, old], HERE) == ()
    assert unmet_requirements([asks, old, new], HERE)[0].found == "1"


def test_a_release_candidate_that_is_installed_counts_as_it_is() -> None:
    """As `pip check` has it: what is there is there, however new."""
    asks = installed("a", "1", ("b>=2", "c<2"))
    candidates = [installed("b", "2.1rc1"), installed("c", "1.9.dev3")]

    assert unmet_requirements([asks, *candidates], HERE) == ()
    [unmet] = unmet_requirements([asks, candidates[1], installed("b", "2.0rc1")], HERE)
    assert unmet.found == "2.0rc1"


def test_a_conflict_is_told_with_what_is_there_instead() -> None:
    asks = installed("fastembed", "0.9.1", ("onnxruntime>=1.17 ; python_version >= '3.8'", "x"))

    unmet = unmet_requirements([asks, installed("onnxruntime", "1.16.3")], HERE)

    assert [str(row) for row in unmet] == [
        "fastembed 0.9.1: onnxruntime>=1.17 (1.16.3)",
        "fastembed 0.9.1: x",
    ]
