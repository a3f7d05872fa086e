"""How a long step reports its progress: it calls a `Progress`, which may draw it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the progress of steps."""

    def __call__(self, code: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
        """Take the progress of the step `code`, a key of the table `progress` in `texts.toml`.

        `done` and `total` are bytes (0: not counted); `values` fill the placeholders of the text,
        and say of a download which `file` it is, and of its `size` how many bytes we `have`.
        May be called from several threads.
        """


def silent(_code: str, /, **_values: object) -> None:
    """Draw nothing."""
