"""Watch the libraries that make sessions: onnxruntime, onnxruntime-genai, CTranslate2.

Loaded by `sitecustomize` beside it, with the modules here, when one of them is imported; each gets
its functions exchanged after it was run.
"""

# Importing pathlib would take as long as all the rest:
# ruff: noqa: ANN401, PTH100, PTH118, PTH120, PTH123
from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import sys
import threading

from .made_session import HELD, frames, hold, model_of, reported
from .reporting import LAST, Process, renew_runs, replace, report, report_last, report_library, said
from .standard_error import WORDS
from .watch_onnxruntime import after_collection, after_onnxruntime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def after_ctranslate2(module: Any) -> None:
    """Look at what CTranslate2 makes on a device: `Translator(path, device="cuda")`."""
    report_library("ctranslate2", sys.modules.get("ctranslate2.version"), module)
    folder = os.path.dirname(os.path.abspath(module.__file__)) + os.sep
    for kind in list(vars(module).values()):
        create = vars(kind).get("__init__") if isinstance(kind, type) else None
        if "device: str" in (getattr(create, "__doc__", None) or ""):
            replace(kind, "__init__", functools.partial(making_other, "ctranslate2", folder))


def after_genai(module: Any) -> None:
    """Look at the models of onnxruntime-genai."""
    report_library("onnxruntime-genai", sys.modules.get("onnxruntime_genai"), module)
    folder = os.path.dirname(os.path.abspath(module.__file__)) + os.sep
    replace(module.Model, "__init__", functools.partial(making_other, "onnxruntime-genai", folder))
    hold(
        getattr(module, "Config", None),
        __init__=lambda _, path: genai_asked(path),
        clear_providers=lambda _: [],
        append_provider=lambda held, name: [*held, [name, {}]],
    )


def making_other(library: str, folder: str, original: Any) -> Any:
    """Return the `__init__` of another library's model that reports it."""

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807
        values: dict[str, Any] = {"library": library, "asked": None}
        with contextlib.suppress(Exception):
            path = given[0] if given else named.get("model_path")
            if isinstance(path, (str, bytes, os.PathLike)):
                values.update(model_of(os.fspath(path)))
            values["asked"] = (
                genai_asked(path)
                if library == "onnxruntime-genai"
                else [[named.get("device", given[1] if len(given) > 1 else "cpu"), {}]]
            )
        try:
            with reported(values, listen=True):
                original(self, *given, **named)
        finally:
            with contextlib.suppress(Exception):
                values.update(id=Process.next_id(), frames=frames(folder))
                values["thread"] = threading.current_thread().name
                if "error" not in values:
                    device = getattr(self, "device", None) or self.device_type
                    computes = getattr(self, "compute_type", None)
                    values["got"] = [str(device).lower()]
                    values["options"] = {device: {"compute_type": computes}} if computes else {}
                report("session", **values)

    return __init__


def genai_asked(path: Any) -> list[list[Any]] | None:
    """Return the providers in the configuration of a model's folder, or of a `Config`."""
    if not isinstance(path, (str, os.PathLike)):
        return HELD.get(path)
    with open(os.path.join(os.fspath(path), "genai_config.json"), encoding="utf-8") as file:
        options = json.load(file)["model"]["decoder"].get("session_options", {})
    return [[name, {}] for each in options.get("provider_options", ()) for name in each]


def report_torch() -> None:
    """Report torch: its CUDA, and whether it was used."""
    torch = sys.modules.get("torch")
    if torch is not None:
        device = getattr(torch, "get_default_device", None)
        report(
            "torch",
            version=str(torch.__version__),
            cuda=torch.version.cuda,
            used=bool(torch.cuda.is_initialized()),
            device=str(device()) if device else None,
        )


AFTER: dict[str, Callable[[Any], None]] = {
    "onnxruntime": after_onnxruntime,
    "onnxruntime.capi.onnxruntime_inference_collection": after_collection,
    "onnxruntime_genai.onnxruntime_genai": after_genai,
    "ctranslate2._ext": after_ctranslate2,
}
"""What is done after a module was run."""


class Loader:
    """Runs a module with its own loader, which gets its place back, and then what `AFTER` says."""

    def __init__(self, loader: Any, name: str) -> None:
        self.loader = loader
        self.name = name

    def __getattr__(self, name: str) -> Any:
        """Return what the real loader has; who only looks at the module meets that one."""
        if name in {"loader", "name"}:  # a copy that is not complete yet
            raise AttributeError(name)
        return getattr(self.loader, name)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; an import that fails is reported too."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        try:
            self.loader.exec_module(module)
        except Exception as error:
            if self.name == "onnxruntime":
                values = {"name": self.name, "file": module.__file__}
                report("library", executable=sys.executable, error=said(error), **values)
            raise
        with contextlib.suppress(Exception):
            AFTER[self.name](module)


def find_spec(finder: Any, name: str, path: Any, target: Any) -> ModuleSpec | None:
    """Return the spec from the finders after `finder`, with the loader exchanged.

    `finder` stays where it is: to take it away would make another thread, which is just going
    through `sys.meta_path`, miss the one after it.
    """
    finders: list[Any] = list(sys.meta_path)
    for other in finders[finders.index(finder) + 1 :] if finder in finders else ():
        find = getattr(other, "find_spec", None)
        spec: ModuleSpec | None = find(name, path, target) if find else None
        if spec is not None:
            if spec.origin and hasattr(spec.loader, "exec_module"):
                loader: Any = Loader(spec.loader, name)
                spec.loader = loader
            return spec
    if name == "onnxruntime":
        report("missing", name=name, executable=sys.executable)
    return None


def after_fork() -> None:
    """Begin anew in a child: its file, its counts, its locks."""
    Process.begin()
    WORDS.after_fork()
    renew_runs()


LAST.append(report_torch)
Process.begin()
atexit.register(report_last)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
