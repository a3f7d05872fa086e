"""Who else uses CUDA in the process: kept whole, and heard.

The environments in `recordings/environments` are what pip resolved on the day that they name. What
must come out was worked out by hand from the wheels: which CUDA and cuDNN each of them loads.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from told import gains, required, values_of

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.parse import parse
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.report.plan import plan_sections
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

RECORDED = Path(__file__).parents[1] / "recordings" / "environments"
DRIVERS = {"535.104.12": "12.2", "570.86.15": "12.8", "580.95.05": "13.0", "610.10": "13.4"}


@functools.cache
def recorded(name: str) -> list[dict[str, Any]]:
    packages: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text("utf-8"))[
        "packages"
    ]
    return packages


def planned(name: str, driver: str, *more: dict[str, Any], **options: Any) -> Plan:
    replaced = {row["name"] for row in more}
    packages = [row for row in recorded(name) if row["name"] not in replaced]
    document = {
        "schema": 1,
        "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"},
        "driver": {"version": driver, "cuda": DRIVERS[driver]},
        "gpus": [{"compute_capability": "8.0"}],
        "python": {"version": "3.12.1", "environment": "venv", "autoload": True},
        "packages": [*packages, *more],
    }
    return resolve(facts_json.from_json(document), PlanOptions(**options), load_matrix())


def codes(made: Plan) -> list[str]:
    return [row.code for row in made.findings]


# What TensorFlow, JAX and CTranslate2 brought stays, to the version.


@pytest.mark.parametrize("driver", DRIVERS)
def test_who_declares_its_wheels_behind_an_extra_keeps_them(driver: str) -> None:
    made = planned("tensorflow-and-cuda-2.19", driver)
    theirs = {
        row["name"]
        for row in recorded("tensorflow-and-cuda-2.19")
        if row["name"].startswith("nvidia-")
    }

    assert made.verdict == "fixable"
    assert made.release == "1.26.0"
    assert made.uninstall == ("onnxruntime",)
    assert not theirs & {row.name for row in made.install}
    assert all(".so." in library for row in made.consumers for library in row.needs)


@pytest.mark.parametrize(("driver", "release"), [("580.95.05", "1.31.1"), ("535.104.12", None)])
def test_jax_for_cuda_13_decides_the_other_way(driver: str, release: str | None) -> None:
    made = planned("jax-cuda13", driver)

    assert made.release == release
    assert made.uninstall == (("onnxruntime",) if release else ())
    if release is None:
        changes = ["other-cuda", "newer-driver", "forward-compatibility"]
        assert [row.change.code for row in made.unlock] == changes


@pytest.mark.parametrize(
    ("user", "newer"),
    [("ctranslate2 4.3.1", "ctranslate2>=4.5.0"), ("tensorflow 2.15.1", "tensorflow>=2.18.0")],
)
def test_the_older_cudnn_of_those_that_declare_nothing_is_not_taken_from_them(
    user: str, newer: str
) -> None:
    rows = user, "nvidia-cublas-cu12 12.4.5.8", "nvidia-cudnn-cu12 8.9.7.29"
    facts = synthetic.facts(*rows, driver="12.4", python="3.11.4")
    made = resolve(facts, PlanOptions(), load_matrix())

    assert made.verdict == "impossible"
    assert [(row.change.code, gains(row)) for row in made.unlock] == [
        ("other-cudnn", "onnxruntime-gpu 1.26.0"),
        ("allow-conflicts", "onnxruntime-gpu 1.26.0"),
        ("ort-index", "onnxruntime-gpu (CUDA 12)"),
    ]
    assert values_of(made.unlock[0].change) == {"wishes": newer}
    name, _, release = newer.partition(">=")
    facts = synthetic.facts(f"{name} {release}", *rows[1:], driver="12.4", python="3.11.4")
    assert resolve(facts, PlanOptions(), load_matrix()).release == "1.26.0"


def test_conflicts_that_are_allowed_take_their_say_where_nothing_else_works() -> None:
    kept = planned("tensorflow-and-cuda-2.19", "580.95.05", conflicts=True)
    assert kept == planned("tensorflow-and-cuda-2.19", "580.95.05")

    made = planned("tensorflow-and-cuda-2.19", "580.95.05", onnxruntime="==1.31.1", conflicts=True)

    assert made.release == "1.31.1"
    assert [row.name for row in made.consumers] == ["tensorflow"]
    assert made.uninstall == ("nvidia-cudnn-cu12", "onnxruntime")


# The rules, on an invented matrix: `transformer` loads cuDNN 9 of CUDA 12 up to 4.5.

EN = load_texts("en")


def plan(*packages: Any, **machine: Any) -> Plan:
    options = machine.pop("options", PlanOptions())
    machine.setdefault("driver", "13.0")
    return resolve(synthetic.facts(*packages, **machine), options, synthetic.matrix())


CUBLAS, CUDNN = "nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0"


def test_who_loads_cudnn_of_another_cuda_excludes_a_release() -> None:
    made = plan("transformer 4.5", CUBLAS)
    against = {row.version: [why.code for why in row.reasons] for row in made.rejected}

    assert made.release == "1.26.0"
    assert against["1.31.0"] == ["consumer-other-cuda"]
    assert "consumers-kept" in codes(made)
    assert next((row.change.code, gains(row)) for row in made.unlock) == (
        "other-cuda",
        "onnxruntime-gpu 1.31.0",
    )


def test_a_library_of_the_system_makes_it_count_too() -> None:
    cublas = [{"name": "libcublas.so.12", "path": "/usr/lib/libcublas.so.12"}]
    latest = PlanOptions(latest=True)

    assert plan("transformer 4.5", options=latest).release == "1.31.0"
    assert plan("transformer 4.5", options=latest, libraries=cublas).release == "1.26.0"
    only_cudnn = [{"name": "libcudnn.so.9", "path": "/usr/lib/libcudnn.so.9"}]
    assert plan("transformer 4.5", options=latest, libraries=only_cudnn).release == "1.31.0"


def test_who_loads_no_cudnn_excludes_nothing() -> None:
    assert plan("transformer 4.6", CUBLAS, options=PlanOptions(latest=True)).release == "1.31.0"
    chosen = plan("transformer 4.6", CUBLAS)
    assert chosen.release == "1.26.0"
    assert "newer-works" not in codes(chosen)  # nothing is kept
    [told] = [row for row in chosen.findings if row.code == "newer-for-another-cuda"]
    values = {"version": "1.31.0", "chosen": "1.26.0", "by": "transformer 4.6"}
    assert (told.severity, values_of(told)) == ("info", values)
    others = plan("transformer 4.6", "dataloader 1.5", "sparse-cuda12x 1.0", CUBLAS)
    [told] = [row for row in others.findings if row.code == "newer-for-another-cuda"]
    assert values_of(told)["by"] == "sparse-cuda12x 1.0, transformer 4.6"
    alone = plan("transformer 4.6", CUBLAS, options=PlanOptions(latest=True))
    assert "newer-for-another-cuda" not in codes(alone)
    facts = synthetic.facts("transformer 4.6", CUBLAS, driver="13.0")
    words = [
        plain(plan_sections(made, facts, EN, verbose=True, asked=False, command="x"))
        for made in (chosen, alone)
    ]
    assert "onnxruntime-gpu 1.26.0 is the newest version for the CUDA that other" in words[0]
    assert "onnxruntime-gpu 1.31.0 is the newest version that works" in words[1]


def changes_of(made: Plan) -> list[tuple[str, str]]:
    return [(EN.change(row), gains(row)) for row in made.unlock]


def test_a_driver_is_named_with_the_flag_without_which_it_would_allow_nothing() -> None:
    """Where the CUDA of another, or a release that is installed, goes before the newest."""
    newest, driver = "onnxruntime-gpu 1.31.0", "driver >= 580.65.06"
    flag = ", and `--ort latest`"

    def told(*packages: Any, **options: Any) -> list[tuple[str, str]]:
        return changes_of(plan(*packages, driver="12.2", options=PlanOptions(**options)))

    assert told(CUBLAS) == [(driver, newest)]
    assert told("transformer 4.6", CUBLAS) == [(f"{driver}{flag}", newest)]
    assert told("onnxruntime-gpu 1.26.0") == [(f"{driver}{flag}", newest)]
    assert told("onnxruntime-gpu 1.26.0", latest=True) == [(driver, newest)]
    assert told("onnxruntime-gpu 1.31.0") == [(driver, newest)]  # it is kept then
    assert told("transformer 4.6", CUBLAS, latest=True) == [(driver, newest)]
    # None with its CUDA works: it is for CUDA 11, whose releases have an older cuDNN.
    assert told("sparse-cuda11x 1.0") == [(driver, newest)]
    # It is worth no release with an older cuDNN.
    assert told("sparse-cuda11x 1.0", "nvidia-cudnn-cu13 9.12.0") == [(driver, newest)]


def test_so_is_what_a_package_or_a_wish_holds_back() -> None:
    newest = "onnxruntime-gpu 1.31.0"
    holding = {"name": "holding", "version": "1", "requires": ["onnxruntime<1.27"]}
    rows = changes_of(plan(holding, "onnxruntime-gpu 1.26.0"))
    assert [(change[-14:], gain) for change, gain in rows] == [("`--ort latest`", newest)]
    wish = changes_of(plan("onnxruntime-gpu 1.26.0", options=PlanOptions(onnxruntime="<1.27")))
    assert wish == [("without `--ort`, and `--ort latest`", newest)]
    line = plan("onnxruntime-gpu 1.26.0", options=PlanOptions(requirements=required("numpy<0")))
    assert line.verdict == "impossible"
    rows = changes_of(
        plan(
            "onnxruntime-gpu 1.26.0", options=PlanOptions(requirements=required("onnxruntime<1.27"))
        )
    )
    assert [(change[-14:], gain) for change, gain in rows] == [("`--ort latest`", newest)]


def test_one_that_requires_the_wheels_of_two_cudas_is_bound_to_neither() -> None:
    requires = ["nvidia-cublas-cu11", "nvidia-cudnn-cu12"]
    both = {"name": "both", "version": "1", "requires": requires}
    (user,) = plan(both, CUDNN).consumers

    assert (user.cuda, user.cudnn, user.why.code) == (None, "9", "consumer-requires")
    assert user.needs == ("libcublas.so.11", "libcudnn.so.9")
    assert values_of(user.why) == {"wheels": "nvidia-cublas-cu11, nvidia-cudnn-cu12"}


def test_what_was_read_of_another_platform_tells_nothing_of_this() -> None:
    tables = synthetic.tables()
    rows = tables["consumers"]["consumer"]
    rows.insert(0, synthetic.consumer("transformer", "4.0", "4.5", "13", "9") | {"platform": "x"})
    made = resolve(synthetic.facts("transformer 4.2"), PlanOptions(), parse(tables, "", {}))

    assert [(row.cuda, row.why.code) for row in made.consumers] == [("12", "consumer-read")]
    del rows[1:]
    alone = resolve(synthetic.facts("transformer 4.2"), PlanOptions(), parse(tables, "", {}))
    assert alone.consumers == ()


def test_a_release_from_before_those_that_were_read_is_not_read() -> None:
    read = [
        plan(f"transformer {version}").consumers[0].why.code
        for version in ("3.9", "4.0", "4.5", "4.6", "4.8", "4.9")
    ]

    assert read == ["consumer-unread", *["consumer-read"] * 4, "consumer-unread"]


def test_what_nobody_read_is_told_and_decides_nothing() -> None:
    made = plan("transformer 9.9", "sparse-cuda12x 1.0", CUBLAS, options=PlanOptions(latest=True))

    assert made.release == "1.31.0"
    assert codes(made).count("consumer-not-read") == 2
    assert [(row.name, row.cuda, row.why.code) for row in made.consumers] == [
        ("sparse-cuda12x", "12", "consumer-named"),
        ("transformer", None, "consumer-unread"),
    ]
    assert [values_of(row.why) for row in made.consumers] == [{"cuda": "12"}, {"version": "9.9"}]


def test_two_that_disagree_make_it_impossible_and_both_are_named() -> None:
    jax13 = {"name": "jax13", "version": "1", "requires": ["nvidia-cudnn-cu13"]}
    made = plan("transformer 4.5", CUBLAS, jax13, "nvidia-cudnn-cu13 9.12.0")
    texts = [EN.summary(row) for row in made.findings if row.code == "consumers-disagree"]

    assert made.verdict == "impossible"
    assert "transformer 4.5 (CUDA 12)" in texts[0]
    assert "jax13 1 (CUDA 13)" in texts[0]
    assert {EN.change(row).partition(" ")[0] for row in made.unlock} >= {"transformer", "jax13"}
    allowed = plan(
        "transformer 4.5",
        CUBLAS,
        jax13,
        "nvidia-cudnn-cu13 9.12.0",
        options=PlanOptions(conflicts=True),
    )
    assert allowed.release == "1.31.0"


def test_a_program_of_nvidia_s_is_one_where_the_matrix_has_it_and_its_libraries_are_none() -> None:
    tables = synthetic.tables()
    row = synthetic.consumer("nvidia-pipeline-cuda12", "1.0", "1.9", "12", "9")
    tables["consumers"]["consumer"].append(row)
    packages = ("nvidia-pipeline-cuda12 1.5", "nvidia-curand-cu12 10.3", "nvidia-new-cuda12 1.0")
    made = resolve(synthetic.facts(*packages), PlanOptions(), parse(tables, "", {}))

    assert [(str(row.by), row.why.code) for row in made.consumers] == [
        ("nvidia-pipeline-cuda12 1.5", "consumer-read"),
    ]
