"""Who opens a cuDNN that is not here: https://github.com/m-bain/whisperX/issues/865."""

from __future__ import annotations

from typing import Any

import pytest
from told import gains, values_of

import synthetic
from ortgpu_fix.errors import cause
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.matrix.parse import parse
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

CUBLAS, CUDNN = "nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0"


def without_cudnn(made: Plan) -> list[dict[str, object]]:
    return [
        values_of(row) | {"way": dict(row.values)["way"]}
        for row in made.findings
        if row.code == "consumer-without-cudnn"
    ]


def older(*more: dict[str, Any], needs: str = "libcudnn_ops_infer.so.8") -> Matrix:
    """Return the invented matrix, in which `older` 1 opens cuDNN 8, and 3 what `more` say."""
    tables = synthetic.tables()
    row = synthetic.consumer("older", "1", "2", "12", "8") | {"needs": ["libcublas.so.12", needs]}
    tables["consumers"]["consumer"] += [row, *more]
    return parse(tables, "", {})


def newer(first: str, *needs: str, platform: str = synthetic.LINUX) -> dict[str, Any]:
    row = synthetic.consumer("older", first, "9", "12", None)
    return row | {"needs": list(needs), "platform": platform}


def judged(
    matrix: Matrix, *packages: Any, driver: str = "12.8", **machine: Any
) -> list[dict[str, object]]:
    facts = synthetic.facts("older 1.5", *packages, driver=driver, **machine)
    return without_cudnn(resolve(facts, PlanOptions(), matrix))


def test_who_opens_another_cudnn_than_is_here_is_told_with_what_to_install() -> None:
    first = newer("3", "libcublas.so.12", "libcudnn.so.9")
    made = judged(older(newer("4", "libcublas.so.12"), first), CUBLAS, CUDNN)

    told = {"by": "older 1.5", "cudnn": "8", "found": "9"}
    assert made == [told | {"way": cause("release-for-cudnn", wish="older>=3")}]
    none = [told | {"way": cause("no-release-for-cudnn")}]
    assert judged(older(), CUBLAS, CUDNN) == none
    assert judged(older(newer("3", "libcudnn.so.10")), CUBLAS, CUDNN) == none
    rows = newer("10", "libcudnn.so.9"), newer("9", "libcudnn.so.9")
    assert judged(older(*rows), CUBLAS, CUDNN)[0]["way"] == cause(
        "release-for-cudnn", wish="older>=9"
    )
    other = newer("3", "libcudnn.so.9", platform=synthetic.WINDOWS)
    assert judged(older(other), CUBLAS, CUDNN) == none
    assert judged(older(newer("1", "libcudnn.so.9")), CUBLAS, CUDNN) == none


@pytest.mark.parametrize("needs", ["libcublas.so.12", "libcudnn.so.9", "libcudnnx.so"])
def test_who_opens_none_or_the_one_that_is_here_is_not_told(needs: str) -> None:
    assert judged(older(needs=needs), CUBLAS, CUDNN) == []


def test_a_second_cudnn_serves_as_long_as_no_plan_removes_it() -> None:
    assert judged(older(), CUBLAS, CUDNN, "nvidia-cudnn-cu11 8.9.7", driver="11.0") == []
    assert len(judged(older(), CUBLAS, CUDNN, driver="11.0")) == 1


def test_a_cudnn_of_the_system_serves_as_well() -> None:
    library = {"name": "libcudnn.so.8", "path": "/usr/lib/libcudnn.so.8"}

    assert judged(older(), CUBLAS, CUDNN, libraries=[library]) == []


def test_the_cudnn_in_a_torch_counts_where_no_plan_brings_one() -> None:
    facts = synthetic.facts(
        *("ctranslate2 4.4.0", "torch 2.4.0+cu121", "nvidia-cublas-cu12 12.1.3.1"),
        platform={"system": "windows", "machine": "x86_64", "libc": None},
        driver=None,
        gpus=(),
    )
    made = without_cudnn(resolve(facts, PlanOptions(), load_matrix()))

    assert [(row["cudnn"], row["found"]) for row in made] == [("8", "9")]


def test_a_cudnn_that_the_plan_removes_serves_nobody() -> None:
    """The wheels for CUDA 11 and 12 share a folder."""
    packages = ("ctranslate2 4.4.0", "nvidia-cudnn-cu11 8.9.6.50", "nvidia-cublas-cu12 12.9.1.4")
    facts = synthetic.facts(*packages, driver="12.8")

    made = resolve(facts, PlanOptions(), load_matrix())

    assert made.uninstall == ("nvidia-cudnn-cu11",)
    assert [(row["cudnn"], row["found"]) for row in without_cudnn(made)] == [("8", "9")]


CUDNN_8 = "nvidia-cudnn-cu12 8.9.7"


def kept(
    matrix: Matrix, *packages: Any, options: PlanOptions | None = None, **machine: Any
) -> tuple[Plan, list[tuple[str, dict[str, str], str]]]:
    facts = synthetic.facts("older 1.5", *packages, **{"driver": "12.8", **machine})
    made = resolve(facts, options or PlanOptions(), matrix)
    return made, [(row.change.code, values_of(row.change), gains(row)) for row in made.unlock]


def test_who_finds_its_cudnn_in_an_installed_wheel_keeps_that() -> None:
    fits = newer("3", "libcudnn.so.9")
    still = newer("2.5", "libcudnn.so.8") | {"last": "2.9"}
    made, changes = kept(older(still, fits), "dataloader 1.5", CUBLAS, CUDNN_8)
    against = {row.version: row.reasons for row in made.rejected}

    assert made.verdict == "impossible"
    assert [(why.code, values_of(why)) for why in against["1.26.0"]] == [
        (
            "consumer-other-cudnn",
            {"by": "older 1.5", "cudnn": "9", "installed": "nvidia-cudnn-cu12 8.9.7"},
        )
    ]
    assert [row.code for row in made.findings if row.code.startswith("consumer")] == [
        "consumers-kept"
    ]
    assert changes[:2] == [
        ("other-cudnn", {"wishes": "older>=3"}, "onnxruntime-gpu 1.26.0"),
        ("allow-conflicts", {"flags": "--allow conflicts"}, "onnxruntime-gpu 1.26.0"),
    ]
    moved, _ = kept(older(fits), CUBLAS, CUDNN_8, options=PlanOptions(conflicts=True))
    assert ("nvidia-cudnn-cu12", "9.28.0") in [(row.name, row.version) for row in moved.install]
    assert len(without_cudnn(moved)) == 1
    _, changes = kept(older(), CUBLAS, CUDNN_8)
    assert changes[0] == ("other-cuda", {"by": "older 1.5"}, "onnxruntime-gpu 1.26.0")


def test_two_of_them_are_named_together() -> None:
    tables = synthetic.tables()
    for name, first in (("elder", "3"), ("older", "4")):
        tables["consumers"]["consumer"] += [
            synthetic.consumer(name, "1", "2", "12", "8"),
            synthetic.consumer(name, first, "9", "12", "9"),
        ]
    _, changes = kept(parse(tables, "", {}), "elder 1.5", CUBLAS, CUDNN_8)

    assert changes[0] == (
        *("other-cudnn", {"wishes": "elder>=3, older>=4"}, "onnxruntime-gpu 1.26.0"),
    )
    tables["consumers"]["consumer"].pop()
    _, changes = kept(parse(tables, "", {}), "elder 1.5", CUBLAS, CUDNN_8)
    assert changes[0][0] == "other-cuda"


@pytest.mark.parametrize(("cuda", "cudnn"), [("12", "9"), ("11", "8"), (None, "8")])
def test_who_loads_another_cudnn_than_the_installed_one_keeps_nothing(
    cuda: str | None, cudnn: str
) -> None:
    tables = synthetic.tables()
    tables["consumers"]["consumer"].append(synthetic.consumer("older", "1", "2", cuda, cudnn))
    made, _ = kept(parse(tables, "", {}), CUBLAS, CUDNN_8)

    assert made.release == "1.26.0"


def test_who_says_which_wheels_it_takes_lets_them_move_within_that() -> None:
    """pip would move them, too."""
    asking = {"name": "asking", "version": "1", "requires": ["nvidia-cudnn-cu12"]}
    facts = synthetic.facts(asking, CUBLAS, CUDNN_8, driver="12.8")
    made = resolve(facts, PlanOptions(), synthetic.matrix())

    assert made.consumers[0].cudnn == "8"
    assert made.release == "1.26.0"


@pytest.mark.parametrize(
    ("feeds", "cudnn", "platform", "named"),
    [
        (("12",), "8", "x86_64", True),
        (("11", "12"), "8", "x86_64", True),
        (("11",), "8", "x86_64", False),
        (("12",), "8", "aarch64", False),
    ],
)
def test_the_index_with_builds_for_the_older_cudnn_is_named(
    feeds: tuple[str, ...], cudnn: str, platform: str, *, named: bool
) -> None:
    tables = synthetic.tables()
    rows = tables["consumers"]["consumer"]
    rows += [
        synthetic.consumer("elder", "1", "2", "10", "7"),
        synthetic.consumer("eldest", "1", "2", "11", "8"),
        synthetic.consumer("older", "1", "2", "12", cudnn),
    ]
    machine: dict[str, Any] = {}
    if platform == "aarch64":
        machine = {"platform": {"system": "linux", "machine": platform, "libc": "glibc 2.35"}}
        rows[-1]["platform"] = "linux_aarch64"
        tables["onnxruntime"]["build"].pop()
        for row in tables["onnxruntime"]["build"]:
            row["platform"] = "linux_aarch64"
    tables["distributions"]["feed"] = [synthetic.feed(cuda, "1.0.0") for cuda in feeds]
    # Without a cuDNN; for a CUDA for which there is no build; with the cuDNN of PyPI's builds.
    others = "cupy-cuda12x 1.0", "elder 1.5", "eldest 1.5"
    made, changes = kept(parse(tables, "", {}), *others, CUBLAS, CUDNN_8, **machine)

    assert "consumer-other-cudnn" in {why.code for row in made.rejected for why in row.reasons}
    found = [gain for code, _, gain in changes if code == "ort-index"]
    assert found == ["onnxruntime-gpu (CUDA 12)"] * named
