"""What a change would break that was not broken before."""

from __future__ import annotations

from ortgpu_fix.apply.conflicts import (
    InstalledDistribution,
    UnmetRequirement,
    environment_of,
    new_conflicts,
    unmet_requirements,
)

HERE = environment_of("3.11.7", "cpython")


def test_the_target_s_python_counts_not_ours() -> None:
    environment = environment_of("3.8.18", "pypy")

    assert environment["python_version"] == "3.8"
    assert environment["python_full_version"] == "3.8.18"
    assert environment["platform_python_implementation"] == "PyPy"


def test_what_nothing_meets() -> None:
    there = [
        InstalledDistribution(
            name="a",
            version="1",
            requires=(
                "b>=2",
                "missing",
                "old; python_version < '3.8'",
                "more; extra == 'all'",
                "odd>=1",
                "!!",
                "c==1.0",
            ),
        ),
        InstalledDistribution(name="b", version="1.5"),
        InstalledDistribution(name="c", version="1.0"),
        InstalledDistribution(name="odd", version="not a version"),
    ]

    assert unmet_requirements(there, HERE) == (
        UnmetRequirement(by="a 1", requirement="b>=2", found="1.5"),
        UnmetRequirement(by="a 1", requirement="missing", found=None),
    )


def test_a_gpu_build_serves_whoever_requires_onnxruntime() -> None:
    asks = InstalledDistribution(name="fastembed", version="1", requires=("onnxruntime>=1.17",))
    gpu = InstalledDistribution(name="onnxruntime-gpu", version="1.26.0")
    old = InstalledDistribution(name="onnxruntime-gpu", version="1.16.3")

    assert unmet_requirements([asks, gpu], HERE) == ()
    assert unmet_requirements([asks, old], HERE)[0].found == "1.16.3"
    assert (
        unmet_requirements(
            [asks, old, InstalledDistribution(name="onnxruntime", version="1.20")], HERE
        )
        == ()
    )


def test_only_what_is_new_is_a_conflict() -> None:
    broken = InstalledDistribution(name="a", version="1", requires=("x", "numpy<2"))
    numpy1, numpy2 = (
        InstalledDistribution(name="numpy", version="1.26"),
        InstalledDistribution(name="numpy", version="2.0"),
    )

    assert new_conflicts([broken, numpy1], [broken, numpy1], HERE) == ()
    assert new_conflicts([broken, numpy1], [broken, numpy2], HERE) == (
        UnmetRequirement(by="a 1", requirement="numpy<2", found="2.0"),
    )
    assert new_conflicts([broken, numpy2], [broken], HERE) == ()
