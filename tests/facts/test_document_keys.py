"""Each key of a facts document: what is read of it, what it may be, and whether it must be there.

The kinds are those of the contract: short for who writes a document by hand, and refused by name
where something in it is not what it should be.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from documents import put
from hypothesis import given
from hypothesis import strategies as st

from ortgpu_fix.errors import Error
from ortgpu_fix.facts.document import from_json, to_json
from ortgpu_fix.facts.model import (
    Driver,
    Facts,
    Gpu,
    Interpreter,
    Library,
    OnnxRuntime,
    Package,
    Platform,
    Provider,
    Toolkit,
)

DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "platform": {
        "system": "windows",
        "machine": "aarch64",
        "libc": "glibc 2.35",
        "distribution": "Ubuntu 22.04",
        "wsl": True,
        "container": "docker",
        "jetson": "36.4",
    },
    "driver": {"version": "535.104.12", "cuda": "12.2", "error": "no-answer: x"},
    "gpus": [{"name": "NVIDIA A100", "compute_capability": "8.0", "memory_mib": 81920}],
    "toolkits": [{"version": "12.4", "path": "/usr/local/cuda-12.4"}],
    "libraries": [{"name": "libcudnn.so.9", "path": "/usr/lib/libcudnn.so.9", "version": "9.1.0"}],
    "python": {
        "version": "3.11.7",
        "implementation": "PyPy",
        "free_threaded": True,
        "executable": "/x/bin/python",
        "environment": "conda",
        "externally_managed": True,
        "managed_by": "pyenv-win",
        "read_only": True,
        "autoload": False,
        "project": "uv",
        "locked": "1.26.0",
        "shadow": "/y",
        "command": "~/bin/x",
        "moved_from": "/old",
        "change": "kept",
        "change_size": 5,
    },
    "packages": [
        {
            "name": "Fast_Embed",
            "version": "0.9.1",
            "requires": ["onnxruntime>=1.17"],
            "provided": True,
            "intact": False,
            "libraries": ["a/b.so"],
            "outside": True,
            "held": "conda",
        }
    ],
    "onnxruntime": {
        "distribution": "onnxruntime-gpu",
        "version": "1.26.0",
        "cuda": "12.8",
        "intact": False,
        "provider": {
            "links": ["libcublas.so.12"],
            "names": ["libcudnn.so.9"],
            "sass": ["8.0"],
            "ptx": ["9.0"],
            "toolset": "14.40",
            "preload_dlls": True,
        },
    },
    "environment": {"LD_LIBRARY_PATH": "/x"},
    "sources": {"gpus": "nvml"},
}
"""Every key, with a value that does not stand for a missing one."""
FACTS = Facts(
    platform=Platform(
        system="windows",
        machine="aarch64",
        libc="glibc 2.35",
        distribution="Ubuntu 22.04",
        wsl=True,
        container="docker",
        jetson="36.4",
    ),
    driver=Driver(version="535.104.12", cuda="12.2", error="no-answer: x"),
    gpus=(Gpu(name="NVIDIA A100", compute_capability="8.0", memory_mib=81920),),
    python=Interpreter(
        version="3.11.7",
        implementation="pypy",
        free_threaded=True,
        executable="/x/bin/python",
        environment="conda",
        externally_managed=True,
        managed_by="pyenv-win",
        read_only=True,
        autoload=False,
        project="uv",
        locked="1.26.0",
        shadow="/y",
        command="~/bin/x",
        moved_from="/old",
        change="kept",
        change_size=5,
    ),
    packages=(
        Package(
            name="fast-embed",
            version="0.9.1",
            requires=("onnxruntime>=1.17",),
            provided=True,
            intact=False,
            libraries=("a/b.so",),
            outside=True,
            held="conda",
        ),
    ),
    toolkits=(Toolkit(version="12.4", path="/usr/local/cuda-12.4"),),
    libraries=(Library(name="libcudnn.so.9", path="/usr/lib/libcudnn.so.9", version="9.1.0"),),
    onnxruntime=OnnxRuntime(
        distribution="onnxruntime-gpu",
        version="1.26.0",
        cuda="12.8",
        intact=False,
        provider=Provider(
            links=("libcublas.so.12",),
            names=("libcudnn.so.9",),
            sass=("8.0",),
            ptx=("9.0",),
            toolset="14.40",
            preload_dlls=True,
        ),
    ),
    environment={"LD_LIBRARY_PATH": "/x"},
    sources={"gpus": "nvml"},
)
REQUIRED = {
    *("schema", "platform", "platform.system", "platform.machine", "python"),
    *("python.version", "packages", "packages[0].name", "packages[0].version"),
    "libraries[0].name",  # of a list that need not be there
}
NUMBERS = {"platform.libc", "driver.version", "driver.cuda", "python.version"}
NUMBERS |= {"gpus[0].compute_capability"}
CHOICES = {"platform.system", "platform.machine", "python.environment", "python.change"}


def places(value: Any, name: str = "", at: tuple[Any, ...] = ()) -> list[tuple[str, list[Any]]]:
    """Return every key, as messages name it, and its path."""
    if isinstance(value, dict):
        rows = [(f"{name}.{key}".lstrip("."), key) for key in value]
    else:
        rows = [(f"{name}[{number}]", number) for number in range(len(value))]
    found: list[tuple[str, list[Any]]] = []
    for inner, key in rows:
        found.append((inner, [*at, key]))
        if isinstance(value[key], (dict, list)):
            found += places(value[key], inner, (*at, key))
    return found


PLACES = dict(places(DOCUMENT))
MAPS = ("environment.", "sources.")
KEYS = [name for name in PLACES if not name.endswith("]") and not name.startswith(MAPS)]


def with_value(name: str, value: object) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    put(document, PLACES[name], value)
    return document


def refused(document: Any) -> str | None:
    """Return the key that a document is refused for."""
    try:
        from_json(document)
    except Error as error:
        return str(error.values["key"])
    return None


def test_every_key_is_read() -> None:
    assert from_json(DOCUMENT) == FACTS
    assert from_json(to_json(FACTS)) == FACTS


@pytest.mark.parametrize("name", KEYS)
def test_what_need_not_be_there_may_be_left_out(name: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    holder: Any = document
    for key in PLACES[name][:-1]:
        holder = holder[key]
    del holder[PLACES[name][-1]]

    assert refused(document) == (name if name in REQUIRED else None)


@pytest.mark.parametrize("name", KEYS)
def test_a_value_of_another_kind_is_refused_by_its_key(name: str) -> None:
    whole: Any = DOCUMENT
    for key in PLACES[name]:
        whole = whole[key]
    others: list[object] = [3.5, "text", True, 7, [], {}, ["text"], [3], {"x": "y"}]
    for other in others:
        alike = type(other) is type(whole)
        if alike and not isinstance(whole, (list, dict)):
            continue
        if alike and (not other or all(type(one) is str for one in other)):  # type: ignore[attr-defined]
            continue  # may be right; an unknown key is another test's
        assert (refused(with_value(name, other)) or "").startswith(name), other


@pytest.mark.parametrize("name", sorted(NUMBERS | CHOICES))
@pytest.mark.parametrize("odd", ["", "x", "7 7", "8.", ".8", "8.0\n"])
def test_a_text_that_means_nothing_is_refused_by_its_key(name: str, odd: str) -> None:
    assert refused(with_value(name, odd)) == name


def test_a_document_of_another_schema_is_refused() -> None:
    assert refused(with_value("schema", 2)) == "schema"


@pytest.mark.parametrize("name", ["", *(name for name in KEYS if "." not in name), "gpus[0]"])
def test_an_unknown_key_is_refused_by_its_name(name: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    holder: Any = document
    for key in PLACES[name] if name else ():
        holder = holder[key]
    if not isinstance(holder, dict) or name in {"environment", "sources"}:
        return
    holder["unheard-of"] = 1

    assert refused(document) == f"{name}.unheard-of".lstrip(".")


def test_what_nobody_told_of_a_python_is_no_key() -> None:
    told = {"managed_by", "read_only", "locked", "shadow", "command", "moved_from"}
    flags = {"read_only": False}
    nothing = FACTS.python._replace(**dict.fromkeys(told) | flags)  # type: ignore[arg-type]

    assert told <= set(to_json(FACTS)["python"])  # type: ignore[call-overload]
    assert not told & set(to_json(FACTS._replace(python=nothing))["python"])  # type: ignore[call-overload]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.sampled_from(sorted(DOCUMENT)), JSON)
def test_no_document_is_another_exception(key: str, value: object) -> None:
    with suppress(Error):
        from_json({**DOCUMENT, key: value})
