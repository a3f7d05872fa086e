"""Which of several things that would do is taken: releases of torch, builds, their order."""

from __future__ import annotations

import itertools
from typing import Any

import synthetic
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve, resolve_for_check

MATRIX = synthetic.matrix()


WHOLE = ("nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0", "numpy 2.2.6", "flatbuffers 25.0")


def taken(*packages: Any, driver: str = "13.0", **options: Any) -> str | None:
    facts = synthetic.facts(*packages, *WHOLE[2:], driver=driver)
    return resolve(facts, PlanOptions(**options), MATRIX, unlocking=False).release


def test_the_installed_release_that_works_is_taken_before_newer_ones() -> None:
    assert taken() == "1.31.0"
    assert taken("onnxruntime-gpu 1.26.0") == "1.26.0"
    assert taken("onnxruntime-gpu 1.18.0") == "1.18.0"
    assert taken("onnxruntime-gpu 1.26.0", latest=True) == "1.31.0"
    assert taken("onnxruntime-gpu 1.31.0", driver="12.2") == "1.26.0"


def test_a_check_that_allows_conflicts_says_what_the_plan_says() -> None:
    fits = synthetic.facts("transformer 4.7", *WHOLE[2:], driver="13.0")
    jax = {"name": "jax13", "version": "1", "requires": ["nvidia-cudnn-cu13"]}
    cudnn = "nvidia-cudnn-cu13 9.12.0"
    rivals = synthetic.facts("transformer 4.5", WHOLE[1], jax, cudnn, driver="13.0")
    for facts, wish in itertools.product((fits, rivals), ("", "==1.31.0")):
        asked = facts, PlanOptions(conflicts=True, onnxruntime=wish), MATRIX
        made = resolve(*asked, unlocking=False)
        assert resolve_for_check(*asked).verdict == made.verdict


def test_that_is_worth_no_release_with_an_older_cudnn() -> None:
    old = {"name": "old-cuda11", "version": "1.0"}

    assert taken(old) == "1.31.0"
    assert taken(old, driver="11.8") == "1.18.0"


def test_the_number_of_an_installed_build_that_is_not_pypi_s_is_not_told_as_rejected() -> None:
    provider = {"links": ["libcublas.so.12", "libcudnn.so.9"], "sass": ["8.0"], "ptx": []}
    folder = {"distribution": "onnxruntime-gpu", "version": "1.31.0", "cuda": "12.8"}
    facts = synthetic.facts(
        "onnxruntime-gpu 1.31.0", *WHOLE, onnxruntime={**folder, "provider": provider}
    )
    made = resolve(facts, PlanOptions(), MATRIX, unlocking=False)

    assert made.release == "1.31.0"
    assert made.cuda == "12"
    assert "1.31.0" not in {row.version for row in made.rejected}
