"""The facts document: what it must hold, what it may leave out, and what is refused by name."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortgpu_fix.errors import Error, cause
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import (
    Driver,
    Facts,
    Gpu,
    Interpreter,
    Library,
    OnnxRuntime,
    Owner,
    Package,
    Platform,
    Provider,
    Toolkit,
)

SHORT: dict[str, Any] = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64"},
    "driver": {"version": "535.104.12"},
    "gpus": [{"compute_capability": "8.0"}],
    "python": {"version": "3.11"},
    "packages": [{"name": "Onnx_Runtime", "version": "1.22.1"}],
}


def refused(document: object) -> Error:
    with pytest.raises(Error) as caught:
        facts_json.from_json(document)

    assert caught.value.code == "facts-invalid"
    return caught.value


def test_a_file_written_by_hand_stays_short() -> None:
    read = facts_json.from_json(SHORT)

    assert read.packages == (Package(name="onnx-runtime", version="1.22.1"),)
    assert read.python == Interpreter(version="3.11")
    assert read.onnxruntime is None


@pytest.mark.parametrize(
    ("packages", "build"),
    [
        ([("onnxruntime-gpu", "1.26.0", False)], ("onnxruntime-gpu", "1.26.0")),
        (
            [("onnxruntime-gpu", "1.26.0", False), ("onnxruntime", "1.22.1", False)],
            ("onnxruntime", "1.22.1"),
        ),
        (
            [("onnxruntime-gpu", "1.26.0", False), ("onnxruntime", "1.26.0", True)],
            ("onnxruntime-gpu", "1.26.0"),
        ),
    ],
)
def test_the_build_is_what_the_packages_claim_where_it_is_left_out(
    packages: list[tuple[str, str, bool]], build: tuple[str, str]
) -> None:
    rows = [{"name": name, "version": version, "provided": on} for name, version, on in packages]
    read = facts_json.from_json({**SHORT, "packages": rows}).onnxruntime

    assert read is not None
    assert (read.distribution, read.version) == build


@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        ({"driver": ..., "gpus": ...}, "driver-and-gpus"),
        ({"driver": {}}, "driver"),
        ({"driver": {"cuda": "12.4"}, "gpus": None}, "gpus"),
        ({"driver": None, "gpus": None}, None),
        ({"driver": ..., "gpus": []}, None),
        ({"driver": {"error": "nvml-3: NVML error 3"}, "gpus": None}, None),
    ],
)
def test_absent_unknown_and_unreadable_are_three_facts(
    change: dict[str, Any], unknown: str | None
) -> None:
    document = {key: value for key, value in {**SHORT, **change}.items() if value is not ...}
    read = facts_json.from_json(document)

    assert read.unknown == unknown
    assert (read.driver is None) == (change.get("driver", ...) is None)


def test_something_else_altogether() -> None:
    assert refused([]).values["key"] == cause("whole-document")


WORDS = st.text("abcXYZ 0123.-_é/\\~", min_size=1, max_size=12)
NAMES = st.text("abcxyz09", min_size=1, max_size=8)
NUMBERS = st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,3}){1,2}", fullmatch=True)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


TEXTS = st.lists(WORDS, max_size=2).map(tuple)
TARGETS = st.lists(st.sampled_from(["7.5", "9.0a", "12.0f"]), max_size=2).map(tuple)
PROVIDERS = st.builds(
    Provider,
    links=TEXTS,
    names=TEXTS,
    sass=TARGETS,
    ptx=TARGETS,
    toolset=maybe(WORDS),
    preload_dlls=st.booleans(),
)
ANY_FACTS = st.builds(
    Facts,
    platform=st.builds(
        Platform,
        system=st.sampled_from(["linux", "windows"]),
        machine=st.sampled_from(["x86_64", "aarch64"]),
        libc=st.sampled_from([None, "glibc 2.35", "musl 1.2.4"]),
        distribution=maybe(WORDS),
        wsl=st.booleans(),
        container=maybe(WORDS),
        jetson=maybe(WORDS),
    ),
    driver=maybe(
        st.builds(Driver, version=maybe(NUMBERS), cuda=maybe(NUMBERS), error=maybe(WORDS))
    ),
    gpus=maybe(
        st.lists(
            st.builds(
                Gpu,
                name=maybe(WORDS),
                compute_capability=st.sampled_from([None, "7.5", "12.0"]),
                memory_mib=maybe(st.integers(0)),
            ),
            max_size=3,
        ).map(tuple)
    ),
    python=st.builds(
        Interpreter,
        version=st.sampled_from(["3.8.18", "3.13.0", "3.15.0a2", "3.14.0rc1"]),
        implementation=st.sampled_from(["cpython", "pypy"]),
        free_threaded=st.booleans(),
        executable=maybe(WORDS),
        environment=st.sampled_from([None, "venv", "conda", "user", "system"]),
        externally_managed=st.booleans(),
        managed_by=st.sampled_from([None, *get_args(Owner)]),
        read_only=st.booleans(),
        project=maybe(WORDS),
        change=st.none(),
        change_size=st.just(0),
    ),
    packages=st.lists(
        st.builds(
            Package,
            name=NAMES,
            version=WORDS,
            requires=st.lists(WORDS, max_size=2).map(tuple),
            provided=st.booleans(),
            intact=st.booleans(),
            libraries=TEXTS,
            provider=maybe(PROVIDERS),
        ),
        max_size=3,
    ).map(tuple),
    toolkits=st.lists(st.builds(Toolkit, version=maybe(NUMBERS), path=maybe(WORDS))).map(tuple),
    libraries=st.lists(
        st.builds(Library, name=WORDS, path=maybe(WORDS), version=maybe(NUMBERS)), max_size=2
    ).map(tuple),
    onnxruntime=maybe(
        st.builds(
            OnnxRuntime,
            distribution=maybe(WORDS),
            version=maybe(WORDS),
            cuda=maybe(NUMBERS),
            intact=st.booleans(),
            provider=maybe(PROVIDERS),
        )
    ),
    environment=st.dictionaries(WORDS, WORDS, max_size=2),
    sources=st.dictionaries(WORDS, WORDS, max_size=2),
)


@settings(max_examples=40)
@given(ANY_FACTS)
def test_what_is_written_is_read_again(value: Facts) -> None:
    assert facts_json.from_json(json.loads(json.dumps(facts_json.to_json(value)))) == value


def test_targets_of_gpu_code_are_checked() -> None:
    written = {"onnxruntime": {"provider": {"links": [], "sass": ["8.0", ""]}}}

    with pytest.raises(Error) as raised:
        facts_json.from_json(SHORT | written)

    assert raised.value.values["key"] == "onnxruntime.provider.sass"


def test_what_a_newer_program_wrote_is_read_without_what_is_not_known() -> None:
    written: dict[str, Any] = SHORT | {"written_by": "ortgpu-fix 999.1", "moon": "full"}
    written["driver"] = {"version": "535.104.12", "colour": "green"}
    ignored: list[str] = []

    facts = facts_json.from_json(written, ignored)

    assert facts.driver == Driver(version="535.104.12")
    assert sorted(ignored) == ["driver.colour", "moon"]
    assert facts_json.from_json(written) == facts


@pytest.mark.parametrize("by", [None, facts_json.WRITTEN_BY, "another 999"])
def test_what_no_newer_program_wrote_has_no_unknown_keys(by: object) -> None:
    with pytest.raises(Error) as raised:
        facts_json.from_json(SHORT | {"written_by": by, "moon": "full"})

    assert raised.value.code == "facts-invalid"
