"""Load the libraries when CUDA is asked for: by a session, a value on the GPU, a provider library.

Shell, and not ours: it travels in the wheel that `companions` makes, as `demand.py` of the package
`_ortgpu_fix_libraries`. Loading at once would cost every import of onnxruntime 0.1 s and 200 MB, in
processes too that never use a GPU. What asks for CUDA in onnxruntime 1.11 to 1.31 goes through few
functions of its compiled module, which are wrapped when that is imported. Where one of them is not
there, the release is of a shape that is not known, and the libraries are loaded at the import.

Nothing here raises but what ORTGPU_FIX_REQUIRE=cuda asks for. ORTGPU_FIX_AUTOLOAD=0 turns all of it
off.
"""

# Importing pathlib would take as long as all the rest:
# ruff: noqa: ANN401, PTH113, PTH118, PTH120, PTH123
from __future__ import annotations

import os
import sys

from . import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sized
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

WITHOUT_CUDA = {"CPUExecutionProvider", "AzureExecutionProvider"}
BINDINGS = "onnxruntime.capi._pybind_state"
UNAVAILABLE = "ORT_CUDA_UNAVAILABLE"
"""Set by onnxruntime 1.11 to 1.15 while they are imported, where they find no libraries."""
REGISTER = "register_execution_provider_library"
"""What brings a plugin in: called by a program, or by `import onnxruntime` for one within."""
LOADED: list[bool] = []
PLUGINS = "register_tensorrt_plugins_as_custom_ops"
"""Loads TensorRT's provider, before a session that asks for TensorRT is initialized."""
TENSORRT: list[bool] = []
"""Whether TensorRT's libraries were loaded."""


def find_spec(finder: Any, name: str, path: Any, target: Any) -> ModuleSpec | None:
    """Return the spec from the finders after `finder`, with the loader exchanged.

    Nothing is loaded yet: many only ask whether onnxruntime is there.
    """
    if os.environ.get("ORTGPU_FIX_AUTOLOAD") == "0":
        return None
    finders: list[Any] = list(sys.meta_path)
    for other in finders[finders.index(finder) + 1 :] if finder in finders else ():
        find = getattr(other, "find_spec", None)
        spec: ModuleSpec | None = find(name, path, target) if find else None
        if spec is not None:
            if spec.origin and hasattr(spec.loader, "exec_module"):
                loader: Any = Loader(finder, spec.loader, name)
                spec.loader = loader
            return spec
    return None


class Loader:
    """Runs a module with its own loader, which gets its place back, and what belongs round that.

    The finder stays where it is: to take it away would make another thread, which is just going
    through `sys.meta_path`, miss the one after it.
    """

    def __init__(self, finder: Any, loader: Any, name: str) -> None:
        self.finder = finder
        self.loader = loader
        self.name = name

    def __getattr__(self, name: str) -> Any:
        """Return what the real loader has; who only looks at the module meets that one."""
        if name in {"finder", "loader", "name"}:  # a copy that is not complete yet
            raise AttributeError(name)
        return getattr(self.loader, name)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and before and after it what is done for a module of its name."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        first = self.name in self.finder.waiting
        self.finder.waiting.discard(self.name)
        before, after = ROUND[self.name] if first else (None, None)
        attempt(before, module)
        try:
            self.loader.exec_module(module)
        except ImportError:
            if LOADED or self.name != BINDINGS:
                raise
            attempt(demand)  # a compiled module that links them itself
            self.loader.exec_module(module)
        attempt(after, module)


def attempt(function: Callable[..., None] | None, *arguments: Any) -> None:
    """Call `function`; what goes wrong with the libraries is told by whoever misses them."""
    if function is not None:
        try:
            function(*arguments)
        except Exception as error:  # noqa: BLE001 - nothing here may end an import
            load.say(repr(error))


def demand() -> None:
    """Load the libraries, once; threads that come at the same time load the same ones."""
    if not LOADED:
        load.load_all()
        if load.MISSED:
            from . import lost  # noqa: PLC0415 - few environments lose any

            lost.missing(load.MISSED)
        if os.environ.pop(UNAVAILABLE, None) is not None:
            preload = sys.modules.get("onnxruntime.capi._ld_preload")
            if preload is not None:
                import importlib  # noqa: PLC0415 - few releases need it

                importlib.reload(preload)
        LOADED.append(True)


def demand_tensorrt() -> None:
    """Load TensorRT's libraries, once."""
    load.load_tensorrt()
    TENSORRT.append(True)


def before_onnxruntime(module: ModuleType) -> None:
    """Load what a known release links; all for one whose compiled module is elsewhere."""
    folder = os.path.dirname(module.__file__ or "")
    known = os.path.isfile(os.path.join(folder, "capi", "_pybind_state.py"))
    if (not known or links_the_runtime(folder)) and load.has_provider(folder):
        load.load_all("cudart") if known else demand()


def links_the_runtime(folder: str) -> bool:
    """Tell whether this is onnxruntime 1.27.0, whose compiled module links libcudart.so.13."""
    try:
        with open(os.path.join(folder, "capi", "build_and_package_info.py"), "rb") as file:
            return b"'1.27." in file.read()
    except OSError:
        return False


def after_onnxruntime(module: ModuleType) -> None:
    """Let `preload_dlls` load the same libraries, unless it is given a folder.

    And look whether this is the release that the libraries are for.
    """
    release = load.release()
    if release and not load.is_release(module, release):
        from . import lost  # noqa: PLC0415

        lost.watch(module, release)
    if for_a_service():
        from . import service  # noqa: PLC0415

        service.guard_runs(module)
    if hasattr(module, "preload_dlls"):
        wrap(module, "preload_dlls", without_folder)


def without_folder(*given: Any, **named: Any) -> bool:
    """Tell whether `preload_dlls(cuda, cudnn, msvc, directory)` searches the usual places."""
    return named.get("directory", (*given, None, None, None, None)[3]) is None


def for_a_service() -> bool:
    """Tell whether the user wants no session without CUDA in silence (`service`)."""
    return bool(os.environ.get("ORTGPU_FIX_REQUIRE") or os.environ.get("ORTGPU_FIX_PROVIDERS"))


def after_bindings(module: Any) -> None:
    """Wrap what asks for CUDA in onnxruntime's compiled module, and what a service wants of it."""
    wrap_bindings(module)
    if for_a_service():
        from . import service  # noqa: PLC0415

        service.guard(module)


def wrap_bindings(module: Any) -> None:
    """Wrap what asks for CUDA, or load at once."""
    capi = os.path.dirname(module.__file__ or "")
    if load.is_by_plugin():
        wrap(module, REGISTER)
        return
    if not load.has_provider(os.path.dirname(capi)):
        return
    try:
        session, device = module.InferenceSession, module.OrtDevice
        wrap(session, "initialize_session", asks_for_tensorrt, act=demand_tensorrt, done=TENSORRT)
        wrap(session, "initialize_session", asks_for_cuda)
        wrap(device, "cuda", static=True)
    except AttributeError as error:
        load.say("a release of another shape: " + repr(error))
        demand()
        return
    if hasattr(device, "gpu"):
        wrap(device, "gpu", static=True)
    if hasattr(module, PLUGINS):
        wrap(module, PLUGINS, act=demand_tensorrt, done=TENSORRT)
    for name in (REGISTER, "create_and_register_allocator_v2", PLUGINS):
        if hasattr(module, name):
            wrap(module, name)


def asks_for_cuda(session: Any, providers: Any = (), *_: Any, **__: Any) -> bool:
    """Tell whether a session with these providers may use CUDA.

    Without any, newer releases take what the session's options hold, or the CPU.
    """
    if providers:
        return any(name not in WITHOUT_CUDA for name in providers)
    try:
        return bool(session.session_options.has_providers())
    except AttributeError:
        return True


def asks_for_tensorrt(_: Any, providers: Any = (), *__: Any, **___: Any) -> bool:
    """Tell whether a session with these providers may use TensorRT."""
    return "TensorrtExecutionProvider" in (providers or ())


def after_ctranslate2(module: Any) -> None:
    """Wrap what is created on a device: `Translator(path, device="cuda")`."""
    for kind in vars(module).values():
        create = vars(kind).get("__init__") if isinstance(kind, type) else None
        if "device: str" in (getattr(create, "__doc__", None) or ""):
            wrap(kind, "__init__", asks_for_a_gpu)


def asks_for_a_gpu(_: Any, *given: Any, **named: Any) -> bool:
    """Tell whether the second argument, or that named `device`, is not the CPU."""
    device = named.get("device", given[1] if len(given) > 1 else "cpu")
    return bool(device != "cpu")


def before_genai(module: ModuleType) -> None:
    """Load at once for the build for CUDA: its compiled module links the libraries."""
    folder = os.path.dirname(module.__file__ or "")
    names = ("libonnxruntime-genai-cuda.so", "onnxruntime-genai-cuda.dll")
    if any(os.path.isfile(os.path.join(folder, name)) for name in names):
        demand()


def wrap(
    owner: Any,
    name: str,
    asks: Callable[..., bool] | None = None,
    *,
    static: bool = False,
    act: Callable[[], None] = demand,
    done: Sized = LOADED,
) -> None:
    """Put a function in the place of `owner.name` that loads the libraries before it calls that.

    `asks` tells from the arguments whether they are needed; without it they are. `act` loads them,
    unless it is `done`.
    """
    original = getattr(owner, name)

    def demanding(*arguments: Any, **named: Any) -> Any:
        if not done:
            attempt(lambda: act() if asks is None or asks(*arguments, **named) else None)
        return original(*arguments, **named)

    demanding.__name__, demanding.__doc__ = name, getattr(original, "__doc__", None)
    setattr(owner, name, staticmethod(demanding) if static else demanding)


ROUND: dict[str, tuple[Callable[..., None] | None, Callable[..., None] | None]] = {
    "onnxruntime": (before_onnxruntime, after_onnxruntime),
    BINDINGS: (None, after_bindings),
    "onnxruntime_genai": (before_genai, None),
    "ctranslate2._ext": (None, after_ctranslate2),
}
"""What is done before a module is run, and after."""
