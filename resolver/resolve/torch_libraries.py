r"""What torch for Windows brings of NVIDIA's libraries, as releases that need no wheel.

PyTorch copies cuBLAS, cuDNN, cuFFT, cuRAND, NVRTC, nvJitLink and CUDA's runtime of the toolkit that
it is built with into `torch\lib`, where the loader takes them from. Source:
https://github.com/pytorch/pytorch/blob/main/.ci/pytorch/windows/internal/copy.bat
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..matrix.model import IN_TORCH, Distribution, LibraryNeed, Release, libraries_of
from ..matrix.torch import TORCH
from .situation import Situation


def releases_in_torch(
    distribution: Distribution, needs: Sequence[LibraryNeed], situation: Situation
) -> Iterator[Release]:
    """Yield the release of `distribution` whose libraries the installed torch brings, if it does.

    None where a tool or the user's requirements make the environment anew: what they bring for
    torch is theirs to change. Where its files were seen, all of `needs` are among them.
    """
    package, build = situation.package(TORCH), situation.torch.build if situation.torch else None
    if package is None or build is None or situation.facts.platform.system != "windows":
        return
    stays = package.intact and not package.outside and situation.facts.python.project is None
    version = build.carried.get(distribution.name) if not situation.options.requirements else None
    for release in distribution.releases if stays else ():
        if (release.version, release.platform) == (version, situation.platform):
            contents = libraries_of(distribution, release)
            seen = {path.rpartition("/")[2] for path in package.libraries}
            own = seen.intersection(contents.libraries if contents else ())
            if not seen or (own and own.issuperset(need.library for need in needs)):
                yield release._replace(index_url=IN_TORCH)
