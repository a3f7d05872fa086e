"""Where the output goes, and how it looks there.

Data and plans go to stdout, talk and errors to stderr. `rich` draws where a person looks on;
a pipe gets plain text.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from ..errors import Error
from ..messages.catalog import Language, Message, Texts
from ..messages.sections import Section, lines_of, plain, size
from ..utils.foreign_text import clean, clean_text
from ..utils.progress import Progress, silent
from .alive import drawing, is_late, note
from .streams import shows_chinese

if TYPE_CHECKING:  # which takes a while
    from rich.console import Console as RichConsole

DEBUG = "ORTGPU_FIX_DEBUG"
_WIDEST = 100
"""Columns of a report on a terminal that has more."""


def user_language(environ: Mapping[str, str]) -> Language:
    """Return the user's language: Chinese where the locale says so, else English.

    English too where the output cannot show Chinese.
    """
    return "zh" if _locale(environ) == "zh" and shows_chinese() else "en"


def is_language_set(environ: Mapping[str, str]) -> bool:
    """Return whether the user chose a language: the locale C is none."""
    names = ("ORTGPU_FIX_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    value = next((environ[name] for name in names if environ.get(name)), "C")
    return value.partition(".")[0].upper() not in {"C", "POSIX"} or sys.platform == "win32"


def _locale(environ: Mapping[str, str]) -> Language:
    for name in ("ORTGPU_FIX_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = environ.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    if sys.platform == "win32":
        import ctypes

        # Primary language of the user interface: LANG_CHINESE is 0x04 (Windows SDK, winnt.h).
        primary = ctypes.windll.kernel32.GetUserDefaultUILanguage() & 0x3FF
        return "zh" if primary == 0x04 else "en"  # noqa: PLR2004
    return "en"


def columns(most: int) -> int:
    """Return how wide text may be: as the terminal is, at most `most`, which a pipe gets."""
    if not sys.stdout.isatty():
        return most
    import shutil

    return min(most, shutil.get_terminal_size((most, 24)).columns)  # some say that they have none


def print_result(text: str) -> None:
    """Print `text`, the answer itself, on stdout.

    Raises Error `output-unwritable` where stdout does not take it, on a full disk; a reader that is
    gone (`ortgpu-fix matrix | head`) is BrokenPipeError, met here.
    """
    note()
    try:
        print(clean_text(text), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        detach_stdout()
        raise Error("output-unwritable", cause=error.strerror or error) from error


def detach_stdout() -> None:
    """Send what is still in the buffer of stdout nowhere, without a complaint at the very end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(document: object) -> None:
    """Print one JSON document on stdout, the same bytes for the same value in every locale."""
    print_result(json.dumps(clean(document), indent=2))


def print_sections(sections: Sequence[Section]) -> None:
    """Print a report, in colour where stdout is a terminal, and as NO_COLOR and FORCE_COLOR say.

    Source: https://no-color.org, https://force-color.org.
    """
    environ = os.environ
    plainly = environ.get("NO_COLOR") or environ.get("TERM") == "dumb" or not sys.stdout.isatty()
    wide = columns(_WIDEST) if sys.stdout.isatty() else None
    if plainly and (environ.get("NO_COLOR") or not environ.get("FORCE_COLOR")):
        print_result(plain(sections, wide))
        return
    from rich.console import Console
    from rich.text import Text

    note()
    console = Console(highlight=False)
    for at, section in enumerate(sections):
        if at:
            console.print()
        for line, style in lines_of(section, wide or console.width):
            console.print(Text(clean_text(line), style=style), soft_wrap=True)


def print_error(message: Message, texts: Texts, *, as_json: bool) -> None:
    """Print an error: one sentence and a hint on stderr, or the document of `--json` on stdout."""
    if as_json:
        from ..report.plan_document import error_json

        print_json(error_json(message))
        return
    print_notice(texts.label("error", message=message.text))
    if message.hint:
        print_notice("\n" + texts.label("hint", hint=message.hint))


def made_today(texts: Texts) -> str:
    """Return what a page says of itself: which release of this program made it, and when."""
    import datetime as dt

    today = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
    return texts.label("page-made", version=__version__, date=today)


def output_path(file: str | None) -> Path | None:
    """Return the FILE of `-o`; None: standard output, which `-` is, too."""
    return None if file is None or file == "-" else Path(file)


def write_file(file: str, content: str, texts: Texts) -> None:
    """Write what a flag asks for beside the answer, and say so. Raises Error `file-unwritable`."""
    from ..utils.files import write

    write(Path(file), content)
    print_notice(texts.label("written", file=file))


def print_notice(text: str) -> None:
    """Show the user something that is not the answer itself: on stderr."""
    note()
    print(clean_text(text), file=sys.stderr)


def print_question(text: str) -> None:
    """Ask the user something, who answers on the same line."""
    note()
    print(f"\n{clean_text(text)}", end="", file=sys.stderr, flush=True)


def print_over(text: str) -> None:
    """Show the user something in the place of the line that the cursor is in: on stderr."""
    print(f"\r{clean_text(text)}", end="", file=sys.stderr, flush=True)


def print_above(bars: RichConsole, text: str) -> None:
    """Show the user something above the bars that `rich` draws."""
    note(wipes=False)
    bars.print(clean_text(text), highlight=False, markup=False)


def print_traceback(error: BaseException) -> None:
    """Show what is behind an error to who asked for it, and is asked to send it to us."""
    import traceback

    print_notice("".join(traceback.format_exception(error)).rstrip())


@contextlib.contextmanager
def progress(texts: Texts, *, quiet: bool) -> Iterator[Progress]:
    """Give what shows the steps: bars where stderr is a terminal, else a line for each step."""
    if quiet:
        yield silent
    elif sys.stderr.isatty():
        from .progress_bars import Bars

        bars = Bars(texts)
        try:
            with drawing(bars):
                yield bars
        finally:
            bars.drawn.stop()
    else:
        yield _Lines(texts)


class _Lines:
    """Say each step once, on a line of its own, and every two seconds how far a download is."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._said: set[str] = set()
        self._began: tuple[float, int] | None = None
        self._tenth = 0
        self._lock = threading.Lock()

    def __call__(self, code: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
        with self._lock:
            line = self._downloaded(done, total) if total else self._texts.progress(code, **values)
            if line not in self._said:
                self._said.add(line)
                print_notice(line)

    def _downloaded(self, done: int, total: int) -> str:
        now = time.monotonic()
        begun = self._texts.progress("download", size=size(total))
        if self._began is None:
            self._began, self._tenth = (now, done), 10 * done // total
            return begun
        tenth = 10 * done // total
        if (tenth <= self._tenth and not is_late()) or done >= total:
            return begun
        self._tenth = tenth
        speed = max(done - self._began[1], 1) / max(now - self._began[0], 1e-3)
        return self._texts.progress(
            "download-rate",
            done=size(done),
            total=size(total),
            speed=size(int(speed)),
            seconds=f"{(total - done) / speed:.0f}",
        )


def is_debugging(environ: Mapping[str, str]) -> bool:
    """Return whether the user wants to see what is behind an error."""
    return environ.get(DEBUG, "") not in {"", "0"}
