"""What the user asked for: the options of the command line that a plan must respect."""

from typing import NamedTuple

from ..matrix.torch import INDEX


class PlanOptions(NamedTuple):
    """What the user asked for."""

    onnxruntime: str = ""
    """A specifier: `==1.26.0`, `<1.27`; empty for whatever works."""
    latest: bool = False
    """Rather the newest that works than the one that is installed."""
    cuda: str | None = None
    """The CUDA major that it must be."""
    ignored_gpus: frozenset[str] = frozenset()
    """Compute capabilities of GPUs that need not run it."""
    autoload: bool = True
    """Unchanged applications must find the libraries."""
    provide: bool = True
    """Those who require onnxruntime by name must find it provided."""
    requirements: tuple[str, ...] = ()
    """Requirements of the user's own file, which the plan must leave satisfied."""
    torch: str = "keep"
    """`keep` an installed torch as it is; `match`: move it where that fits better; or a specifier
    (`==2.7.1+cu128`, `>=2.6`) of the torch that shall be there."""
    torch_index: str = INDEX
    """The base of the indexes of torch; a mirror has the same folders, `cu128` and so on."""

    @property
    def chooses(self) -> bool:
        """Tell whether a wish has a say in which release is taken."""
        return bool(self.onnxruntime or self.latest or self.cuda)
