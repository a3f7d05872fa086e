"""What a log says of a TensorRT that is missing, where its release is known."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.data_files import load_table
from ortgpu_fix.explain.failures import parse_failures
from ortgpu_fix.explain.matcher import Search
from ortgpu_fix.matrix.model import Build
from ortgpu_fix.messages.catalog import Language

TABLE = parse_failures(load_table("failures"))
BUILDS = {build.version: build for build in synthetic.matrix().builds}
MISSING = (
    "Failed to load library libonnxruntime_providers_tensorrt.so with error: {library}:"
    " cannot open shared object file: No such file or directory\n"
)
INSTALL = 'pip install "tensorrt-cu12==10.*"'


def remedy(
    release: str | None,
    library: str = "libnvinfer.so.10",
    *,
    before: str = "",
    language: Language = "en",
    **changed: Any,
) -> tuple[str, str]:
    """Return the code and the remedy for a log, on a machine with this release."""

    def build_of(version: str) -> Build | None:
        build = BUILDS.get(version)
        return build._replace(**changed) if build else None

    search = Search(TABLE)
    search.feed(before + MISSING.format(library=library), joined=True)
    (found,) = search.explanations(language, release, build_of)
    return found.code, found.remedy


def test_the_matrix_is_asked_only_where_a_tensorrt_is_missing() -> None:
    """It takes longer than all the rest."""
    asked: list[str] = []
    for library, release in (("libcublas.so.12", "1.26.0"), ("libnvinfer.so.10", None)):
        search = Search(TABLE)
        search.feed(MISSING.format(library=library), joined=True)
        search.explanations("en", release, asked.append)

    assert asked == []


def without(release: str | None) -> str:
    """Return the remedy that the table has for any release of this kind."""
    search = Search(TABLE)
    search.feed(MISSING.format(library="libnvinfer.so.10"), joined=True)
    (found,) = search.explanations("en", release)
    return found.remedy


@pytest.mark.parametrize(
    ("release", "code"),
    [("1.26.0", "tensorrt-unavailable"), ("1.23.0", "tensorrt-cpu-fallback")],
)
def test_what_the_release_links_is_named(release: str, code: str) -> None:
    english = (
        f" To use TensorRT instead, install the one that onnxruntime-gpu {release} links,"
        f" `{INSTALL}`, and `import tensorrt` before the session is created."
    )

    assert remedy(release) == (code, without(release) + english)
    code_there, chinese = remedy(release, language="zh")
    assert code_there == code
    assert f"。若要改用 TensorRT：执行 `{INSTALL}` 安装 onnxruntime-gpu {release} 所" in chinese


def test_the_release_that_a_log_names_comes_first() -> None:
    _, text = remedy("1.18.0", before="onnxruntime 1.26.0\n")

    assert f"onnxruntime-gpu 1.26.0 links, `{INSTALL}`" in text


@pytest.mark.parametrize(
    ("release", "library", "changed"),
    [
        (None, "libnvinfer.so.10", {}),
        ("1.25.7", "libnvinfer.so.10", {}),  # that no matrix knows
        ("1.18.0", "libnvinfer.so.10", {}),  # a log of another release: this one links 8
        ("1.26.0", "libnvinfer.so.10", {"tensorrt": None}),
        ("1.26.0", "libcublas.so.12", {}),
        ("1.26.0", "libnvonnxparser.so.10", {"tensorrt": None}),
    ],
)
def test_nothing_is_added_where_it_is_not_known(
    release: str | None, library: str, changed: dict[str, Any]
) -> None:
    assert remedy(release, library, **changed) == ("tensorrt-unavailable", without(release))


def test_a_row_without_such_a_text_says_no_more() -> None:
    raw = load_table("failures")
    rows = [{key: row[key] for key in row.keys() - {"to_use"}} for row in raw["failure"]]
    search = Search(parse_failures({**raw, "failure": rows}))
    search.feed(MISSING.format(library="libnvinfer.so.10"), joined=True)

    (found,) = search.explanations("en", "1.26.0", BUILDS.get)

    assert found.remedy == without("1.26.0")


def test_a_program_with_a_python_of_its_own_is_not_told_to_use_pip() -> None:
    frozen = "[PYI-1234:ERROR] Failed to execute script 'main' due to unhandled exception!\n"

    _, text = remedy("1.26.0", before=frozen)

    assert "pip install" not in text
