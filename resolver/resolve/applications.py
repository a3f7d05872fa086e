"""What the installed applications will do with an onnxruntime-gpu, by what is in their wheels.

Some ask for the GPU only where they are configured to, some never do, and some bring an
onnxruntime of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts.model import CPU_BUILD, GPU_BUILD
from ..matrix.applications import Application, application_of
from ..plan.reasons import Finding, Named, finding
from .situation import Situation


def application_findings(situation: Situation) -> Iterator[Finding]:
    """Say which installed applications will not use the GPU, or only if configured."""
    known = _known(situation)
    for code, names in (
        (
            "application-own-runtime",
            [by for by, application in known.items() if application.runtime],
        ),
        ("application-never", [by for by, application in known.items() if _is_never(application)]),
    ):
        if names:
            yield finding(code, "warning", by=tuple(names))
    for by, application in known.items():
        if application.asks == "when-told" and not application.runtime:
            yield finding("application-when-told", "info", by=by, how=application.how)


def unused_by(situation: Situation) -> tuple[Named, ...]:
    """Return the applications that will not use the GPU, where no other one is installed.

    Others are those that require onnxruntime and that nobody has read.
    """
    known = _known(situation)
    unable = {
        by.name: by
        for by, application in known.items()
        if application.runtime or _is_never(application)
    }
    names = {by.name for by in known}
    for name in (CPU_BUILD, GPU_BUILD):
        rows = (demand.distribution for demand in situation.environment.demanded(name))
        names |= {
            application
            for application in rows
            if application and application not in situation.matrix.owners
        }
    return tuple(unable.values()) if names == unable.keys() else ()


def _known(situation: Situation) -> dict[Named, Application]:
    return {
        Named(package.name, package.version): application
        for package in situation.facts.packages
        if package.name in situation.matrix.applications
        if (
            application := application_of(
                situation.matrix.applications[package.name], package.version
            )
        )
    }


def _is_never(application: Application) -> bool:
    return application.asks == "never" and not application.runtime
