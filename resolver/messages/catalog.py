"""Text for people: catalogue and layout.

`texts.toml` has the texts by code and language; the tests find a code without a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from ..data_files import load_table
from ..errors import Cause, Error
from ..plan.reasons import Finding, Reason, Values, words
from ..utils.foreign_text import clean
from .shells import PROGRAM, TypedCommand, pasted_word

if TYPE_CHECKING:  # an error is reported without it
    from ..plan.model import Unlock

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


_PATHS = frozenset({"file", "folder", "path", "prefix", "target"})
"""The names of values that are paths, which may have line breaks in them."""
_LONGEST = 8000
"""Characters of one value in a text; a hostile file may have a line of megabytes."""
_COMMAND = re.compile(r"(`(?:conda|ortgpu-fix|pip|pixi|python|uv)\b[^`]* [^`]*`)")
"""A command in a text, where a value, as the name of a package, is a word of a shell."""


class Message(NamedTuple):
    """The text of an error."""

    code: str
    text: str
    hint: str
    exit_code: int


class Texts(NamedTuple):
    """All texts, in one language."""

    table: Mapping[str, Any]
    language: Language = "en"
    command: TypedCommand = PROGRAM
    """What `{command:undo}` in a text is: this program, with the `--python` that was given."""
    help: str = "`ortgpu-fix --help`"
    """Where a wrong command line is put right."""

    def error(self, error: Error) -> Message:
        """Return the message of `error`; a value that is an error itself is written as its text.

        The hint is that of its `problem`, where that is an error.
        """
        row = self.table["errors"][error.code]
        values = {"command": self.command, "flag": "--index-url", "help": self.help} | {
            name: self.error(value).text if isinstance(value, Error) else self._shown(name, value)
            for name, value in error.values.items()
        }
        problem = error.values.get("problem")
        inner = self.error(problem).hint if isinstance(problem, Error) else ""
        return Message(
            code=error.code,
            text=self._filled(row["message"][self.language], values),
            hint=inner or self._filled(row["hint"][self.language], values),
            exit_code=row["exit"],
        )

    def reason(self, why: Reason) -> str:
        """Return why a release is rejected."""
        return self._text("reasons", why.code, "text", why.values)

    def gains(self, unlock: Unlock) -> str:
        """Return what a change would allow: `onnxruntime-gpu 1.31.1`."""
        if unlock.of:
            return f"{unlock.gains[0].name} ({unlock.of})"
        return words(unlock.gains)

    def change(self, unlock: Unlock) -> str:
        """Return the change that would allow more: `driver >= 580.65.06`."""
        texts = (self._text("unlock", one.code, "text", one.values) for one in unlock.changes)
        change = self.label("and").join(texts)
        return self.label("with-latest", change=change) if unlock.latest else change

    def summary(self, finding: Finding) -> str:
        """Return the finding as one sentence."""
        return self._finding(finding, "summary")

    def remedy(self, finding: Finding) -> str:
        """Return the remedy; empty where none is needed."""
        return self._finding(finding, "remedy")

    def brief(self, finding: Finding) -> str | None:
        """Return what is wrong in a few words, for a sentence that ends with them, or None."""
        known = self.table["findings"]
        code = finding.code if finding.code in known else "installed-unfit"  # of a rule
        return (
            self._text("findings", code, "brief", finding.values)
            if "brief" in known[code]
            else None
        )

    def is_for_user(self, finding: Finding) -> bool:
        """Return whether only the user can fix it, or may want to act on it."""
        return "by_user" in self.table["findings"].get(finding.code, {})

    def _finding(self, finding: Finding, key: str) -> str:
        if finding.code in self.table["findings"]:
            return self._text("findings", finding.code, key, finding.values)
        why = self._text("reasons", finding.code, "text", finding.values)  # the code of a rule
        return self._text("findings", "installed-unfit", key, (*finding.values, ("why", why)))

    def label(self, code: str, **values: object) -> str:
        """Return a heading or a line."""
        return self._text("labels", code, "text", tuple(values.items()))

    def versions(self, versions: Sequence[str]) -> str:
        """Return a range of adjacent versions, given newest first: `1.24.1 to 1.26.0`."""
        if len(versions) == 1:
            return versions[0]
        return self.label("versions", first=versions[-1], last=versions[0])

    def verdict(
        self, code: str, values: Values = (), key: str = "text", **command: TypedCommand
    ) -> str:
        """Return the `text` of a verification, what it `proves`, or its `hint`."""
        row: Mapping[str, Mapping[str, str]] = self.table["verdicts"][code]
        if key not in row:
            return ""
        shown = {name: self._shown(name, value) for name, value in values}
        return self._filled(row[key][self.language], {**shown, **command})

    def advice(self, row: Reason, **command: TypedCommand) -> str:
        """Return what measured times, or sessions, advise."""
        return self._text("advice", row.code, "text", row.values, **command)

    def progress(self, code: str, **values: object) -> str:
        """Return the description of a long step."""
        return self._text("progress", code, "text", tuple(values.items()))

    def _text(
        self,
        table: str,
        code: str,
        key: str,
        values: tuple[tuple[str, object], ...],
        **command: TypedCommand,
    ) -> str:
        text: str = self.table[table][code][key][self.language]
        shown = {name: self._shown(name, value) for name, value in values}
        return self._filled(text, {"command": self.command, **shown, **command})

    def _filled(self, text: str, values: Mapping[str, object]) -> str:
        """Return a text with its values, quoted where they stand in a command to paste."""
        if "`" not in text:
            return text.format(**values)
        words = {
            name: pasted_word(value, self.command.system) if isinstance(value, str) else value
            for name, value in values.items()
        }
        parts = enumerate(_COMMAND.split(text))  # each second one is a command
        return "".join(part.format(**(words if at % 2 else values)) for at, part in parts)

    def listed(self, values: Iterable[object]) -> str:
        """Return values as a sentence lists them."""
        return str(self.table["labels"]["list-comma"]["text"][self.language]).join(map(str, values))

    def _shown(self, name: str, value: object) -> object:
        """Return a value as a text may have it, a path in one line; most come from elsewhere."""
        if isinstance(value, int | float):
            return value
        if isinstance(value, Cause):
            return self._text("causes", value.code, "text", value.values)
        shown = self.listed(value) if type(value) is tuple else str(value)
        text = str(clean(shown))
        if name in _PATHS:
            text = text.replace("\n", " ")
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def load_texts(language: Language, command: TypedCommand = PROGRAM) -> Texts:
    """Return all texts, in `language`; `command` is what they name. Raises `matrix-invalid`."""
    return Texts(table=load_table("texts"), language=language, command=command)
