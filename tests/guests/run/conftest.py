"""A tiny package that looks like onnxruntime, in an environment of the test's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ortgpu_fix.guests.run.events import ProgramSeen
from ortgpu_fix.guests.run.runner import watch_program

PACKAGE = {
    "onnxruntime/__init__.py": """
        from onnxruntime.capi import _pybind_state as C
        from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
        __version__ = "1.26.0"
        get_available_providers = C.get_available_providers
        def get_device(): return "CPU"
        SessionOptions = C.SessionOptions
    """,
    "onnxruntime/capi/__init__.py": "",
    "onnxruntime/capi/_pybind_state.py": """
        import os
        def get_available_providers():
            build = os.environ.get("FAKE_BUILD", "CUDAExecutionProvider,CPUExecutionProvider")
            return build.split(",")
        class SessionOptions:
            held = False
            def has_providers(self): return self.held
            def add_provider(self, name, options): self.held = True
            def add_provider_for_devices(self, devices, options): self.held = True
            def set_provider_selection_policy(self, policy): self.held = True
            def by_a_way_that_nobody_knows(self): self.held = True
    """,
    "onnxruntime/capi/onnxruntime_inference_collection.py": """
        import os
        from onnxruntime.capi import _pybind_state as C
        class Session:
            def __init__(self): pass
            def get_providers(self): return self._providers
            def get_provider_options(self): return {p: {"o": "1"} for p in self._providers}
            def get_modelmeta(self):
                class Meta: graph_name = "graph"
                return Meta
            def set_providers(self, providers=None, provider_options=None):
                self._create_inference_session(providers, provider_options)
            def run(self, output_names, input_feed, run_options=None):
                if os.environ.get("FAKE_FAILS") and "CUDAExecutionProvider" in self._providers:
                    try:
                        raise RuntimeError("CUDA failure 2: out of memory")
                    except RuntimeError:
                        self.set_providers(["CPUExecutionProvider"])
                return [sum(len(value) for value in input_feed.values())]
            def run_with_ort_values(self, output_names, input_dict_ort_values): pass
            def run_with_iobinding(self, iobinding, run_options=None): pass
            def run_async(self, output_names, input_feed, callback, user_data): pass
        class InferenceSession(Session):
            def __init__(self, path_or_bytes, sess_options=None, providers=None,
                         provider_options=None, **kwargs):
                Session.__init__(self)
                if not isinstance(path_or_bytes, (str, bytes)):
                    raise TypeError("Unable to load")
                try:
                    self._create_inference_session(providers, provider_options)
                except ValueError:
                    self._create_inference_session(["CPUExecutionProvider"], None)
            def _create_inference_session(self, providers, options, disabled_optimizers=None):
                if os.environ.get("FAKE_RAISES") and providers != ["CPUExecutionProvider"]:
                    raise ValueError("no kernel image")
                if os.environ.get("FAKE_KILLED"):
                    os.write(2, b"the last words\\n"); os.kill(os.getpid(), 9)
                says = os.environ.get("FAKE_SAYS")
                names = [p[0] if isinstance(p, tuple) else p for p in providers or []]
                if says and "CUDAExecutionProvider" in names:
                    os.write(2, says.encode() + b"\\n")
                    names.remove("CUDAExecutionProvider")
                available = C.get_available_providers()
                names = [name for name in names if name in available] or ["CPUExecutionProvider"]
                self._providers = names
    """,
}

Run = Callable[..., tuple[int, ProgramSeen]]


def write_package(folder: Path, files: dict[str, str]) -> None:
    import textwrap

    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "site-packages"
    write_package(folder, PACKAGE)
    return folder


@pytest.fixture
def watched(tmp_path: Path, packages: Path) -> Run:
    """Return what runs a program of these lines with the fake onnxruntime, under the watch."""

    def run(
        text: str, *words: str, python: str = sys.executable, **environ: str
    ) -> tuple[int, ProgramSeen]:
        import textwrap

        program = tmp_path / "app.py"
        program.write_text(textwrap.dedent(text), "utf-8")
        child = {**os.environ, "PYTHONPATH": str(packages), **environ}
        return watch_program([python, *words, str(program)], child)

    return run
