"""An environment, an index and an engine: what a plan needs to be done for real."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from ortgpu_fix.apply.apply_plan import Applied, apply
from ortgpu_fix.apply.before_change import Allowed
from ortgpu_fix.apply.files_to_remove import distributions_here
from ortgpu_fix.apply.rollback import undo_last
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.engine.choose import Engine
from ortgpu_fix.engine.pip import Pip
from ortgpu_fix.engine.uv import Uv
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import STATE_FOLDER
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.utils.process import run
from ortgpu_fix.utils.progress import silent
from support.local_index import LocalIndex
from support.standin_wheels import Venv, as_plan, clean_environment, find_uv, state_of

HANG_UP: signal.Signals = getattr(signal, "SIGHUP" if hasattr(signal, "SIGHUP") else "SIGBREAK")
"""The signal of a terminal that is closed; on Windows Ctrl-Break."""
Kind = str
"""`uv`, `pip` (the target's own) or `our-pip`."""
PIP = pytest.param("pip", marks=pytest.mark.slow)
"""pip takes ten times as long as uv does: what it shares with uv is tried with it when it is slow
anyway."""
GOOD = "onnxruntime-gpu 1.26.0"
CUDA = (GOOD, "nvidia-cudnn-cu12 9.28.0.42", "nvidia-cublas-cu12 12.9.2.10")
REQUIRES = ("flatbuffers", "packaging", "protobuf>=4")


class Stand:
    """An environment, an index and an engine, and what a plan needs to be done."""

    def __init__(self, venv: Venv, index: LocalIndex, wheels: dict[str, Path], kind: Kind) -> None:
        self.venv, self.server, self.wheels, self.kind = venv, index, wheels, kind
        self.before = state_of(venv.folder)
        self.folder: Path | None = None
        """Where the wheels of the plan lie that no index has."""
        self.uv: str = find_uv()

    def have(self, *names: str) -> None:
        self.venv.install(*(self.wheels[name] for name in names))
        (self.venv.folder / ".lock").unlink(missing_ok=True)
        self.before = state_of(self.venv.folder)

    def plan(
        self, *install: str | Path, uninstall: tuple[str, ...] = (), requires: tuple[str, ...] = ()
    ) -> Plan:
        """Return the plan with wheels of the index, by their names, and of another folder."""
        paths = [self.wheels[name] if isinstance(name, str) else name for name in install]
        self.folder = next((path.parent for path in install if isinstance(path, Path)), None)
        return as_plan(paths, uninstall, requires)

    def engine(self) -> Engine:
        cache = str(self.venv.folder.parent / "cache-of-uv")
        settings = {"UV_CACHE_DIR": cache, "UV_HTTP_RETRIES": "0"}  # it would wait five seconds
        environ = clean_environment() | settings
        if self.kind == "uv":
            return Uv(program=self.uv, version="0", environ=environ, runner=run)
        python = str(self.venv.python)
        command = (python, "-I", "-B", "-m", "pip")
        if self.kind == "our-pip":
            command = (sys.executable, "-I", "-B", "-m", "pip", "--python", python)  # type: ignore[assignment]
        return Pip(command=command, version="0", environ=environ, runner=run)

    def apply(self, plan: Plan, **changes: object) -> Applied:
        options: dict[str, object] = {
            "index": Index(
                IndexConfig(index_url=self.server.url, origin="flag", find_links=self.folder),
                Limits(read=2, pauses=(0.01,)),
            ),
            "engine": self.engine(),
            "verify": lambda: (True, ""),
            "progress": silent,
            "allowed": Allowed(conflicts=True),  # most plans here leave the requirements out
        }
        target = changes.pop("target", None) or self.venv.target()
        return apply(plan, target, **(options | changes))  # type: ignore[arg-type]

    def names(self) -> dict[str, str]:
        return {one.key: one.version for one in self.venv.target().installed}

    def undo(self, *, allow_changed: bool = False) -> None:
        target = self.venv.target()
        site = Site.of(target)
        undo_last(site, distributions_here(target, site), allow_changed=allow_changed)

    def unchanged(self) -> bool:
        """Return whether all is as before, but for the lock of a uv that came by."""
        pairs = state_of(self.venv.folder).items() ^ self.before.items()
        return {path for path, _ in pairs} <= {".lock"}

    @property
    def state(self) -> Path:
        return self.venv.site / STATE_FOLDER

    def fails(self, plan: Plan, **changes: object) -> Error:
        """Apply, which must fail with the environment as it was, and return the Error."""
        with pytest.raises(Error) as caught:
            self.apply(plan, **changes)
        assert self.unchanged()
        return caught.value
