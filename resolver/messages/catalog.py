"""The texts for people, by code and language.

`texts.toml` holds them all; a code without a text is a defect that the tests look for.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from ..data_files import load_table
from ..errors import Error
from ..plan.model import Unlock
from ..plan.reasons import Finding, Reason

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


class Message(NamedTuple):
    """An error in words."""

    code: str
    text: str
    hint: str
    exit_code: int


class Texts(NamedTuple):
    """All texts, in one language."""

    table: Mapping[str, Any]
    language: Language = "en"

    def error(self, error: Error) -> Message:
        """Return the message, the hint and the exit code of `error`.

        A value that is an error itself (what made another one happen) is said in its own words.
        """
        row = self.table["errors"][error.code]
        values = {
            name: self.error(value).text if isinstance(value, Error) else value
            for name, value in error.values.items()
        }
        return Message(
            code=error.code,
            text=row["message"][self.language].format(**values),
            hint=row["hint"][self.language].format(**values),
            exit_code=row["exit"],
        )

    def reason(self, why: Reason) -> str:
        """Return why a release is rejected."""
        return self._text("reasons", why.code, "text", why.values)

    def change(self, unlock: Unlock) -> str:
        """Return the change that would allow more: `driver >= 580.65.06`."""
        return self._text("unlock", unlock.change.code, "text", unlock.change.values)

    def summary(self, finding: Finding) -> str:
        """Return what was found, as one sentence."""
        code, values = self._known(finding)
        return self._text("findings", code, "summary", values)

    def remedy(self, finding: Finding) -> str:
        """Return what mends it; empty where nothing has to be."""
        code, values = self._known(finding)
        return self._text("findings", code, "remedy", values)

    def is_for_user(self, finding: Finding) -> bool:
        """Tell whether only the user can mend it, or may want to act on it."""
        return "by_user" in self.table["findings"].get(finding.code, {})

    def _known(self, finding: Finding) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Return the code with a text: a finding made by a rule says it in the rule's words."""
        if finding.code in self.table["findings"]:
            return finding.code, finding.values
        why = self._text("reasons", finding.code, "text", finding.values)
        return "installed-unfit", (*finding.values, ("why", why))

    def label(self, code: str, **values: object) -> str:
        """Return a heading or a line of the output."""
        return self._text("labels", code, "text", tuple(values.items()))

    def versions(self, versions: Sequence[str]) -> str:
        """Return versions that stand side by side, newest first: `1.24.1 to 1.26.0`."""
        if len(versions) == 1:
            return versions[0]
        return self.label("versions", first=versions[-1], last=versions[0])

    def verdict(
        self, code: str, values: tuple[tuple[str, str], ...] = (), key: str = "text"
    ) -> str:
        """Return what a verification says (`text`), what it proves (`proves`), or its `hint`."""
        row: Mapping[str, Mapping[str, str]] = self.table["verdicts"][code]
        return row[key][self.language].format(**dict(values)) if key in row else ""

    def progress(self, code: str, **values: object) -> str:
        """Return what a step that takes long is doing."""
        return self._text("progress", code, "text", tuple(values.items()))

    def _text(self, table: str, code: str, key: str, values: tuple[tuple[str, object], ...]) -> str:
        text: str = self.table[table][code][key][self.language]
        return text.format(**dict(values))


def load_texts(language: Language) -> Texts:
    """Return all texts, in `language`. Raises `matrix-invalid`."""
    return Texts(table=load_table("texts"), language=language)
