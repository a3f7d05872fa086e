"""An environment, an index and uv: what a plan needs to be done for real."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.apply.apply_plan import Applied, apply
from ortgpu_fix.apply.before_change import Allowed
from ortgpu_fix.apply.files_to_remove import installed_in_site
from ortgpu_fix.apply.rollback import undo_last
from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import STATE_FOLDER
from ortgpu_fix.index.client import Index, Limits
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.utils.process import Finished, Runner, run
from ortgpu_fix.utils.progress import silent
from ortgpu_fix.uv.program import Uv
from support.local_index import LocalIndex
from support.standin_wheels import Venv, as_plan, clean_environment, find_uv, state_of

HANG_UP: signal.Signals = getattr(signal, "SIGHUP" if hasattr(signal, "SIGHUP") else "SIGBREAK")
"""The signal of a terminal that is closed; on Windows Ctrl-Break."""
GOOD = "onnxruntime-gpu 1.26.0"
CUDA = (GOOD, "nvidia-cudnn-cu12 9.28.0.42", "nvidia-cublas-cu12 12.9.2.10")
REQUIRES = ("flatbuffers", "packaging", "protobuf>=4")


class Stand:
    """An environment, an index and uv, and what a plan needs to be done."""

    def __init__(self, venv: Venv, index: LocalIndex, wheels: dict[str, Path]) -> None:
        self.venv, self.server, self.wheels = venv, index, wheels
        self.before = state_of(venv.folder)
        self.folder: Path | None = None
        """Where the wheels of the plan lie that no index has."""

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

    def uv(self, runner: Runner = run) -> Uv:
        cache = str(self.venv.folder.parent / "cache-of-uv")
        settings = {"UV_CACHE_DIR": cache, "UV_HTTP_RETRIES": "0"}  # it would wait five seconds
        environ = clean_environment() | settings
        return Uv(program=find_uv(), version="0", environ=environ, runner=runner)

    def apply(self, plan: Plan, **changes: object) -> Applied:
        options: dict[str, object] = {
            "index": Index(
                IndexConfig(index_url=self.server.url, origin="flag", find_links=self.folder),
                Limits(read=2, pauses=(0.01,)),
            ),
            "uv": self.uv(),
            "verify": lambda: (True, ""),
            "progress": silent,
            "allowed": Allowed(conflicts=True),  # most plans here leave the requirements out
        }
        target = changes.pop("target", None) or self.venv.target()
        return apply(plan, target, **(options | changes))  # type: ignore[arg-type]

    def uv_then(self, action: Callable[[Path], object]) -> Uv:
        """Return a uv after whose installation, if it went well, `action` gets the prefix."""

        def runner(argv: Sequence[str], **how: Any) -> Finished:
            done = run(argv, **how)
            if "--prefix" in argv and done.returncode == 0:
                action(Path(argv[argv.index("--prefix") + 1]))
            return done

        return self.uv(runner)

    def names(self) -> dict[str, str]:
        return {one.key: one.version for one in self.venv.target().installed}

    def undo(self, *, allow_changed: bool = False) -> None:
        target = self.venv.target()
        site = Site.of(target)
        undo_last(site, installed_in_site(target, site), allow_changed=allow_changed)

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
