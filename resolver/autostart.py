"""Wait for the import of onnxruntime, to load CUDA's libraries right before it.

Shell, and not ours: it travels in the wheel that `companions` makes, as the package
`_ortgpu_fix_libraries`, and runs at every start of the target's interpreter (Python 3.8 and
newer). So it is as short as can be, imports nothing, and leaves the work to `load.py` beside it.
"""

# ruff: noqa: ANN401, PLC0415, T201
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class Finder:
    """Gives the import of onnxruntime a loader of ours; of everything else it knows nothing.

    When that is done it stays where it is and does nothing more: taking a finder away makes
    another thread, which is just going through `sys.meta_path`, miss the next one.
    """

    waiting = True

    def find_spec(
        self, name: str, path: "Any" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Return what the finders after this one find, with the loader exchanged."""
        if name != "onnxruntime" or not self.waiting or self not in sys.meta_path:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:  # type: ignore[arg-type,unused-ignore]
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                if spec.origin and hasattr(spec.loader, "exec_module"):
                    spec.loader = Loader(self, spec.loader)  # type: ignore[assignment]
                return spec
        return None


class Loader:
    """Loads the libraries, then onnxruntime with its own loader, whom it gives its place back."""

    def __init__(self, finder: Finder, loader: "Any") -> None:
        self.finder = finder
        self.loader = loader

    def __getattr__(self, name: str) -> "Any":
        """Return what the real loader has; who only looks at the module meets that one."""
        if name in ("finder", "loader"):  # a copy that is not complete yet
            raise AttributeError(name)
        return getattr(self.loader, name)

    def exec_module(self, module: "ModuleType") -> None:
        """Load the libraries and run the module; what goes wrong with them is not its end."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        if self.finder.waiting:
            self.finder.waiting = False
            try:
                from .load import load_all  # type: ignore[import-not-found,unused-ignore]

                load_all(module.__file__ or "")
            except Exception as error:  # noqa: BLE001 - onnxruntime then says itself what it misses
                import os

                if os.environ.get("ORTGPU_FIX_DEBUG") and sys.stderr is not None:
                    print(f"ortgpu-fix: {error!r}", file=sys.stderr)
        self.loader.exec_module(module)


def start() -> None:
    """Begin to wait. Called at the start of the interpreter, or once by an application."""
    if not any(type(finder) is Finder for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())  # type: ignore[arg-type,unused-ignore]
