"""Wait for the import of onnxruntime. Runs at every start of Python, so it is short.

Shell, and not ours: it travels in the wheel that `companions` makes, as the package
`_ortgpu_fix_libraries`, and `autoload.py` beside it does the work. Python 3.8 and newer.
"""

import sys


class Finder:
    """Finds nothing but onnxruntime, and that through the finders after this one, once."""

    waiting = True

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> object:
        """Return the spec of onnxruntime with a loader that loads the libraries first."""
        if name == "onnxruntime" and self.waiting:
            try:
                from .load import find_spec  # type: ignore[import-not-found]  # noqa: PLC0415
            except ImportError:  # a Python without ctypes
                return None
            return find_spec(self)
        return None


def start() -> None:
    """Begin to wait; called when Python starts, or once by an application."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
