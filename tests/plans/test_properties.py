"""Laws of the resolver that hold for any machine."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version
from told import gains

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve, resolve_for_check

MATRIX = synthetic.matrix()
CUDA = ["10.1", "11.4", "12.0", "12.2", "12.8", "13.0", "13.4"]
PACKAGES = {
    "onnxruntime": ["1.20.0", "1.31.0"],
    "onnxruntime-gpu": ["1.18.0", "1.23.0", "1.26.0", "1.31.0", "1.16.1"],
    "onnxruntime-directml": ["1.24.0"],
    "nvidia-cublas-cu12": ["12.2.5", "12.8.4", "12.9.1", "1.0"],
    "nvidia-cudnn-cu12": ["8.9.7", "9.1.0", "9.28.0"],
    "nvidia-cudnn-cu13": ["9.12.0"],
    "nvidia-cublas": ["13.0.2"],
    "numpy": ["1.26.4", "2.2.6", "junk"],
    "flatbuffers": ["25.0"],
    "protobuf": ["3.20.3", "5.0"],
}
DEPENDENTS = [
    {"name": "a", "version": "1", "requires": ["onnxruntime<1.24"]},
    {"name": "b", "version": "1", "requires": ["numpy>=2; python_version >= '3.9'"]},
    {"name": "c", "version": "1", "requires": ["nvidia-cudnn-cu12==9.1.0"]},
    {"name": "d", "version": "1", "requires": ["protobuf<4", "not a requirement at all!"]},
]


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    packages: list[Any] = [
        f"{name} {draw(st.sampled_from(versions))}"
        for name, versions in PACKAGES.items()
        if draw(st.booleans())
    ]
    packages += draw(st.lists(st.sampled_from(DEPENDENTS), unique_by=lambda row: row["name"]))
    capability = st.sampled_from(["3.7", "5.2", "7.0", "7.5", "8.0", "8.6", "9.0", "12.0", "12.1"])
    return synthetic.document(
        *packages,
        driver=draw(st.none() | st.sampled_from(CUDA)),
        gpus=draw(st.none() | st.lists(capability, max_size=3).map(tuple)),
        python=draw(st.sampled_from(["3.8.1", "3.10.13", "3.11.7", "3.12.1", "3.13.0", "3.15.0"])),
    )


def plan(
    document: dict[str, Any], options: PlanOptions | None = None, *, unlocking: bool = True
) -> Plan:
    return resolve(
        facts_json.from_json(document), options or PlanOptions(), MATRIX, unlocking=unlocking
    )


def chosen(made: Plan) -> Version:
    """Return the chosen release; the lowest of all where none is."""
    versions = [row.version for row in made.selection if row.name == "onnxruntime-gpu"]
    return Version(versions[0]) if versions else Version("0")


def after(document: dict[str, Any], made: Plan) -> dict[str, Any]:
    """Return the facts as they are once `made` is done."""
    installed = {row["name"]: row for row in document["packages"]}
    for name in made.uninstall:
        installed.pop(name)
    for wheel in made.install:
        installed[wheel.name] = {"name": wheel.name, "version": wheel.version}
    picked = {"flatbuffers": "25.0", "numpy": "1.26.4", "protobuf": "5.0"}
    for line in made.requires:
        name = line.partition("<")[0].partition(">")[0].partition("=")[0]
        installed[name] = {"name": name, "version": picked[name]}
    return {**document, "packages": list(installed.values())}


@given(
    documents(),
    st.sampled_from([None, "shadow", "unfinished"]),
    st.sampled_from(
        [{}, {"latest": True}, {"conflicts": True}, {"cuda": "12"}, {"torch": "match"}]
    ),
)
@settings(max_examples=100)
def test_a_check_says_what_the_plan_says(
    document: dict[str, Any], trouble: str | None, options: dict[str, Any]
) -> None:
    mended = after(document, plan(document, unlocking=False))
    for facts in map(facts_json.from_json, (document, mended)):
        python = facts.python._replace(
            shadow="/srv/app/onnxruntime" if trouble == "shadow" else None,
            change="unfinished" if trouble == "unfinished" else None,
        )
        asked = facts._replace(python=python), PlanOptions(**options), MATRIX
        made, checked = resolve(*asked, unlocking=False), resolve_for_check(*asked)

        assert (checked.verdict, checked.unfixable) == (made.verdict, made.unfixable)


@given(documents())
def test_every_unlock_is_a_gain(document: dict[str, Any]) -> None:
    made = plan(document, PlanOptions(latest=True))

    for row in made.unlock:
        if row.change.code == "ort-index":  # what an unread index has is not known
            assert made.verdict == "impossible"
        else:
            assert Version(gains(row).split()[1]) > chosen(made)
