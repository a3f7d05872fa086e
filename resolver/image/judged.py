"""An image, judged by the rules: its environments on each machine, and what CUDA weighs in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..facts.gpu_names import known_capabilities
from ..facts.model import Driver, Facts
from ..matrix.model import Matrix
from ..messages.sections import size
from ..plan.model import Plan
from ..plan.reasons import Finding, finding
from ..resolve.options import PlanOptions
from ..resolve.serving import Serving, plan_on_machine, serving
from ..resolve.unknown_releases import without_known_files
from .archive import Image
from .environments import Environment
from .layers import Layer
from .weight import Holding, holdings

CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
"""What of the driver the container gets:
https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html"""


def has_compute(capabilities: str) -> bool:
    """Return whether the value of that variable gives a container the CUDA driver.

    An empty one does, and one of which a variable is a part may.
    """
    if not capabilities or "$" in capabilities:
        return True
    return bool({"compute", "all"} & {*capabilities.replace(" ", "").split(",")})


class JudgedEnvironment(NamedTuple):
    """An environment with a build of onnxruntime, and the plan for each machine."""

    environment: Environment
    serving: Serving
    plans: tuple[tuple[str, Plan], ...]
    """By the machine's name; it is empty where no machine was named."""


class JudgedImage(NamedTuple):
    """What there is to say of an image."""

    environments: tuple[JudgedEnvironment, ...]
    others: tuple[Environment, ...]
    """Those without onnxruntime."""
    findings: tuple[Finding, ...]
    """Of the image, whatever the machine."""
    layers: tuple[Layer, ...]
    holdings: tuple[Holding, ...]

    @property
    def size(self) -> int:
        """Bytes of all files in all layers."""
        return sum(layer.size for layer in self.layers)

    @property
    def could_weigh(self) -> int:
        """Those bytes without what a layer loses, and without CUDA that nobody uses."""
        unused = sum(row.size for row in self.holdings if not row.used)
        return self.size - sum(layer.lost for layer in self.layers) - unused


def judge_image(
    image: Image,
    environments: Sequence[Environment],
    machines: Sequence[tuple[str, Facts]],
    *,
    options: PlanOptions,
    matrix: Matrix,
    gpus: Mapping[str, Any],
) -> JudgedImage:
    """Return the image with the plan of each environment for each of the named `machines`.

    Without any it is judged for the oldest driver that runs what it has, whatever the GPU. `gpus`
    is the parsed `gpus.toml`.
    """
    judged = []
    for one in environments:
        if one.facts.onnxruntime is None:
            continue
        facts = one.facts._replace(packages=without_known_files(one.facts, matrix))
        known = known_capabilities(gpus, facts.platform.machine)
        serves = serving(facts, matrix, known)
        driver = serves.driver or max(row.linux or "" for row in matrix.floors)
        places = machines or [("", facts._replace(driver=Driver(version=driver)))]
        plans = ((name, plan_on_machine(facts, each, options, matrix)) for name, each in places)
        judged.append(JudgedEnvironment(one._replace(facts=facts), serves, tuple(plans)))
    used = {
        str(dict(row.values)["path"])
        for each in judged
        for _, plan in each.plans
        for row in plan.findings
        if row.code == "system-library"
    }
    sites = [site for one in environments for site in one.sites]
    held = holdings(image.tree, sites, used)
    return JudgedImage(
        environments=tuple(judged),
        others=tuple(one for one in environments if one.facts.onnxruntime is None),
        findings=tuple(_findings(image, judged, held)),
        layers=image.layers,
        holdings=held,
    )


def _findings(
    image: Image, judged: Sequence[JudgedEnvironment], held: Sequence[Holding]
) -> Iterator[Finding]:
    if not judged:
        yield finding("image-without-onnxruntime", "error")
    capabilities = image.environment.get(CAPABILITIES, "")
    if not has_compute(capabilities):
        yield finding("image-without-compute", "error", value=capabilities)
    for row in held:
        if not row.used:
            yield finding("image-cuda-unused", "warning", path=row.path, size=size(row.size))
    twice = [row for row in held if row.twice]
    if twice:
        libraries = sorted({name for row in twice for name in row.twice})
        folders = tuple(row.path for row in twice)
        yield finding(
            "image-cuda-twice", "warning", *libraries, count=str(len(libraries)), folders=folders
        )
