"""The one error of this program.

What a user reads stands in `texts.toml` under the error's code, in every language;
here is only the code and the values that the text names.
"""

from __future__ import annotations

from typing import NamedTuple


class Cause(NamedTuple):
    """Why something fails, as a value of an Error: a key of the table `causes` in `texts.toml`.

    `values` fill the placeholders of its text, and may be causes themselves.
    """

    code: str
    values: tuple[tuple[str, object], ...] = ()


def cause(code: str, **values: object) -> Cause:
    """Return the cause `code` with the values that its text names."""
    return Cause(code, tuple(values.items()))


class Error(Exception):
    """Something that ends the command with one clear sentence, a hint and an exit code.

    `code` is a kebab-case key of the table `errors` in `texts.toml`, which holds the message, the
    hint and the exit code; `values` fill the placeholders of both.
    """

    def __init__(self, code: str, /, **values: object) -> None:
        super().__init__(code, values)
        self.code = code
        self.values = values

    def __str__(self) -> str:
        """Return the code and the values, for logs and test failures; never shown to a user."""
        details = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"{self.code}({details})"
