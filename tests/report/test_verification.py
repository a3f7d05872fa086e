"""A verification, in words."""

from __future__ import annotations

from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.plan.reasons import reason
from ortgpu_fix.report.verification import verification_sections
from ortgpu_fix.verify.model import Verification
from ortgpu_fix.verify.smoke_result import LoadedLibrary

EN = load_texts("en")


def test_what_works_says_what_it_proves_and_what_it_does_not() -> None:
    text = plain(verification_sections(Verification(verdict="works"), EN))

    assert text == (
        "Verification\n"
        "  It works: all models ran on the GPU and gave the right numbers\n"
        "  Convolution, matrix product and Fourier transform ran on this GPU with the libraries"
        " listed. It says nothing about your own models' memory or speed"
    )


def test_evidence_libraries_and_notes_are_shown() -> None:
    verification = Verification(
        verdict="no-gpu",
        notes=(reason("crash-without-driver"), reason("timed-out", step="inference conv")),
        evidence=("conv: CUDA failure 100",),
        libraries=(LoadedLibrary(name="libcudnn.so.9", path="/x/libcudnn.so.9"),),
    )

    text = plain(verification_sections(verification, EN))

    assert "What was seen\n  conv: CUDA failure 100" in text
    assert "Libraries loaded\n  libcudnn.so.9  /x/libcudnn.so.9" in text
    assert "A GPU that hangs every program needs a reset" in text
    assert "This release crashes where no driver is sufficient" in text
