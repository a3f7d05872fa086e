"""What the check in the target environment proves.

In comes what `smoke` printed and how it ended; out comes a `Verification`. A child that died
is an answer too: some releases (1.18 to 1.22) crash where there is no driver.
"""

from __future__ import annotations

import re
import signal

from ..facts.model import Driver
from ..plan.reasons import Reason
from .model import UP_TO_THE_DRIVER, TorchBuild, Verdict, Verification
from .smoke_output import read
from .smoke_result import CUDA_FAILURE, DRIVER_FILE, DRIVER_SYMBOL, Answer

OUT_OF_MEMORY, INSUFFICIENT_DRIVER, NO_DEVICE, NO_KERNEL_IMAGE = 2, 35, 100, 209
UNUSABLE = frozenset({3, 46, 101, 802, 803, 804, 999})
"""CUDA failures by which GPUs that are there cannot be used at present."""
EXPLAINED = frozenset({OUT_OF_MEMORY, NO_KERNEL_IMAGE, 802, 803, 804, 999})
"""CUDA failures that have a text of their own."""

_NO_KERNEL = re.compile(r"no kernel image is available|cudaErrorNoKernelImageForDevice")
_NOT_LOADED = re.compile(
    r"Failed to load library \S+ with error: (?P<linux>[^\n]+)"
    r"|Error loading \"[^\"]+\" which depends on \"(?P<windows>[^\"]+)\" which is missing"
    r"|LoadLibrary failed with error \d+"
)
_ABSENT = re.compile(r"(?P<name>lib[\w.+-]+): cannot open shared object file|^(?P<dll>\S+\.dll)$")
_WATCHDOG = re.compile(r"^Timeout \(\d", re.MULTILINE)
"""What `smoke` leaves when it ends itself because the driver does not start."""
_FULL = re.compile(r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|Failed to allocate memory")
_MIXED = re.compile(r"CUDNN_STATUS_(SUBLIBRARY_)?(VERSION_MISMATCH|LOADING_FAILED)")
_LATE = re.compile(r"(cuDNN|cuFFT|NVRTC) (is unavailable|is not available|library .*not)")
_SONAME = re.compile(r"^(.*?\.(?:so|dll)(?:\.\d+)?).*$")


def judge(
    *, stdout: str, stderr: str, returncode: int, timed_out: bool, driver: Driver | None
) -> Verification:
    """Return what the child's output and its end prove.

    `driver` is what the machine's facts say of it; what the child itself found comes first.
    """
    answer = read(stdout, stderr)
    if answer.ended:
        found = _right(answer) or _not_loaded(answer, driver) or _failed(answer, driver)
        found = found or _ran(answer)
    else:
        found = _unfinished(answer, returncode, timed_out=timed_out, driver=driver)
    if found.verdict in UP_TO_THE_DRIVER | {"cpu-fallback"} and answer.absent:
        found = _Found("library-missing", found.evidence, library=answer.absent[0].name)
    return Verification(
        verdict=found.verdict,
        values=found.values or _versions(found.verdict, answer, driver),
        notes=(*found.notes, *_notes(answer)),
        evidence=(*answer.lines(), *([found.evidence] if found.evidence else [])),
        models=answer.models,
        libraries=answer.libraries,
        helped=answer.helped,
        plain=answer.plain,
        build=_torch_build(answer),
        torch=answer.torch,
    )


def _torch_build(answer: Answer) -> TorchBuild | None:
    if answer.torch_cuda is None:
        return None
    return TorchBuild(version=answer.torch_version or "?", cuda=answer.torch_cuda)


class _Found:
    """A verdict on the way: what it rests on, the values of its text, a note that explains it."""

    def __init__(
        self, verdict: Verdict, evidence: str = "", *, note: str | None = None, **values: str
    ) -> None:
        self.verdict = verdict
        self.evidence = evidence
        self.values = tuple(values.items())
        self.notes = (Reason(code=note, values=self.values),) if note else ()


def _versions(
    verdict: Verdict, answer: Answer, driver: Driver | None
) -> tuple[tuple[str, str], ...]:
    """Return what a driver that is too old speaks, and what the build needs."""
    if verdict != "driver-too-old":
        return ()
    speaks = answer.driver_cuda or (driver.cuda if driver else None)
    return (("speaks", speaks or "?"), ("needs", answer.cuda or "?"))


def _unfinished(
    answer: Answer, returncode: int, *, timed_out: bool, driver: Driver | None
) -> _Found:
    """Judge a child that did not come to its own end."""
    if timed_out or (answer.step == "cuInit" and _WATCHDOG.search(answer.log)):
        return _Found("crashed", note="timed-out", step=answer.step)
    end = f"{answer.step}: ended by {_end(returncode)}"
    if answer.step.startswith("inference"):
        if lack := _driver_lack(answer, driver):
            return _Found(lack, end, note="crash-without-driver")
        if answer.driver_init:
            return _cuda_failure(answer.driver_init, None, end)
    return _Found("crashed", end)


def _end(returncode: int) -> str:
    """Return how a process ended, by the name that people know."""
    if returncode < 0:
        names = {number.value: number.name for number in signal.Signals}
        return names.get(-returncode, f"signal {-returncode}")
    return f"exit code {returncode:#x}" if returncode >= 2**31 else f"exit code {returncode}"


def _driver_lack(answer: Answer, driver: Driver | None) -> Verdict | None:
    """Return what is wrong with the driver, as far as it is known; None where it suffices."""
    speaks = answer.driver_cuda or (driver.cuda if driver else None)
    if speaks and answer.cuda and int(speaks.partition(".")[0]) < int(answer.cuda):
        return "driver-too-old"
    return None if answer.driver_library else "no-driver"


def _not_loaded(answer: Answer, driver: Driver | None) -> _Found | None:
    """Judge what kept onnxruntime or its provider from being loaded."""
    if not answer.usable:
        if absent := _ABSENT.search(answer.import_error or ""):
            return _Found("library-missing", library=absent.group(0).partition(":")[0])
        if "DLL load failed" in (answer.import_error or ""):
            return _Found("crashed", note="runtime-too-old")
        return _Found("crashed", note="import-failed" if answer.import_error else "gutted")
    message = _NOT_LOADED.search(answer.log)
    if not message:
        return None
    reason = message.group("linux") or message.group("windows") or message.group(0)
    named = _ABSENT.search(reason)
    library = (named.group("name") or named.group("dll")) if named else "onnxruntime_providers_cuda"
    lack = _driver_lack(answer, driver)
    blocked = any(needed.driver for needed in answer.needed if needed.name == library)
    if blocked or DRIVER_FILE.match(library) or (lack and DRIVER_SYMBOL.search(reason)):
        return _Found(lack or "no-driver", reason)
    return _Found("library-missing", reason, library=library)


def _failed(answer: Answer, driver: Driver | None) -> _Found | None:
    """Judge what CUDA or its libraries said, where they said something."""
    for message in [*(run.error for run in answer.models if run.error), answer.log]:
        if failure := CUDA_FAILURE.search(message):
            logged = failure.group(0) if message is answer.log else ""
            return _cuda_failure(int(failure.group(1)), _driver_lack(answer, driver), logged)
        if _NO_KERNEL.search(message):
            return _cuda_failure(NO_KERNEL_IMAGE, None)
        if _FULL.search(message):
            return _cuda_failure(OUT_OF_MEMORY, None)
        if mixed := _MIXED.search(message):
            return _Found("crashed", mixed.group(0), note="cudnn-mixed")
        if late := _LATE.search(message):
            return _Found("library-missing", late.group(0), library=late.group(1))
    return None


def _cuda_failure(code: int, lack: Verdict | None, evidence: str = "") -> _Found:
    note = f"cuda-failure-{code}" if code in EXPLAINED else None
    if code == INSUFFICIENT_DRIVER:
        return _Found(lack or "driver-too-old", evidence)
    if code == NO_DEVICE or code in UNUSABLE:
        return _Found("no-gpu", evidence, note=note)
    return _Found("crashed", evidence, note=note)


def _right(answer: Answer) -> _Found | None:
    """Judge inference that left nothing to be desired, whatever was said on the way."""
    right = bool(answer.models) and all(run.on_gpu and run.correct for run in answer.models)
    return _Found("works") if right else None


def _ran(answer: Answer) -> _Found:
    """Judge inference that came to its end, and was not right."""
    if wrong := [run.label for run in answer.models if run.correct is False]:
        return _Found("wrong-result", models=", ".join(wrong))
    elsewhere = [run for run in answer.models if not run.on_gpu]
    if any(run.error and "NOT_IMPLEMENTED" not in run.error for run in elsewhere):
        return _Found("crashed")
    return _Found("cpu-fallback", models=", ".join(run.label for run in elsewhere))


def _notes(answer: Answer) -> list[Reason]:
    """Return what is worth knowing whatever the verdict is."""
    notes = []
    if answer.helped:
        values = (("libraries", ", ".join(answer.helped)),)
        notes.append(Reason(code="libraries-helped", values=values))
    places: dict[str, set[str]] = {}
    for library in answer.libraries:
        places.setdefault(_SONAME.sub(r"\1", library.name), set()).add(library.path)
    for name, paths in sorted(places.items()):
        if len(paths) > 1:
            twice = (("library", name), ("paths", ", ".join(sorted(paths))))
            notes.append(Reason(code="library-twice", values=twice))
    return notes
