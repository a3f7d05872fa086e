"""What the check in the target environment said, as values.

`answer_lines` reads them, `verdict` judges them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

GPU = "CUDAExecutionProvider"
TOLERANCE = 1e-3
"""Of the largest number expected. The models' numbers are exact in TF32, so this is generous."""
DRIVER_FILE = re.compile(r"libcuda\.so|nvcuda\.dll|libnvidia-")
"""The driver's own libraries: no wheel brings them."""
DRIVER_SYMBOL = re.compile(r"undefined symbol: cu[A-Z]")
"""A function that a library expects of the driver's, and an old driver does not have."""
CUDA_FAILURE = re.compile(r"CUDA failure (\d+): ([^;\n]*[^;\s])")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRun:
    """One model: where its nodes ran, how right the result was, how long it took."""

    name: str
    gpu: str | None = None
    """`NVIDIA H200 (9.0)`; None where the driver offers none."""
    nodes: tuple[tuple[str, str], ...] = ()
    """Operator and provider, of each node that ran."""
    deviation: float | None = None
    """The largest difference from what must come out, as a part of the largest number."""
    correct: bool | None = None
    """None where nothing came out."""
    create_ms: float | None = None
    first_ms: float | None = None
    second_ms: float | None = None
    """The second run at the same shape: what the model costs from then on."""
    error: str | None = None

    @property
    def on_gpu(self) -> bool:
        """Tell whether everything but the copying ran on the GPU."""
        ran = [provider for op, provider in self.nodes if not op.startswith("Memcpy")]
        return bool(ran) and all(provider == GPU for provider in ran)

    @property
    def label(self) -> str:
        """Return the model and where it ran: `conv on NVIDIA H200 (9.0)`."""
        return f"{self.name} on {self.gpu}" if self.gpu else self.name

    def lines(self) -> list[str]:
        """Return what happened, in a line or two."""
        lines = []
        if self.error:
            failure = CUDA_FAILURE.search(self.error)
            lines.append(f"{self.label}: {failure.group(0) if failure else self.error[:400]}")
        if self.nodes:
            nodes = ", ".join(f"{op} on {provider}" for op, provider in self.nodes)
            times = f"{self.first_ms} ms, then {self.second_ms} ms"
            lines.append(f"{self.label}: {nodes}; off by {self.deviation}; {times}")
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLibrary:
    """A CUDA-side library that the process had loaded, and from which file."""

    name: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededLibrary:
    """A library that the provider needs, and how loading it went."""

    name: str
    error: str | None
    helped: bool
    """Only the check's own help loaded it, from a wheel."""
    optional: bool

    @property
    def driver(self) -> bool:
        """Tell whether it is the driver that is missing: the library is its own, or needs it."""
        error = self.error or ""
        own = error and DRIVER_FILE.match(self.name)
        return bool(own or DRIVER_FILE.match(error) or DRIVER_SYMBOL.search(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRun:
    """torch on one GPU: how far its numbers are from those of the CPU."""

    gpu: str | None
    product: float | None
    convolution: float | None
    error: str | None

    @property
    def correct(self) -> bool:
        """Tell whether both came out, and right."""
        both = (self.product, self.convolution)
        return self.error is None and all(one is not None and one <= TOLERANCE for one in both)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchResult:
    """What torch did in the process."""

    error: str | None
    """Why it could not be imported."""
    unavailable: str | None
    """Why it cannot use a GPU, in its own words; None where it can, or was not imported."""
    runs: tuple[TorchRun, ...]

    @property
    def works(self) -> bool:
        """Tell whether it computed the right numbers on every GPU."""
        return bool(self.runs) and all(run.correct for run in self.runs)

    def lines(self) -> list[str]:
        """Return what happened, a line each."""
        if self.error:
            return [f"torch cannot be imported: {self.error}"]
        if self.unavailable:
            return [f"torch uses no GPU: {self.unavailable}"]
        return [
            f"torch on {run.gpu}: "
            + (run.error or f"product off by {run.product}, convolution by {run.convolution}")
            for run in self.runs
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeResult:
    """All that the child said before it ended."""

    ended: bool
    """True where it came to its own end."""
    plain: bool
    visible: str | None
    """CUDA_VISIBLE_DEVICES, where it is set."""
    step: str
    """What it was doing last."""
    version: str | None
    """Of onnxruntime."""
    origin: str | None
    """The file that was imported as `onnxruntime`; None where the folder is gutted."""
    import_error: str | None
    usable: bool
    """onnxruntime could be imported, and is whole."""
    cuda: str | None
    """The CUDA major that the build needs."""
    driver_library: str | None
    driver_cuda: str | None
    driver_init: int | None
    """What cuInit answered: 0 is success, 100 no GPU."""
    driver_error: str | None
    preload_error: str | None
    needed: tuple[NeededLibrary, ...]
    models: tuple[ModelRun, ...]
    libraries: tuple[LoadedLibrary, ...]
    torch_version: str | None
    """Of the torch that is in the environment."""
    torch_cuda: str | None
    """What it was built for; None for a build for the CPU."""
    torch: TorchResult | None
    """What it did; None where it was not asked to, or nothing is known of it."""
    log: str
    """Its standard error, without colours."""

    @property
    def absent(self) -> tuple[NeededLibrary, ...]:
        """Return what the provider cannot do without and is missing, the driver excepted."""
        return tuple(
            library
            for library in self.needed
            if library.error and not library.optional and not library.driver
        )

    @property
    def helped(self) -> tuple[str, ...]:
        """Return the libraries that only the check's own help could load."""
        return tuple(library.name for library in self.needed if library.helped)

    def lines(self) -> list[str]:
        """Return what each step found, a line each."""
        lines = []
        if self.import_error:
            lines.append(f"onnxruntime cannot be imported: {self.import_error}")
        elif self.version:
            lines.append(f"onnxruntime {self.version} from {self.origin}")
        if self.driver_error:
            lines.append(f"driver: {self.driver_error}")
        elif self.driver_library:
            started = f"CUDA {self.driver_cuda}, cuInit {self.driver_init}"
            lines.append(f"driver: {self.driver_library}, {started}")
        if self.visible is not None:
            lines.append(f"CUDA_VISIBLE_DEVICES={self.visible!r}")
        if self.preload_error:
            lines.append(f"preload_dlls: {self.preload_error}")
        lines += [f"{library.name}: {library.error}" for library in self.needed if library.error]
        lines += [line for run in self.models for line in run.lines()]
        return lines + (self.torch.lines() if self.torch else [])
