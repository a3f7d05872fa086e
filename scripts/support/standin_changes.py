"""An apply of stand-in wheels that can be killed at any step; for kills, faults and storms."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ortgpu_fix.apply import apply_plan, history, journaled_change, rollback, staging
from ortgpu_fix.apply.apply_plan import Applied, apply
from ortgpu_fix.apply.before_change import Allowed
from ortgpu_fix.facts.target import Target
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.utils.process import run
from ortgpu_fix.utils.progress import silent
from ortgpu_fix.uv import guard
from ortgpu_fix.uv.program import Uv
from support.standin_wheels import WINDOWS, Venv, as_plan, clean_environment, find_uv

HAD = ("onnxruntime 1.22.1", "nvidia-cudnn-cu13 9.28.0.42", "nvidia-curand-cu12 12.9.2.10")
COMES = ("onnxruntime-gpu 1.26.0", "nvidia-cudnn-cu12 9.28.0.42", "nvidia-cublas-cu12 12.9.2.10")
GOES = ("onnxruntime", "nvidia-cudnn-cu13")


def kill_group() -> None:
    """End this process and those that it started, as nobody can refuse."""
    if WINDOWS:
        os.kill(os.getpid(), signal.SIGTERM)  # TerminateProcess; uv is in a job of ours
    else:
        os.killpg(os.getpgrp(), signal.SIGKILL)


class Steps:
    """Counts the steps of a change, and ends this process group at one of them."""

    def __init__(self, kill_at: int) -> None:
        self.count = 0
        self.kill_at = kill_at
        self.names: list[str] = []

    def tick(self, name: str) -> None:
        """Note a step."""
        self.count += 1
        self.names.append(name)
        if self.count == self.kill_at:
            kill_group()

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` with a step before it and one after it."""

        def stepped(*args: Any, **options: Any) -> Any:  # noqa: ANN401
            self.tick(f"before {name}")
            result = function(*args, **options)
            self.tick(f"after {name}")
            return result

        return stepped

    def hook(self) -> None:
        """Step at everything by which a transaction changes the disk."""
        for name, modules in {
            "append": (journaled_change, rollback),
            "move": (journaled_change, rollback),
            "move_folder": (journaled_change,),
            "remove_tree": (history, staging),
            "sync_files": (apply_plan,),
            "delete_journal": (history, rollback),
        }.items():
            stepped = self.around(name, vars(modules[0])[name])
            for module in modules:
                vars(module)[name] = stepped
        vars(os)["rmdir"] = self.around("rmdir", os.rmdir)
        vars(guard)["wait_for_engine"] = self.around("wait_for_engine", guard.wait_for_engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is applied where; travels as JSON."""

    folder: str
    """Where the environments are made."""
    wheels: str
    url: str = ""
    """Of the index with the stand-ins; empty where the wheels are the real ones."""
    kill_at: int = 0

    @property
    def venv(self) -> Venv:
        """The environment."""
        return Venv(folder=Path(self.folder, "venv"))


def uv_of(case: Case) -> Uv:
    """Return the uv that installs, with a cache of its own."""
    environ = clean_environment() | {"UV_CACHE_DIR": str(Path(case.folder, "cache-of-uv"))}
    return Uv(program=find_uv(), version="0", environ=environ, runner=run)


def apply_standins(
    case: Case,
    verify: Callable[[], tuple[bool, str]] = lambda: (True, ""),
    target: Target | None = None,
) -> Applied:
    """Apply the stand-ins in this process, to `target` as it was when it was looked at."""
    return apply(
        as_plan([Path(case.wheels, file_of(name)) for name in COMES], GOES),
        target or case.venv.target(),
        index=Index(IndexConfig(index_url=case.url, origin="flag")),
        uv=uv_of(case),
        verify=verify,
        progress=silent,
        allowed=Allowed(conflicts=True),
    )


def file_of(name: str) -> str:
    """Return the file name of a stand-in wheel."""
    return f"{name.replace('-', '_').replace(' ', '-')}-py3-none-any.whl"


def compare(
    expected: Mapping[str, str],
    found: Mapping[str, str],
    *,
    beside: bool = False,
    but: set[str] | None = None,
) -> None:
    """Raise AssertionError with the paths that differ; with `beside` more may be there."""
    keys = expected.keys() | (set() if beside else found.keys())
    odd = {key: (expected.get(key), found.get(key)) for key in keys - (but or set())}
    odd = {key: both for key, both in odd.items() if both[0] != both[1]}
    assert not odd, json.dumps(odd, indent=1)[:2000]  # noqa: S101
