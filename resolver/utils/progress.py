"""How a step that takes long says how far it is.

The steps call a `Progress`; what is drawn, and whether anything is, is the caller's business.
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Whoever wants to know how far a step is."""

    def __call__(self, code: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
        """Hear of the step `code`, a key of the table `progress` in `texts.toml`.

        `done` and `total` are bytes, both 0 where there is nothing to count; `values` fill the
        placeholders of the text. May be called from several threads.
        """


def silent(_code: str, /, *, done: int = 0, total: int = 0, **_values: object) -> None:
    """Hear it and draw nothing."""
    del done, total
