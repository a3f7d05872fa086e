"""What a log says of a TensorRT that is missing."""

from __future__ import annotations

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import Search
from ortgpu_fix.messages.catalog import Language

TABLE = parse_failures(load_table("failures"))
MISSING = (
    "Failed to load library libonnxruntime_providers_tensorrt.so with error: libnvinfer.so.10:"
    " cannot open shared object file: No such file or directory\n"
)


def remedy(release: str | None, *, before: str = "", language: Language = "en") -> tuple[str, str]:
    """Return the code and the remedy for a log, on a machine with this release."""
    search = Search(TABLE)
    search.feed(before + MISSING, joined=True)
    (found,) = search.explanations(language, release)
    return found.code, found.remedy


@pytest.mark.parametrize(
    ("release", "code", "leave_out"),
    [
        (None, "tensorrt-unavailable", "Pass providers"),
        ("1.26.0", "tensorrt-unavailable", "No action is needed. To remove the message"),
        ("1.23.0", "tensorrt-cpu-fallback", "Do not request TensorRT"),
    ],
)
def test_who_wants_tensorrt_is_told_how_to_have_it(
    release: str | None, code: str, leave_out: str
) -> None:
    """To leave it out was the only advice."""
    found, english = remedy(release)
    chinese = remedy(release, language="zh")[1]

    assert found == code
    assert english.startswith(leave_out)
    assert ". To use TensorRT instead, run `ortgpu-fix --provider tensorrt`: it plans" in english
    assert "。若要改用 TensorRT：`ortgpu-fix --provider tensorrt` " in chinese


def test_a_program_with_a_python_of_its_own_is_not_told_to_install_it() -> None:
    frozen = "[PYI-1234:ERROR] Failed to execute script 'main' due to unhandled exception!\n"

    assert "--provider tensorrt" not in remedy("1.26.0", before=frozen)[1]
