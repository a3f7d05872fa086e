"""pip and uv: one of them resolves requirements and installs the staged wheels.

Both read the user's configuration while they resolve, and none while they install: then they are
given only the staged files, each with its version and its hash.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata

from ..errors import Error
from ..facts.target import Target
from ..utils.process import Runner, install_environment
from ..versions import at_least
from .at_hand import has_own_pip, our_pip, uv_programs
from .pip import Pip
from .uv import Uv

OLDEST_UV = "0.8"
"""The first whose `uv pip compile` writes a pylock.toml with sizes and hashes."""
_READ_SECONDS = 60.0

Engine = Uv | Pip
"""What resolves and installs.

`resolve` chooses wheels for `requires` and what they require, with what `target` has installed
(which need not be what is really installed). It returns only what is not installed yet, or has to
change; the distributions with the canonical names `movable` may change though nothing in `requires`
says so. `resolve_for` chooses them for the machine of `facts`, as if nothing was installed there,
with the same result on every machine; the choice also satisfies the requirements `within`. Of one
release it may return several wheels that fit, the best first. Both write their files to `folder`
and raise Error `requirements-impossible` with the output of the engine.

`fetch` installs exactly `wheels`, which it brings from the indexes itself, into the prefix `into`,
and returns whether it could; where `sources` are offline, from its cache alone. `install` does so
with files that are here, and raises Error `install-failed` with the output of the
engine. `compile_modules` makes the bytecode of what is staged in `into`, where that can be made.
None of them changes the environment: `target` is the Python that the scripts will name.
"""
Resolver = Engine


def choose_engine(
    target: Target,
    environ: Mapping[str, str],
    runner: Runner,
    *,
    break_system_packages: bool = False,
) -> Engine:
    """Return the engine for `target`: uv, else the pip of the target, else our own pip.

    Raises Error `no-engine` where none of them can install there.
    """
    if target.implementation in {"cpython", "pypy"}:
        uv = find_uv(environ, runner)
        if uv is not None and _can_use(uv, target):
            return replace(uv, break_system_packages=break_system_packages)
    # -B: the bytecode of a pip that has none must not come into the environment
    command: tuple[str, ...] = (target.executable, "-I", "-B", "-m", "pip")
    version = target.pip_version or ""
    if not has_own_pip(target):
        version = our_pip(target)
        command = (sys.executable, "-I", "-B", "-m", "pip", "--python", target.executable)
    if not version:
        raise Error("no-engine", path=target.executable, version=target.version)
    return Pip(
        command=command,
        version=version,
        environ=environ,
        runner=runner,
        break_system_packages=break_system_packages,
    )


def choose_resolver(environ: Mapping[str, str], runner: Runner) -> Resolver:
    """Return uv, else the pip of our own Python: neither needs the Python of the machine."""
    pip = (sys.executable, "-I", "-m", "pip")
    return find_uv(environ, runner) or Pip(
        command=pip, version=metadata.version("pip"), environ=environ, runner=runner
    )


def find_uv(environ: Mapping[str, str], runner: Runner) -> Uv | None:
    """Return a uv that runs and is new enough, from PATH or the folder of our own scripts."""
    for program in uv_programs(environ):
        try:
            done = runner([program, "--version"], timeout=5, env=install_environment(environ))
        except OSError:
            continue
        words = done.stdout.split()  # uv 0.9.5 (d5f39331a 2025-10-21)
        if done.returncode == 0 and len(words) > 1 and at_least(words[1], OLDEST_UV):
            path = os.path.abspath(program)  # noqa: PTH100 - links stay: a shim is one
            return Uv(program=path, version=words[1], environ=environ, runner=runner)
    return None


def _can_use(uv: Uv, target: Target) -> bool:
    """Tell whether `uv` can query the Python of `target`: not where that prints when it starts.

    Its cache is left out, for an earlier answer proves nothing: uv installs with another cache.
    """
    argv = [uv.program, "python", "find", "--offline", "--no-cache", "--no-project"]
    env = install_environment(uv.environ)
    done = uv.runner([*argv, target.executable], timeout=_READ_SECONDS, env=env)
    return done.returncode == 0
