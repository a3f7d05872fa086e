"""The output of `smoke` as values, which `smoke_output` reads and `verdict` judges."""

from __future__ import annotations

import re
from dataclasses import dataclass

GPU = "CUDAExecutionProvider"
TOLERANCE = 1e-3
"""A part of the largest expected number. The models' numbers are exact in TF32."""
DRIVER_FILE = re.compile(r"libcuda\.so|nvcuda\.dll|libnvidia-")
"""Libraries of the driver, which no wheel contains."""
DRIVER_SYMBOL = re.compile(r"undefined symbol: cu[A-Z]")
"""A function that an old driver lacks."""
CUDA_FAILURE = re.compile(r"CUDA failure (\d+): ([^;\n]*[^;\s])")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRun:
    """One model: where its nodes ran, its deviation, its times in ms."""

    name: str
    gpu: str | None = None
    """`NVIDIA H200 (9.0)`; None where the driver offers none."""
    nodes: tuple[tuple[str, str], ...] = ()
    """Operator and provider, of each node that ran."""
    deviation: float | None = None
    """The largest difference from the expected output, as a part of its largest number."""
    correct: bool | None = None
    """None without an output."""
    create_ms: float | None = None
    first_ms: float | None = None
    second_ms: float | None = None
    """The second run at the same shape."""
    error: str | None = None

    @property
    def on_gpu(self) -> bool:
        """Tell whether every node but the copies ran on the GPU."""
        ran = [provider for op, provider in self.nodes if not op.startswith("Memcpy")]
        return bool(ran) and all(provider == GPU for provider in ran)

    @property
    def label(self) -> str:
        """Return the model and where it ran: `conv on NVIDIA H200 (9.0)`."""
        return f"{self.name} on {self.gpu}" if self.gpu else self.name

    def lines(self) -> list[str]:
        """Return the error, and the nodes with deviation and times, a line each."""
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
    """A CUDA library that the process had loaded."""

    name: str
    path: str
    version: str | None = None
    """Of the distribution that brought it, or as the file's full name has it; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededLibrary:
    """A library that the provider needs, and the error of loading it."""

    name: str
    error: str | None
    helped: bool
    """Only the check itself loaded it, from a wheel."""
    optional: bool

    @property
    def driver(self) -> bool:
        """Tell whether the error is due to the driver: the library is part of it, or needs it."""
        error = self.error or ""
        part = error and DRIVER_FILE.match(self.name)
        return bool(part or DRIVER_FILE.match(error) or DRIVER_SYMBOL.search(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRun:
    """torch on one GPU: the differences from the CPU, as parts of the largest number."""

    gpu: str | None
    product: float | None
    convolution: float | None
    error: str | None

    @property
    def correct(self) -> bool:
        """Tell whether both results are right."""
        results = (self.product, self.convolution)
        return self.error is None and all(
            result is not None and result <= TOLERANCE for result in results
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchResult:
    """What torch did in the process."""

    error: str | None
    """The error of its import."""
    unavailable: str | None
    """torch's own error where it cannot use a GPU."""
    runs: tuple[TorchRun, ...]

    @property
    def works(self) -> bool:
        """Tell whether it computed the right numbers on every GPU."""
        return bool(self.runs) and all(run.correct for run in self.runs)

    def lines(self) -> list[str]:
        """Return the error, or the deviations on each GPU, a line each."""
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
    """The output of the child."""

    ended: bool
    """True where the child was not ended by a crash or the time limit."""
    plain: bool
    visible: str | None
    """CUDA_VISIBLE_DEVICES, where it is set."""
    step: str
    """Its last step."""
    version: str | None
    """Of onnxruntime."""
    origin: str | None
    """The file that was imported as `onnxruntime`; None where the folder has none."""
    import_error: str | None
    usable: bool
    """onnxruntime could be imported, and is complete."""
    cuda: str | None
    """The CUDA major that the build needs."""
    driver_library: str | None
    driver_cuda: str | None
    driver_init: int | None
    """The result of cuInit: 0 is success, 100 no GPU."""
    driver_error: str | None
    preload_error: str | None
    needed: tuple[NeededLibrary, ...]
    models: tuple[ModelRun, ...]
    libraries: tuple[LoadedLibrary, ...]
    torch_version: str | None
    torch_cuda: str | None
    """The CUDA of its build; None for a build for the CPU."""
    torch: TorchResult | None
    log: str
    """The child's standard error, without colours."""

    @property
    def absent(self) -> tuple[NeededLibrary, ...]:
        """Return the required libraries that are missing, except those of the driver."""
        return tuple(
            library
            for library in self.needed
            if library.error and not library.optional and not library.driver
        )

    @property
    def helped(self) -> tuple[str, ...]:
        """Return the libraries that only the check itself could load."""
        return tuple(library.name for library in self.needed if library.helped)

    def lines(self) -> list[str]:
        """Return the observations of each step, a line each."""
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
