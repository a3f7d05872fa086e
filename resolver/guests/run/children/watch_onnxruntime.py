"""Watch onnxruntime's sessions: how each is made, changed and run, and what the build has.

The classes that make sessions get functions that look at their arguments and results, and call the
original ones.
"""

# Importing pathlib would take as long as all the rest:
# ruff: noqa: ANN401, PTH100, PTH120, S110, BLE001
from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time

from .made_session import HELD, MAKING, frames, got, hold, model_of, reported, wants_more
from .reporting import LAST, RUNS, Process, Runs, replace, report, report_library, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEY = "_ortgpu_fix_runs"
"""Of the attribute of a session that holds its runs."""
SERVICE = "_ortgpu_fix_libraries.service"
"""Of what `--apply` installs: it gives CUDA to sessions that name no provider, where asked to."""
CUDA = "CUDAExecutionProvider"
LOOKED: set[str] = set()
"""The packages whose code asked what the build has."""


def after_onnxruntime(module: Any) -> None:
    """Report onnxruntime, and what its build has: nothing, where it is not whole."""
    available = getattr(module, "get_available_providers", list)
    report_library("onnxruntime", module, module, available=list(available()))
    for question in ("get_available_providers", "get_device"):
        if hasattr(module, question):
            replace(module, question, looking)


def looking(original: Any) -> Any:
    """Return the function that says what the build has, and keeps who asked."""

    def look(*given: Any, **named: Any) -> Any:
        LOOKED.add(package_of(sys._getframe(1).f_globals.get("__name__")))  # noqa: SLF001
        return original(*given, **named)

    return look


def package_of(module: Any) -> str:
    """Return the package of a module's name: `magika` for `magika.magika`."""
    return str(module).partition(".")[0]


def report_hollow() -> None:
    """Report an onnxruntime that is a folder alone, which no loader runs."""
    onnxruntime = sys.modules.get("onnxruntime")
    if onnxruntime is not None and not getattr(onnxruntime, "__file__", None):
        after_onnxruntime(onnxruntime)


def after_collection(module: Any) -> None:
    """Look at the sessions of onnxruntime, and at their runs."""
    hold(
        getattr(module.C, "SessionOptions", None),
        add_provider=lambda held, name, given: [*held, [name, dict(given)]],
        add_provider_for_devices=lambda held, devices, given: [
            *held,
            [devices[0].ep_name, dict(given)],
        ],
        set_provider_selection_policy=lambda _, policy: [[policy.name, {}]],
    )
    kind, base = module.InferenceSession, module.Session
    folder = os.path.dirname(os.path.dirname(os.path.abspath(module.__file__)))
    replace(kind, "__init__", functools.partial(making, module, folder))
    replace(kind, "_create_inference_session", trying)
    replace(base, "set_providers", functools.partial(changing, module))
    for name, argument, waits in (
        ("run", "input_feed", True),
        ("run_with_ort_values", "input_dict_ort_values", True),
        ("run_async", "input_feed", False),
        ("run_with_iobinding", None, True),
    ):
        if hasattr(base, name):
            replace(base, name, functools.partial(running, argument, waits))


def making(module: Any, folder: str, original: Any) -> Any:
    """Return the `__init__` that reports the session."""

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807
        values: dict[str, Any] = {"library": "onnxruntime", "asked": None}
        try:
            values.update(model_of((*given, named.get("path_or_bytes"))[0]))
            settings = named.get("sess_options", given[1] if len(given) > 1 else None)
            providers = named.get("providers", given[2] if len(given) > 2 else None)  # noqa: PLR2004
            options = named.get("provider_options", given[3] if len(given) > 3 else None)  # noqa: PLR2004
            has = getattr(settings, "has_providers", None)
            values["by_options"] = bool(has()) if has else False
            values["available"] = list(module.C.get_available_providers())
            values["asked"] = providers_asked(providers, options)
            if not values["asked"]:
                held = HELD.get(settings) if values["by_options"] else by_service(values)
                values["asked"] = held or values["asked"]
        except Exception:
            pass
        listen = wants_more(values["asked"]) or bool(values.get("by_options"))
        try:
            with reported(values, listen=listen):
                original(self, *given, **named)
        finally:
            with contextlib.suppress(Exception):
                values.update(id=Process.next_id(), frames=frames(folder + os.sep))
                values["thread"] = threading.current_thread().name
                values["looked"] = has_looked(values["frames"])
                if "error" not in values:
                    values.update(got(self))
                    values["graph"] = self.get_modelmeta().graph_name
                    runs = Runs(values["id"])
                    RUNS.add(runs)
                    self.__dict__[KEY] = runs
                report("session", **values)

    return __init__


def has_looked(callers: list[list[Any]]) -> bool:
    """Return whether one of those who made a session asked what the build has.

    The program itself may have asked for its log alone: it counts where it made the session.
    """
    makers = {package_of(each[3]) for each in callers}
    return bool((makers - {"__main__"} | {package_of(each[3]) for each in callers[:1]}) & LOOKED)


def providers_asked(providers: Any, options: Any) -> list[list[Any]] | None:
    """Return what a session was asked for, each provider with its options; None: nothing."""
    if providers is None:
        return None
    if isinstance(providers, str):
        return [[providers, {}]]  # which onnxruntime takes letter by letter
    if iter(providers) is providers:
        return []  # which onnxruntime refuses; an iterator must reach it whole
    asked = []
    for number, each in enumerate(providers):
        name, given = each if isinstance(each, tuple) and len(each) == 2 else (each, None)  # noqa: PLR2004
        if given is None and options:
            given = options[number] if number < len(options) else None
        asked.append([str(name), {str(k): str(v) for k, v in dict(given or {}).items()}])
    return asked


def by_service(values: dict[str, Any]) -> list[list[Any]] | None:
    """Return what our own loader asks for where a session names no provider."""
    name = "ORTGPU_FIX_PROVIDERS"
    asked = os.environ.get(name, "").lower() == "cuda" and CUDA in values["available"]
    return [[CUDA, {name: "cuda"}]] if asked and SERVICE in sys.modules else None


def trying(original: Any) -> Any:
    """Return the `_create_inference_session` that keeps the error after which another is tried."""

    def _create_inference_session(self: Any, *given: Any, **named: Any) -> Any:
        try:
            return original(self, *given, **named)
        except Exception as error:
            with contextlib.suppress(Exception):
                MAKING.errors.append(said(error))
            raise

    return _create_inference_session


def changing(module: Any, original: Any) -> Any:
    """Return the `set_providers` that reports it; `run` calls it where CUDA fails."""

    def set_providers(self: Any, providers: Any = None, provider_options: Any = None) -> Any:
        values: dict[str, Any] = {}
        with contextlib.suppress(Exception):
            values["asked"] = providers_asked(providers, provider_options)
            caller = sys._getframe(1).f_code.co_filename  # noqa: SLF001
            values["by_user"] = caller != module.__file__
            failed = sys.exc_info()[1]
            values["failed"] = said(failed) if failed and not values["by_user"] else None
        with reported(values, listen=wants_more(values.get("asked"))):
            result = original(self, providers, provider_options)
        with contextlib.suppress(Exception):
            values.update(got(self))
            report("providers", id=self.__dict__[KEY].name, **values)
        return result

    return set_providers


def running(argument: str | None, waits: bool, original: Any) -> Any:  # noqa: FBT001
    """Return the function that runs a session and counts it.

    `argument` holds the inputs; the time is that of a run where it `waits` for its end.
    """
    clock = time.perf_counter

    def run(self: Any, *given: Any, **named: Any) -> Any:
        start = clock()
        result = original(self, *given, **named)
        end = clock()
        try:
            runs = self.__dict__.get(KEY)
            if runs is not None:
                feed = None
                if argument is not None:
                    feed = given[1] if len(given) > 1 else named[argument]
                runs.add(end - start if waits else None, feed, end)
        except Exception:
            pass
        return result

    return run


LAST.append(report_hollow)
