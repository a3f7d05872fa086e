"""Indexes beside PyPI that have builds of onnxruntime-gpu which PyPI lacks.

What the builds there are for is not known until one is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..facts.model import GPU_BUILD
from ..plan.model import Rejected, Unlock
from ..plan.reasons import Named, reason
from ..versions import major, numbers
from .gpu_code import capabilities
from .situation import Situation

_JETSON_CHIPS = frozenset({"5.3", "6.2", "7.2", "8.7"})
"""Nano, TX2, Xavier, Orin: https://developer.nvidia.com/cuda-gpus."""


def is_jetson(here: Situation) -> bool:
    """Tell whether it is a Jetson, by its own word or by a GPU that nothing else on Arm has."""
    platform = here.facts.platform
    arm = platform.machine == "aarch64"
    return platform.jetson is not None or (arm and not _JETSON_CHIPS.isdisjoint(capabilities(here)))


_OF_MACHINE = frozenset(
    {"no-wheel-python", "driver-too-old", "no-gpu-code", "ptx-needs-driver", "glibc-too-old"}
)
"""Reasons against a build that another build of the same release need not have."""


def feeds(here: Situation, rejected: Sequence[Rejected]) -> Iterator[Unlock]:
    """Yield the index for the newest CUDA that the driver runs: it has builds that PyPI lacks.

    Only where the machine or its Python speaks against each of PyPI's. What the builds are for is
    not known until one is read.
    """
    releases = {build.version for build in here.matrix.builds}
    stopped = {
        row.version for row in rejected if any(why.code in _OF_MACHINE for why in row.reasons)
    }
    if releases - stopped:
        return
    python, platform = here.facts.python, here.facts.platform
    able = here.driver_cuda is not None and here.gpus != () and python.implementation == "cpython"
    if not able or platform.machine != "x86_64" or (platform.libc or "").startswith("musl"):
        return
    majors = [cuda for cuda in here.matrix.feeds if numbers(str(here.driver_cuda))[0] >= int(cuda)]
    if majors and not _is_older_than_all_code(max(majors, key=int), here):
        yield _feed(max(majors, key=int), here)


def _feed(cuda: str, here: Situation) -> Unlock:
    change = reason("ort-index", url=here.matrix.feeds[cuda])
    return Unlock(changes=(change,), gains=(Named(GPU_BUILD, ""),), of=f"CUDA {cuda}")


def _is_older_than_all_code(cuda: str, here: Situation) -> bool:
    """Tell whether a GPU is below all that any build for this CUDA major was compiled for."""
    targets = {
        numbers(target.rstrip("af"))
        for build in here.matrix.builds
        if major(build.cuda) == cuda
        for target in (*build.sass, *build.ptx)
    }
    return any(targets and numbers(gpu) < min(targets) for gpu in capabilities(here))


def feed_for_older_cudnn(here: Situation) -> Iterator[Unlock]:
    """Yield the index for the CUDA of one whose cuDNN is older than that of PyPI's builds.

    torch 2.1 to 2.3 and ctranslate2 4.0 to 4.4 have CUDA 12 and cuDNN 8, as the builds of that
    index do (1.17, 1.18).
    """
    for user in here.consumers:
        cudnns = [int(row.cudnn) for row in here.matrix.builds if major(row.cuda) == user.cuda]
        older = user.cudnn and cudnns and int(user.cudnn) < min(cudnns)
        if older and user.cuda in here.matrix.feeds and here.platform.endswith("x86_64"):
            yield _feed(str(user.cuda), here)
            return
