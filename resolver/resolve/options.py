"""The options of the command line that a plan must respect."""

from __future__ import annotations

from typing import NamedTuple

from packaging.utils import canonicalize_name

from ..facts.model import CPU_BUILD
from ..matrix import tensorrt
from ..matrix.torch import INDEX
from ..plan.reasons import RequirementLine
from ..versions import requirement

CUDA_LABEL = r"cu\d{2,4}"
"""How PyTorch calls the CUDA of a build: `cu128`."""

RTX = "tensorrt-rtx"
"""The provider that a plugin beside the plain onnxruntime has."""


class PlanOptions(NamedTuple):
    """What the user asked for."""

    onnxruntime: str = ""
    """A specifier: `==1.26.0`, `<1.27`; empty for whatever works."""
    latest: bool = False
    """The newest that works, even if the installed one works."""
    cuda: str | None = None
    """The CUDA major that it must be."""
    ignored_gpus: frozenset[str] = frozenset()
    """Compute capabilities of GPUs that need not run it."""
    autoload: bool = True
    """Install the companion that preloads the CUDA libraries."""
    provide: bool = True
    """Install the placeholder for packages that require onnxruntime by name."""
    requirements: tuple[RequirementLine, ...] = ()
    """Lines of the user's own files, which the plan must leave satisfied."""
    small: bool = False
    """The smallest wheels known to be compatible, instead of the newest patch of the toolkit."""
    torch: str = "keep"
    """`keep` the installed torch; `match`: replace it where another fits better; or a specifier
    (`==2.7.1+cu128`, `>=2.6`) of the torch to install, or the label of its CUDA (`cu128`)."""
    torch_index: str = INDEX
    """The base of the indexes of torch; a mirror has the same folders, `cu128` and so on."""

    conflicts: bool = False
    """Where nothing works otherwise, other distributions that use CUDA have no say; torch has."""
    provider: str = "cuda"
    """What sessions are to get: `tensorrt` brings the libraries of its provider along."""
    tensorrt_index: str = tensorrt.INDEX
    """The index of TensorRT's libraries."""
    providers: bool = False
    """What gives onnxruntime another provider than that of onnxruntime-gpu may go."""

    @property
    def with_conflicts(self) -> PlanOptions:
        """Return the options where others have no say: nor has a pin of onnxruntime in a file."""
        kept = tuple(line for line in self.requirements if not _pins_onnxruntime(line.text))
        return self._replace(conflicts=True, requirements=kept)

    @property
    def chooses(self) -> bool:
        """Return whether an option decides which release is taken."""
        return bool(self.onnxruntime or self.latest or self.cuda or self.provider != "cuda")


def _pins_onnxruntime(line: str) -> bool:
    wanted = requirement(line)
    return (
        wanted is not None
        and canonicalize_name(wanted.name) == CPU_BUILD
        and any(spec.operator in {"==", "==="} for spec in wanted.specifier)
    )
