"""Progress bars, for a person at a terminal.

Imported only where it draws.
"""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Column
from rich.text import Text

from ..messages.catalog import Texts
from ..messages.sections import size
from ..utils.foreign_text import clean_text
from .console import print_above

NARROW, WIDE = 60, 100
"""Columns below which only the bytes are shown, and from which on a bar is."""


class Bars:
    """A line for each file on its way, and one for all of them; other steps are said once.

    A file that has come makes room for the next.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._said: set[str] = set()
        self._files: dict[str, TaskID] = {}
        self._whole: TaskID | None = None
        console = Console(stderr=True)
        name = TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        )
        bar = [BarColumn(bar_width=20)] if console.width >= WIDE else []
        numbers = _Numbers(texts, narrow=console.width < NARROW)
        self._waits: TaskID | None = None
        self.drawn = RichProgress(name, *bar, numbers, console=console, expand=True, transient=True)

    def __call__(self, code: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
        """Draw how far a step is; steps without bytes are said on a line of their own."""
        self.settle()
        if not total:
            line = self._texts.progress(code, **values)
            if line not in self._said:
                self._said.add(line)
                print_above(self.drawn.console, line)
            return
        self.drawn.start()  # not before: the user may have to answer a question
        if self._whole is None:
            together = self._texts.progress("download-all")
            self._whole = self.drawn.add_task(together, total=total, whole=True)
        file, have, of = str(values["file"]), int(str(values["have"])), int(str(values["size"]))
        if file not in self._files:
            shown = clean_text(file)
            self._files[file] = self.drawn.add_task(shown, total=of, whole=False)
        self.drawn.update(self._files[file], completed=have, total=of, visible=have < of)
        self.drawn.update(self._whole, completed=done, total=total, visible=done < total)

    def wait(self, line: str) -> None:
        """Draw that a step goes on, unless a download is drawn, which moves by itself."""
        if self._waits is not None:
            self.drawn.update(self._waits, description=line)
        elif not any(task.visible for task in self.drawn.tasks):
            self._waits = self.drawn.add_task(line, total=None, whole=None)
            self.drawn.start()

    def settle(self) -> None:
        """Take that away; what follows may be a question."""
        if self._waits is not None:
            self.drawn.stop()
            self.drawn.remove_task(self._waits)
            self._waits = None


class _Numbers(ProgressColumn):
    """Bytes; of all files together also the speed and the time left."""

    def __init__(self, texts: Texts, *, narrow: bool) -> None:
        super().__init__()
        self._texts = texts
        self._narrow = narrow

    def render(self, task: Task) -> Text:
        """Return the numbers of a line; of one that waits there are none."""
        if task.fields["whole"] is None:
            return Text()
        text = f"{size(int(task.completed))} / {size(int(task.total or 0))}"
        if not task.fields["whole"]:
            return Text(text, style="dim")
        if task.speed and not self._narrow:
            text += f"  {size(int(task.speed))}/s"
        if task.time_remaining is not None:
            text += "  " + self._texts.label("time-left", seconds=f"{task.time_remaining:.0f}")
        return Text(text)
