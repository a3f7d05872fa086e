"""Progress bars, for a person at a terminal.

Imported only where it draws.
"""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as RichProgress

from ..messages.catalog import Texts


class Bars:
    """A line for each step, with a bar where bytes are counted."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._tasks: dict[str, TaskID] = {}
        self.drawn = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=Console(stderr=True),
        )

    def __call__(self, code: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
        """Draw how far a step is; steps without bytes are said on a line of their own."""
        line = self._texts.progress(code, **values)
        if not total:
            if line not in self._tasks:
                self._tasks[line] = TaskID(-1)
                self.drawn.console.print(line, highlight=False, markup=False)
            return
        if line not in self._tasks:
            self._tasks[line] = self.drawn.add_task(line, total=total)
        self.drawn.update(self._tasks[line], completed=done, total=total)
