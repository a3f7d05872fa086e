"""What the flags ask of a plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from ortgpu_fix.cli.options import plan_options_of
from ortgpu_fix.cli.parser import parse
from ortgpu_fix.cli.requests import LockRequest


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("onnxruntime==1.22.1", ["onnxruntime==1.22.1"]),
        ("onnxruntime===1.22.1 ; python_version > '3'", None),
        ("onnxruntime>=1.32.0", ["onnxruntime"]),
        ("onnxruntime~=1.22.1", ["onnxruntime==1.22.*"]),
        ("onnxruntime==1.22.1+ortgpu ; sys_platform == 'linux'", []),
        ("onnxruntime-gpu==1.20.1", []),
        ("numpy==2.0", ["numpy==2.0"]),
    ],
)
def test_an_exact_pin_of_onnxruntime_binds_and_what_will_be_replaced_does_not(
    line: str, asked: list[str] | None, tmp_path: Path
) -> None:
    """A bound that a tool writes is no wish, and our own line moves with the plan."""
    file = tmp_path / "requirements.txt"
    file.write_text(f"{line}\n")
    words = ("--apply", "--write", "--python", str(tmp_path), "-r", str(file))
    asked = [line.replace("'", '"')] if asked is None else asked

    texts = [
        row.text.replace("; ", " ; ")
        for row in plan_options_of(parse(words).request.plan).requirements
    ]
    assert texts == asked


def test_where_conflicts_are_allowed_a_pin_in_a_file_has_no_say_either(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("onnxruntime==1.32.0\nonnxruntime<2\nnumpy==2.0\n")
    options = plan_options_of(parse(("--allow", "conflicts", "-r", str(file))).request)

    assert options.conflicts
    assert [row.text for row in options.requirements] == ["onnxruntime<2", "numpy==2.0"]


def test_of_a_compiled_file_the_one_that_a_person_wrote_says_which_onnxruntime(
    tmp_path: Path,
) -> None:
    compiled = tmp_path / "requirements.txt"
    compiled.write_text("#\n#    pip-compile requirements.in\n#\nonnxruntime==1.32.0\nnumpy==2.0\n")
    words = ("-r", str(compiled))

    def asked() -> list[str]:
        return [row.text for row in plan_options_of(parse(words).request).requirements]

    (tmp_path / "requirements.in").write_text("fastembed\nnumpy\n")
    assert asked() == ["numpy==2.0"]
    (tmp_path / "requirements.in").write_text("onnxruntime==1.22.1\n")
    assert asked() == ["numpy==2.0", "onnxruntime==1.22.1"]
    (tmp_path / "requirements.in").unlink()
    assert asked() == ["onnxruntime==1.32.0", "numpy==2.0"]


@pytest.mark.parametrize(
    ("words", "conflicts", "providers"),
    [((), False, False), (("--allow", "conflicts", "--allow", "provider"), True, True)],
)
def test_nothing_is_allowed_that_nobody_names(
    words: tuple[str, ...], *, conflicts: bool, providers: bool
) -> None:
    options = plan_options_of(parse(words).request)

    assert (options.conflicts, options.providers) == (conflicts, providers)


def test_the_libraries_are_provided_and_loaded_where_nobody_objects() -> None:
    lines = ((), ("--no-autoload", "--no-provide"))
    usual, without = (plan_options_of(parse(words).request) for words in lines)

    assert (usual.autoload, usual.provide) == (True, True)
    assert (without.autoload, without.provide) == (False, False)


@pytest.mark.parametrize(
    ("words", "small"),
    [
        ((), False),
        (("--prefer", "small"), True),
        (("lock", "--format", "dockerfile"), True),
        (("lock", "--format", "dockerfile", "--prefer", "newest"), False),
    ],
)
def test_an_image_gets_the_smallest_wheels(words: tuple[str, ...], *, small: bool) -> None:
    asked = parse(words).request

    plan = asked.preferred if isinstance(asked, LockRequest) else asked
    assert plan_options_of(plan).small is small
