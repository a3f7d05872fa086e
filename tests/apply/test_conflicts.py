"""What a change would break that was not broken before."""

from __future__ import annotations

from ortgpu_fix.apply.conflicts import Has, Unmet, environment_of, new_conflicts, unmet

HERE = environment_of("3.11.7", "cpython")


def test_the_target_s_python_counts_not_ours() -> None:
    environment = environment_of("3.8.18", "pypy")

    assert environment["python_version"] == "3.8"
    assert environment["python_full_version"] == "3.8.18"
    assert environment["platform_python_implementation"] == "PyPy"


def test_what_nothing_meets() -> None:
    there = [
        Has(
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
        Has(name="b", version="1.5"),
        Has(name="c", version="1.0"),
        Has(name="odd", version="not a version"),
    ]

    assert unmet(there, HERE) == (
        Unmet(by="a 1", requirement="b>=2", found="1.5"),
        Unmet(by="a 1", requirement="missing", found=None),
    )


def test_a_gpu_build_serves_whoever_requires_onnxruntime() -> None:
    asks = Has(name="fastembed", version="1", requires=("onnxruntime>=1.17",))
    gpu = Has(name="onnxruntime-gpu", version="1.26.0")
    old = Has(name="onnxruntime-gpu", version="1.16.3")

    assert unmet([asks, gpu], HERE) == ()
    assert unmet([asks, old], HERE)[0].found == "1.16.3"
    assert unmet([asks, old, Has(name="onnxruntime", version="1.20")], HERE) == ()


def test_only_what_is_new_is_a_conflict() -> None:
    broken = Has(name="a", version="1", requires=("x", "numpy<2"))
    numpy1, numpy2 = Has(name="numpy", version="1.26"), Has(name="numpy", version="2.0")

    assert new_conflicts([broken, numpy1], [broken, numpy1], HERE) == ()
    assert new_conflicts([broken, numpy1], [broken, numpy2], HERE) == (
        Unmet(by="a 1", requirement="numpy<2", found="2.0"),
    )
    assert new_conflicts([broken, numpy2], [broken], HERE) == ()
