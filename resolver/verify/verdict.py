"""What the output and the end of `smoke` prove.

A child that crashed proves something too: releases 1.18 to 1.22 crash without a driver.
"""

from __future__ import annotations

import re
import signal

from ..facts.model import Driver
from ..plan.reasons import Reason
from ..utils.foreign_text import without_controls
from .smoke_output import DRIVER_FILE, DRIVER_SYMBOL, SmokeResult, parse_smoke_output
from .verification import (
    CUDA_FAILURE,
    GPU,
    UP_TO_THE_DRIVER,
    CheckedTorch,
    Verification,
    VerificationVerdict,
)

OUT_OF_MEMORY, INSUFFICIENT_DRIVER, NO_DEVICE, NO_KERNEL_IMAGE = 2, 35, 100, 209
UNUSABLE = frozenset({3, 46, 101, 802, 803, 804, 999})
"""CUDA failures by which the GPUs cannot be used at present."""
NOT_SUPPORTED = 801
"""What CUDA 13's runtime on Windows answers to every call where no driver of CUDA 13 is installed.

cudart64_13.dll asks nvcuda.dll for nvcudart_hybrid64.dll, the runtime itself, which comes with the
driver; without it not even the error has a text. Read from the wheel's DLL (13.0.96).
"""
THROWN = "LoadLibrary failed with error 3765269347"
"""The provider threw a C++ exception (0xE06D7363) while Windows loaded it: on Linux it crashes."""
EXPLAINED = frozenset({OUT_OF_MEMORY, NO_KERNEL_IMAGE, 802, 803, 804, 999})
"""CUDA failures with a text of their own."""
_NO_DEVICE = re.compile(r"the plugin offers no device")
_NO_KERNEL = re.compile(r"no kernel image is available|cudaErrorNoKernelImageForDevice")
_NOT_LOADED = re.compile(
    r"Failed to load library \S+ with error: (?P<linux>[^\n]+)"
    r"|Error loading \"[^\"]+\" which depends on \"(?P<windows>[^\"]+)\" which is missing"
    r"|LoadLibrary failed with error \d+"
)
_ABSENT = re.compile(r"lib[\w.+-]+(?=: cannot open shared object file)|^\S+\.dll$")
_WATCHDOG = re.compile(r"^Timeout \(\d", re.MULTILINE)
"""The last output of `smoke` when it ends itself because the driver does not start."""
_FULL = re.compile(r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|Failed to allocate memory")
_MIXED = re.compile(r"CUDNN_STATUS_(SUBLIBRARY_)?(VERSION_MISMATCH|LOADING_FAILED)")
_LATE = re.compile(r"(cuDNN|cuFFT|NVRTC) (is unavailable|is not available|library .*not)")
_SONAME = re.compile(r"^(.*?\.(?:so|dll)(?:\.\d+)?).*$")


_DUMP = re.compile(r"^(?:Fatal Python error|Windows fatal exception): |^Timeout \(\d", re.MULTILINE)
"""Where the dump of all threads begins, which `faulthandler` writes at a crash."""
_CHATTER = re.compile(r"\[[VI]:onnxruntime|^warnings\.warn\($")
"""What onnxruntime logs of its work, asked to: verbose, and information; what follows a warning."""
_NUMPY = re.compile(
    r"A module that was compiled using NumPy 1\.x cannot be run in\s+NumPy ([\w.]+) as it may crash"
    r"(?=.*from onnxruntime\.capi)",
    re.DOTALL,
)
"""What numpy says while a release for numpy 1 is imported, as its traceback shows."""


def judge(
    *, stdout: str, stderr: str, returncode: int, timed_out: bool, driver: Driver | None
) -> Verification:
    """Return what the child's output and its end prove.

    `driver` is of the machine's facts; what the child reports of it counts first.
    """
    result = parse_smoke_output(stdout, stderr)
    if not result.ended:
        judgement = _unfinished(result, returncode, timed_out=timed_out, driver=driver)
    elif result.models and all(
        run.ran_on(result.provider) and run.correct for run in result.models
    ):
        judgement = _Judgement("works")
    else:
        judgement = _not_loaded(result, driver) or _failed(result, driver) or _ran(result, driver)
    if judgement.verdict in UP_TO_THE_DRIVER | {"cpu-fallback", "other-provider"} and result.absent:
        judgement = _Judgement("library-missing", judgement.evidence, library=result.absent[0].name)
    values = judgement.values
    if judgement.verdict == "driver-too-old" and not values:
        values = (("speaks", _driver_cuda(result, driver) or "?"), ("needs", result.cuda or "?"))
    evidence = [*result.lines(), *filter(None, [judgement.evidence])]
    if judgement.verdict == "crashed" and not (result.ended and result.usable):
        evidence += last_words(result.log)
    return Verification(
        verdict=judgement.verdict,
        values=values,
        notes=(*judgement.notes, *_notes(result)),
        evidence=tuple(evidence),
        models=result.models,
        libraries=result.libraries,
        helped=result.helped,
        plain=result.plain,
        build=CheckedTorch(version=result.torch_version or "?", cuda=result.torch_cuda)
        if result.torch_cuda
        else None,
        torch=result.torch,
    )


class _Judgement:
    """A verdict with its evidence, the values of its text and a note that explains it."""

    def __init__(
        self,
        verdict: VerificationVerdict,
        evidence: str = "",
        *,
        note: str | None = None,
        **values: str,
    ) -> None:
        self.verdict = verdict
        self.evidence = evidence
        self.values = tuple(values.items())
        self.notes = (Reason(code=note, values=self.values),) if note else ()


def _driver_cuda(result: SmokeResult, driver: Driver | None) -> str | None:
    return result.driver_cuda or (driver.cuda if driver else None)


def _unfinished(
    result: SmokeResult, returncode: int, *, timed_out: bool, driver: Driver | None
) -> _Judgement:
    """Judge a child that a crash or the time limit ended."""
    if timed_out or (result.step == "cuInit" and _WATCHDOG.search(result.log)):
        return _Judgement("crashed", note="timed-out", step=result.step)
    end = f"{result.step}: ended by {describe_end(returncode)}"
    if numpy := _NUMPY.search(result.log):
        said = " ".join(numpy.group().split())
        return _Judgement("crashed", f"{end}; {said}", note="numpy-too-new", version=numpy.group(1))
    if result.step.startswith("inference") and (result.cuda or result.needed):
        if lack := _driver_lack(result, driver):
            return _Judgement(lack, end, note="crash-without-driver")
        if result.driver_init:
            return _cuda_failure(result.driver_init, None, end)
    return _Judgement("crashed", end)


def last_words(log: str) -> list[str]:
    """Return the last line that a child printed, as a line of evidence; none where it was silent.

    Where it left a dump of its threads, the line before that, or what the dump says first.
    """
    dump = _DUMP.search(log)
    before, after = (log[: dump.start()], log[dump.start() :]) if dump else (log, "")
    said = _lines(before)[-1:] or _lines(after)[:1]
    return [f"it printed last: {line[:400]}" for line in said]


def _lines(log: str) -> list[str]:
    lines = (without_controls(line).strip() for line in log.splitlines())
    return [line for line in lines if line and not _CHATTER.search(line)]


def describe_end(returncode: int) -> str:
    """Return `SIGSEGV`, `exit code 1`, or `exit code 0xc0000005` (Windows)."""
    if returncode < 0:
        names = {number.value: number.name for number in signal.Signals}
        return names.get(-returncode, f"signal {-returncode}")
    return f"exit code {returncode:#x}" if returncode >= 2**31 else f"exit code {returncode}"


def _driver_lack(result: SmokeResult, driver: Driver | None) -> VerificationVerdict | None:
    """Return what is wrong with the driver; None where it suffices or is not known."""
    cuda = _driver_cuda(result, driver)
    if cuda and result.cuda and int(cuda.partition(".")[0]) < int(result.cuda):
        return "driver-too-old"
    return None if result.driver_library else "no-driver"


def _not_loaded(result: SmokeResult, driver: Driver | None) -> _Judgement | None:
    """Judge why onnxruntime or its provider could not be loaded."""
    if not result.usable:
        if absent := _ABSENT.search(result.import_error or ""):
            return _Judgement("library-missing", library=absent.group(0))
        if "DLL load failed" in (result.import_error or ""):
            return _Judgement("crashed", note="runtime-too-old")
        return _Judgement("crashed", note="import-failed" if result.import_error else "gutted")
    message = _NOT_LOADED.search(result.log)
    if not message:
        return None
    reason = message.group("linux") or message.group("windows") or message.group(0)
    absent = _ABSENT.search(reason)
    library = absent.group(0) if absent else "onnxruntime_providers_cuda"
    lack = _driver_lack(result, driver)
    blocked = any(needed.driver for needed in result.needed if needed.name == library)
    if reason == THROWN and (lack or result.driver_init):
        verdict = lack or _cuda_failure(result.driver_init or NO_DEVICE, None).verdict
        return _Judgement(verdict, reason, note="crash-without-driver")
    if blocked or DRIVER_FILE.match(library) or (lack and DRIVER_SYMBOL.search(reason)):
        return _Judgement(lack or "no-driver", reason)
    return _Judgement("library-missing", reason, library=library)


def _failed(result: SmokeResult, driver: Driver | None) -> _Judgement | None:
    """Judge the errors of CUDA and its libraries."""
    for message in [*(run.error for run in result.models if run.error), result.log]:
        if failure := CUDA_FAILURE.search(message):
            logged = failure.group(0) if message is result.log else ""
            code, lack = int(failure.group(1)), _driver_lack(result, driver)
            if code == NOT_SUPPORTED:
                code = INSUFFICIENT_DRIVER if lack else result.driver_init or code
            return _cuda_failure(code, lack, logged)
        if _NO_DEVICE.search(message):
            lack = _driver_lack(result, driver)
            return (
                _Judgement(lack) if lack else _cuda_failure(result.driver_init or NO_DEVICE, None)
            )
        if _NO_KERNEL.search(message):
            return _cuda_failure(NO_KERNEL_IMAGE, None)
        if _FULL.search(message):
            return _cuda_failure(OUT_OF_MEMORY, None)
        if mixed := _MIXED.search(message):
            return _Judgement("crashed", mixed.group(0), note="cudnn-mixed")
        if late := _LATE.search(message):
            return _Judgement("library-missing", late.group(0), library=late.group(1))
    return None


def _cuda_failure(code: int, lack: VerificationVerdict | None, evidence: str = "") -> _Judgement:
    note = f"cuda-failure-{code}" if code in EXPLAINED else None
    if code == INSUFFICIENT_DRIVER:
        return _Judgement(lack or "driver-too-old", evidence)
    unusable = code == NO_DEVICE or code in UNUSABLE
    return _Judgement("no-gpu" if unusable else "crashed", evidence, note=note)


def _ran(result: SmokeResult, driver: Driver | None) -> _Judgement:
    """Judge inference that finished with a wrong result or not on the GPU.

    A build whose import registers its CUDA provider offers no device where there is no GPU: then
    the session runs on the CPU, and no error says so. One without CUDA would run there anyway.
    """
    if wrong := [run.label for run in result.models if run.correct is False]:
        return _Judgement("wrong-result", models=", ".join(wrong))
    elsewhere = [run for run in result.models if not run.ran_on(result.provider)]
    if any(run.error and "NOT_IMPLEMENTED" not in run.error for run in elsewhere):
        return _Judgement("crashed")
    if (result.cuda or result.needed) and elsewhere == list(result.models):
        if lack := _driver_lack(result, driver):
            return _Judgement(lack)
        if result.driver_init:
            return _cuda_failure(result.driver_init, None)
    models = ", ".join(run.label for run in elsewhere)
    if result.provider == GPU:
        return _Judgement("cpu-fallback", models=models)
    return _Judgement("other-provider", models=models, provider=result.provider)


def _notes(result: SmokeResult) -> list[Reason]:
    """Return the notes that apply to every verdict."""
    notes = []
    if result.helped:
        values = (("libraries", ", ".join(result.helped)),)
        notes.append(Reason(code="libraries-helped", values=values))
    places: dict[str, set[str]] = {}
    for library in result.libraries:
        places.setdefault(_SONAME.sub(r"\1", library.name), set()).add(library.path)
    for name, paths in sorted(places.items()):
        if len(paths) > 1:
            twice = (("library", name), ("paths", ", ".join(sorted(paths))))
            notes.append(Reason(code="library-twice", values=twice))
    return notes
