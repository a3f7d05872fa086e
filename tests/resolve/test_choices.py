"""Which of several things that would do is taken: releases of torch, builds, their order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from packaging.version import Version

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve, resolve_for_check
from ortgpu_fix.resolve.situation import situation_of
from ortgpu_fix.resolve.torch_choice import _nearest_first, chooses_torch, without_torch

MATRIX = synthetic.matrix()
RELEASES = ("2.5.0", "2.5.1", "2.6.0", "2.6.1", "2.7.0", "2.7.1", "2.8.0")


@pytest.mark.parametrize(
    ("to", "releases", "order"),
    [
        ("2.6.0", RELEASES, "2.6.0 2.6.1 2.7.1 2.7.0 2.5.1 2.5.0 2.8.0"),
        ("2.6.9", RELEASES, "2.6.1 2.6.0 2.7.1 2.7.0 2.5.1 2.5.0 2.8.0"),
        ("2.8.0", RELEASES, "2.8.0 2.7.1 2.7.0 2.6.1 2.6.0 2.5.1 2.5.0"),
        ("2.5.0", RELEASES, "2.5.0 2.5.1 2.6.1 2.6.0 2.7.1 2.7.0 2.8.0"),
        ("2.4.0", RELEASES, "2.5.1 2.5.0 2.6.1 2.6.0 2.7.1 2.7.0 2.8.0"),
        ("2.9.0", RELEASES, "2.8.0 2.7.1 2.7.0 2.6.1 2.6.0 2.5.1 2.5.0"),
        ("2.6.0", ("2.5.0", "2.7.0", "2.8.0"), "2.7.0 2.5.0 2.8.0"),
        ("2.6.0", (), ""),
    ],
)
def test_the_nearest_release_of_torch_comes_first(
    to: str, releases: tuple[str, ...], order: str
) -> None:
    """Of two minors as far away the newer one, of each its newest release."""
    assert _nearest_first(releases, Version(to)) == order.split()


@pytest.mark.parametrize(
    ("wish", "torch", "chooses"),
    [
        ("keep", "torch 2.5", False),
        ("match", "torch 2.5", True),
        ("match", None, False),
        ("==2.6", None, True),
    ],
)
def test_a_torch_is_chosen_where_one_is_there_to_match_or_one_is_wished_for(
    wish: str, torch: str | None, *, chooses: bool
) -> None:
    packages = [torch] if torch else []
    here = situation_of(synthetic.facts(*packages), PlanOptions(torch=wish), MATRIX)

    assert chooses_torch(here) is chooses


def test_without_torch_its_family_is_gone_and_the_wish_too() -> None:
    packages = ("torch 2.5", "torchvision 0.20", "torchaudio 2.5", "other 1.0")
    here = situation_of(synthetic.facts(*packages), PlanOptions(torch="match", latest=True), MATRIX)
    left = without_torch(here)

    assert [row.name for row in left.facts.packages] == ["other"]
    assert (left.options.torch, left.options.latest, left.torch) == ("keep", True, None)


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


def test_one_cuda_for_all_is_taken_before_a_newer_release() -> None:
    """Nothing more is excluded by one that uses no cuDNN."""
    user = "transformer 4.7"

    assert taken(user) == "1.26.0"
    assert taken(user, latest=True) == "1.31.0"
    assert taken(user, conflicts=True) == "1.26.0", "allowed, and not needed"
    assert taken(user, conflicts=True, onnxruntime="==1.31.0") == "1.31.0"
    assert taken(user, "onnxruntime-gpu 1.31.0") == "1.31.0"
    assert taken("dataloader 1.0") == "1.31.0"  # it has no CUDA of its own


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


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        *((None, "healthy"), ("kept", "healthy"), ("changed", "healthy"), ("stale", "healthy")),
        ("unfinished", "fixable"),
    ],
)
def test_an_unfinished_change_is_something_to_do(change: str | None, verdict: str) -> None:
    python = {"version": "3.11.7"} | ({"change": change, "change_size": 5} if change else {})
    document = synthetic.document("onnxruntime-gpu 1.26.0", *WHOLE) | {"python": python}
    facts = facts_json.from_json(document)

    assert resolve(facts, PlanOptions(), MATRIX, unlocking=False).verdict == verdict
