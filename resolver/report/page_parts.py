"""The parts of a page: elements and bars.

Core. Everything that goes into an element is escaped here, and nowhere else; an element that is
made is of a type of its own, so that nothing is escaped twice or not at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Sequence

from ..messages.catalog import Language
from ..utils.foreign_text import without_controls
from .page_style import STYLE

_LANGUAGES = {"en": "en", "zh": "zh-CN"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def clean(text: str) -> str:
    """Return text on one line, without characters that control something."""
    return re.sub("[\\n\\t]", " ", without_controls(text))


def escape(text: str) -> Markup:
    """Return text as HTML shows it."""
    return text if isinstance(text, Markup) else Markup(html.escape(clean(text), quote=True))


def element(name: str, *inside: str, **attributes: str | None) -> Markup:
    """Return an element; `class_` is the attribute `class`, `data_value` is `data-value`."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{said}>{''.join(escape(each) for each in inside)}</{name}>")


def prose(text: str) -> Markup:
    """Return a sentence in which what stands in backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one without its other: no code
        return escape(text)
    marked = (element("code", part) if at % 2 else escape(part) for at, part in enumerate(parts))
    return Markup("".join(marked))


def section(heading: str, *inside: str) -> Markup:
    """Return a section under its heading; nothing where nothing is inside."""
    kept = [each for each in inside if each]
    return element("section", element("h2", heading), *kept) if kept else Markup("")


def bars(label: str, rows: Sequence[tuple[str, float, str]]) -> Markup:
    """Return a bar for each row: its name, how long it is beside the longest, and what it says."""
    if not rows:
        return Markup("")
    longest = max(length for _, length, _ in rows) or 1.0
    drawn = [
        element(
            "div",
            element("span", name, class_="name"),
            Markup(
                '<svg aria-hidden="true" focusable="false" width="100%" height="14">'
                f'<rect width="{max(0.5, 100 * length / longest):.2f}%" height="14" rx="2"/></svg>'
            ),
            element("span", said, class_="said"),
            class_="bar",
            role="listitem",
        )
        for name, length, said in rows
    ]
    return element("div", *drawn, class_="bars", role="list", aria_label=label)


def document(
    language: Language,
    title: str,
    *body: str,
    style: str = STYLE,
    script: str = "",
    loads: str = "",
    top: str = "",
    description: str = "",
) -> str:
    """Return a whole page that runs nothing but its own script, and loads nothing.

    `loads`: what it may load and run besides, as a content security policy says it, sources of
    scripts first; `top`: what stands before the main part; `description`: what a search shows.
    What is no text in a path stands there as a question mark.
    """
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {_hash(style)}; script-src {_hash(script)}{loads}"
    )
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{style}</style>'
    )
    if description:
        head += f'<meta name="description" content="{escape(description)}">'
    run = f"<script>{script}</script>" if script else ""
    content = "\n".join(escape(each) for each in body if each)
    page = (
        f'<!DOCTYPE html>\n<html lang="{_LANGUAGES[language]}"><head>{head}</head>\n'
        f"<body>{escape(top)}<main>\n{content}\n</main>{run}</body></html>\n"
    )
    return page.encode(errors="replace").decode()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
