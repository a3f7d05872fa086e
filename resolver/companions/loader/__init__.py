"""Wait for the imports that bring CUDA. Runs at every start of Python, so it is short.

Shell, and not ours: it travels in the wheel that `companions` makes, as the package
`_ortgpu_fix_libraries`, and `demand.py` beside it does the work. Python 3.8 and newer.
"""

import sys

WATCHED = {
    "onnxruntime",
    "onnxruntime.capi._pybind_state",
    "onnxruntime_genai",
    "ctranslate2._ext",
}


class Finder:
    """Finds nothing but these modules, and those through the finders after this one, once."""

    def __init__(self) -> None:
        self.waiting = set(WATCHED)

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """Return the spec of a watched module with a loader that does more than run it."""
        if name in self.waiting:
            try:
                from .demand import find_spec  # type: ignore[import-not-found]  # noqa: PLC0415
            except ImportError:  # a Python without ctypes
                return None
            return find_spec(self, name, path, target)
        return None


def start() -> None:
    """Begin to wait; called when Python starts, or once by an application."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
