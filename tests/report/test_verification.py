"""A verification, in words."""

from __future__ import annotations

from typing import Any

from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import Row, plain
from ortgpu_fix.plan.reasons import reason
from ortgpu_fix.report.verification import verification_sections
from ortgpu_fix.verify.verification import LoadedLibrary, Verification

EN = load_texts("en")


def test_what_works_says_what_it_proves_and_what_it_does_not() -> None:
    text = plain(verification_sections(Verification(verdict="works"), EN))

    assert text == (
        "Verification\n"
        "  It works: all models ran on the GPU with correct results\n"
        "  A convolution, a matrix product and a Fourier transform ran on this GPU. "
        "Memory use and speed of your own models were not tested"
    )


def test_evidence_libraries_and_notes_are_shown() -> None:
    verification = Verification(
        verdict="no-gpu",
        notes=(reason("crash-without-driver"), reason("timed-out", step="inference conv")),
        evidence=("conv: CUDA failure 100",),
        libraries=(LoadedLibrary(name="libcudnn.so.9", path="/x/libcudnn.so.9"),),
    )

    first, *others = verification_sections(verification, EN)

    step = (("step", "inference conv"),)
    assert first.rows[-3:] == (
        Row(text=EN.verdict("crash-without-driver")),
        Row(text=EN.verdict("timed-out", step)),
        Row(text=EN.verdict("timed-out", step, "hint"), style="dim"),
    )
    assert plain(others) == (
        "Details\n  conv: CUDA failure 100\n\n"
        "Libraries loaded from /x\n  libcudnn.so.9  libcudnn.so.9"
    )


def test_libraries_of_an_environment_are_listed_below_its_site_packages() -> None:
    names = ("libcudnn.so.9", "libcudnn_ops.so.9")
    libraries = tuple(
        LoadedLibrary(name=name, path=f"/v/lib/python3.11/site-packages/nvidia/cudnn/lib/{name}")
        for name in names
    )
    found = Verification(verdict="works", libraries=libraries)

    assert plain(verification_sections(found, EN)).endswith(
        "Libraries loaded from /v/lib/python3.11/site-packages\n"
        "  libcudnn.so.9      nvidia/cudnn/lib/libcudnn.so.9\n"
        "  libcudnn_ops.so.9  nvidia/cudnn/lib/libcudnn_ops.so.9"
    )


def test_after_a_change_details_are_left_out_unless_something_is_wrong() -> None:
    library = LoadedLibrary(name="a.so", path="/x/a.so")

    def told(verdict: Any) -> str:
        found = Verification(verdict=verdict, libraries=(library,), evidence=("seen",))
        return plain(verification_sections(found, EN, verbose=False))

    assert "seen" not in told("works")
    assert "seen" not in told("no-driver")
    assert "seen" in told("crashed")
