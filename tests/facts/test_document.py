"""The facts document: what it must hold, what it may leave out, and what is refused by name."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import synthetic
from ortgpu_fix.errors import Error, cause
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.model import (
    ChangeState,
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
from ortgpu_fix.messages.catalog import load_texts

SHORT: dict[str, Any] = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64"},
    "driver": {"version": "535.104.12"},
    "gpus": [{"compute_capability": "8.0"}],
    "python": {"version": "3.11"},
    "packages": [{"name": "Onnx_Runtime", "version": "1.22.1"}],
}
LONG: dict[str, Any] = {
    "schema": 1,
    "platform": {
        "system": "linux",
        "machine": "x86_64",
        "libc": "glibc 2.35",
        "distribution": "Ubuntu 22.04",
        "wsl": False,
        "container": None,
        "jetson": None,
    },
    "driver": {"version": "535.104.12", "cuda": "12.2", "error": None},
    "gpus": [
        {"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0", "memory_mib": 81920},
    ],
    "toolkits": [{"version": "12.4", "path": "/usr/local/cuda-12.4"}],
    "libraries": [{"name": "libcudnn.so.9", "path": "/usr/lib/libcudnn.so.9", "version": "9.1.0"}],
    "python": {
        "version": "3.11.7",
        "implementation": "cpython",
        "free_threaded": False,
        "executable": "/opt/app/.venv/bin/python",
        "environment": "venv",
        "externally_managed": False,
    },
    "packages": [
        {"name": "fastembed", "version": "0.9.1", "requires": ["onnxruntime>=1.17.0,!=1.20.0"]},
        {"name": "onnxruntime", "version": "1.26.0", "provided": True},
    ],
    "onnxruntime": {
        "distribution": "onnxruntime-gpu",
        "version": "1.26.0",
        "cuda": "12.8",
        "intact": True,
    },
    "environment": {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"},
}


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the long document with one value changed: `gpus.0.name`."""
    document = json.loads(json.dumps(LONG))
    *parents, last = path.split(".")
    place: Any = document
    for key in parents:
        place = place[int(key) if key.isdecimal() else key]
    at: Any = int(last) if last.isdecimal() else last
    if value is ...:
        del place[at]
    else:
        place[at] = value
    return dict(document)


def refused(document: object) -> Error:
    with pytest.raises(Error) as caught:
        facts_json.from_json(document)

    assert caught.value.code == "facts-invalid"
    return caught.value


def test_the_document_of_the_contract() -> None:
    assert facts_json.from_json(LONG) == Facts(
        platform=Platform(
            system="linux", machine="x86_64", libc="glibc 2.35", distribution="Ubuntu 22.04"
        ),
        driver=Driver(version="535.104.12", cuda="12.2"),
        gpus=(Gpu(name="NVIDIA A100-SXM4-80GB", compute_capability="8.0", memory_mib=81920),),
        python=Interpreter(
            version="3.11.7", executable="/opt/app/.venv/bin/python", environment="venv"
        ),
        packages=(
            Package(name="fastembed", version="0.9.1", requires=("onnxruntime>=1.17.0,!=1.20.0",)),
            Package(name="onnxruntime", version="1.26.0", provided=True),
        ),
        toolkits=(Toolkit(version="12.4", path="/usr/local/cuda-12.4"),),
        libraries=(Library(name="libcudnn.so.9", path="/usr/lib/libcudnn.so.9", version="9.1.0"),),
        onnxruntime=OnnxRuntime(distribution="onnxruntime-gpu", version="1.26.0", cuda="12.8"),
        environment={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"},
    )


@pytest.mark.parametrize("change", ["kept", "changed", "stale", "unfinished"])
def test_what_an_earlier_run_left_is_a_fact(change: ChangeState) -> None:
    read = facts_json.from_json(SHORT)
    left = read._replace(python=read.python._replace(change=change, change_size=7))

    assert facts_json.from_json(facts_json.to_json(left)) == left
    assert "change" not in str(facts_json.to_json(read))  # what is usual is left out


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


def test_no_build_is_said_with_null() -> None:
    assert facts_json.from_json(changed("onnxruntime", None)).onnxruntime is None


@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        ({"driver": ..., "gpus": ...}, "driver-and-gpus"),
        ({"driver": ...}, "driver"),
        ({"driver": {"version": None, "cuda": None}}, "driver"),
        ({"driver": {}}, "driver"),
        ({"gpus": ...}, "gpus"),
        ({"gpus": None}, "gpus"),
        ({"driver": {"cuda": "12.4"}, "gpus": None}, "gpus"),
        ({"driver": None, "gpus": None}, None),
        ({"driver": None}, None),
        ({"driver": ..., "gpus": []}, None),
        ({"driver": {"error": "nvml-3: NVML error 3"}, "gpus": None}, None),
        ({}, None),
    ],
)
def test_absent_unknown_and_unreadable_are_three_facts(
    change: dict[str, Any], unknown: str | None
) -> None:
    document = {key: value for key, value in {**SHORT, **change}.items() if value is not ...}
    read = facts_json.from_json(document)

    assert read.unknown == unknown
    assert (read.driver is None) == (change.get("driver", ...) is None)


def test_a_package_is_found_by_its_name() -> None:
    read = facts_json.from_json(LONG)

    assert read.package("fastembed") == read.packages[0]
    assert read.package("torch") is None


@pytest.mark.parametrize(
    ("path", "value", "key", "problem"),
    [
        ("schema", 2, "schema", "is 2"),
        ("schema", True, "schema", "an integer"),
        ("schema", ..., "schema", "missing"),
        ("platform", ..., "platform", "missing"),
        ("platform", [], "platform", "must be an object"),
        ("platform.system", "macos", "platform.system", "'macos'"),
        ("platform.machine", None, "platform.machine", "missing"),
        ("platform.machine", "armv7l", "platform.machine", "must be one of x86_64, aarch64"),
        ("platform.libc", "glibc", "platform.libc", "'glibc'"),
        ("platform.colour", "blue", "platform.colour", "not a known key"),
        ("driver.cuda", "twelve", "driver.cuda", "'twelve'"),
        ("driver.cuda", 12.2, "driver.cuda", "must be a string"),
        ("gpus", {}, "gpus", "must be a list"),
        ("gpus.0", "A100", "gpus[0]", "must be an object"),
        ("gpus.0.compute_capability", "8", "gpus[0].compute_capability", "'8'"),
        ("gpus.0.memory_mib", "80 GB", "gpus[0].memory_mib", "an integer"),
        ("python.version", ..., "python.version", "missing"),
        ("python.version", "three", "python.version", "'three'"),
        ("python.environment", "tent", "python.environment", "'tent'"),
        ("python.free_threaded", 1, "python.free_threaded", "true or false"),
        ("packages", ..., "packages", "missing"),
        ("packages.1.version", ..., "packages[1].version", "missing"),
        ("packages.0.requires", [1], "packages[0].requires", "list of strings"),
        ("environment", {"PATH": 1}, "environment", "object with string values"),
        ("extra", 1, "extra", "not a known key"),
    ],
)
def test_what_is_wrong_is_named(path: str, value: object, key: str, problem: str) -> None:
    error = refused(changed(path, value))

    assert error.values["key"] == key
    assert problem in load_texts("en").error(error).text


@pytest.mark.parametrize("value", [None, 1, "text", []])
def test_something_else_altogether(value: object) -> None:
    assert refused(value).values["key"] == cause("whole-document")


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


@given(ANY_FACTS)
def test_what_is_written_is_read_again(value: Facts) -> None:
    assert facts_json.from_json(json.loads(json.dumps(facts_json.to_json(value)))) == value


def test_a_package_is_written_as_lean_as_it_is() -> None:
    """Only what is not as ever is written: there can be hundreds."""
    rows: list[Any] = [
        {"name": "numpy", "version": "2.2.6"},
        {"name": "onnxruntime", "version": "1.26.0", "provided": True, "requires": ["numpy"]},
        {"name": "onnxruntime-gpu", "version": "1.26.0", "intact": False},
    ]
    read = facts_json.from_json(synthetic.document(*rows))

    assert facts_json.to_json(read)["packages"] == rows


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.sampled_from(sorted(LONG)), JSON)
def test_no_document_is_another_exception(key: str, value: object) -> None:
    with suppress(Error):
        facts_json.from_json({**LONG, key: value})


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


@pytest.mark.parametrize(
    "by", [None, facts_json.WRITTEN_BY, "ortgpu-fix 0.0.1", "another 999", "ortgpu-fix", 3]
)
def test_what_no_newer_program_wrote_has_no_unknown_keys(by: object) -> None:
    with pytest.raises(Error) as raised:
        facts_json.from_json(SHORT | {"written_by": by, "moon": "full"})

    assert raised.value.code == "facts-invalid"
