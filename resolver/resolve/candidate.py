"""A candidate: a release of onnxruntime-gpu and the wheels that it would be installed with."""

from typing import NamedTuple

from ..matrix.model import Build, BuildWheel
from ..plan.reasons import Reason
from .components import Component, Components, Picked, choose_nvidia_wheels
from .dependencies import choose_numpy, wheel_for
from .msvc import runtime_for
from .plugins import plugin_for
from .situation import Situation
from .tensorrt import tensorrt_for

NO_COMPONENTS = Components(chosen=())


class Candidate(NamedTuple):
    """A release of onnxruntime-gpu, and the wheels that it would be installed with."""

    version: str
    build: Build
    """For this platform; where there is none, for any: the rules reject it."""
    wheel: BuildWheel | None
    components: Components
    numpy: Component | Reason | None = None
    runtime: Component | None = None
    """The wheel of the Visual C++ runtime, where Windows needs one."""
    tensorrt: Component | None = None
    """The wheel of TensorRT's libraries, where the user wants TensorRT."""
    plugin: Component | None = None
    """The wheel with the provider, where the user wants that of a plugin."""


def make_candidate(
    build: Build,
    situation: Situation,
    *,
    first_failure_only: bool = False,
    picked: Picked | None = None,
) -> Candidate:
    """Return the candidate for `build`, with the wheels of `choose_nvidia_wheels`."""
    candidate = without_wheels(build, situation)
    if build.platform != situation.platform:
        return candidate
    return candidate._replace(
        components=choose_nvidia_wheels(
            build, situation, first_failure_only=first_failure_only, picked=picked
        ),
        numpy=choose_numpy(build, situation),
        runtime=runtime_for(build, situation),
        tensorrt=tensorrt_for(build, situation),
        plugin=plugin_for(build, situation),
    )


def without_wheels(
    build: Build, situation: Situation, components: Components = NO_COMPONENTS
) -> Candidate:
    """Return the candidate for `build` with `components`, and without choosing any wheel."""
    return Candidate(
        version=build.version,
        build=build,
        wheel=wheel_for(build, situation.abi),
        components=components,
    )
