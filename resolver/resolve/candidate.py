"""A release of onnxruntime-gpu with everything that a plan for it would hold."""

from typing import NamedTuple

from ..matrix.model import Build, BuildWheel
from ..plan.reasons import Reason
from .components import Component, Components, Picked, choose
from .dependencies import numpy_for, wheel_for
from .msvc import runtime_for
from .situation import Situation

NO_COMPONENTS = Components(chosen=(), reasons=())


class Candidate(NamedTuple):
    """A release of onnxruntime-gpu with everything that a plan for it would hold."""

    version: str
    build: Build
    """For this platform; where there is none, for any, and the rules say so."""
    wheel: BuildWheel | None
    components: Components
    numpy: Component | Reason | None = None
    runtime: Component | None = None
    """The Visual C++ runtime on Windows, where its wheel belongs to the set."""


def candidate(
    build: Build, here: Situation, *, briefly: bool = False, picked: Picked | None = None
) -> Candidate:
    """Return the candidate for `build`, its wheels chosen as `components.choose` does."""
    if build.platform != here.platform:
        return bare(build, here)
    components = choose(build, here, briefly=briefly, picked=picked)
    return bare(build, here, components)._replace(
        numpy=numpy_for(build, here),
        runtime=runtime_for(build, here),
    )


def bare(build: Build, here: Situation, components: Components = NO_COMPONENTS) -> Candidate:
    """Return the candidate for `build` with these wheels: choosing them takes time."""
    return Candidate(
        version=build.version,
        build=build,
        wheel=wheel_for(build, here.abi) if build.platform == here.platform else None,
        components=components,
    )
