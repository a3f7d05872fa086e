"""Make a lock: the plan, and what an engine resolves around it.

Shell.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from .changing import sources_of
from .engine import choose
from .environment import Target
from .errors import Error
from .lock import requirements
from .occasion import Occasion
from .ordinary import required
from .plan import Plan, Wheel
from .rules import NAME
from .run import run
from .situation import situation
from .target import target_of


def locked(
    plan: Plan, about: Occasion, arguments: argparse.Namespace, environ: Mapping[str, str]
) -> str:
    """Return the lock of `plan` as a requirements file.

    Raises Error `lock-elsewhere` where the plan is for another Python or system than the
    environment at hand, and `requirements-impossible` as the engine does.
    """
    target = about.target or target_of(
        arguments.python, environ=environ, cwd=Path.cwd(), runner=run
    )
    _check_same(about, target)
    command = ["ortgpu-fix lock"]
    for flag in ("facts", "driver", "gpu", "ort", "cuda"):
        value = getattr(arguments, flag)
        if value is not None:
            command.append(f"--{flag} {value}")
    return requirements(
        plan, _closure(plan, about, target, arguments, environ), about.facts, command
    )


def _check_same(about: Occasion, target: Target) -> None:
    wanted = about.facts.python.version.split(".")[:2]
    system = "windows" if target.platform.startswith("win") else "linux"
    if about.facts.platform.system != system or wanted != target.version.split(".")[:2]:
        raise Error(
            "lock-elsewhere",
            wanted=f"Python {'.'.join(wanted)}, {about.facts.platform.system}",
            present=f"Python {target.version}",
        )


def _closure(
    plan: Plan,
    about: Occasion,
    target: Target,
    arguments: argparse.Namespace,
    environ: Mapping[str, str],
) -> tuple[Wheel, ...]:
    """Return the ordinary distributions of the lock, resolved as if nothing was installed."""
    here = situation(about.facts, about.wishes, about.matrix)
    version = next(wheel.version for wheel in plan.selection if wheel.name == NAME)
    build = next(
        build
        for build in about.matrix.builds
        if build.version == version and build.platform == here.platform
    )
    held = {wheel.name: wheel.version for wheel in plan.selection}
    wanted = [
        f"{name}=={held[name]}" if name in held else f"{name}{specifier}"
        for name, specifier in sorted(required(build, here).items())
    ]
    empty = replace(target, installed=())
    sources = sources_of(arguments, environ, Path(target.prefix))
    with tempfile.TemporaryDirectory() as folder:
        pinned = choose(target, environ, run).resolve(wanted, empty, sources, Path(folder))
    return tuple(one.wheel for one in pinned)
