"""Which package indexes uv is given, what each is called, and who may log in there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from ..index.config import IndexConfig
from ..plan.wheels import Wheel

DEFAULT = "default"
"""What the user's own index is called."""


class Indexes(NamedTuple):
    """The user's index, and those from which alone some distributions come.

    No address contains credentials.
    """

    default: str
    others: tuple[str, ...] = ()
    behind: str | None = None
    """One of the others; see `Question.behind`."""
    logins: tuple[tuple[str, str | None, str | None], ...] = ()
    """Scheme and host, user name and password of those in a configured address."""

    def name_of(self, url: str) -> str:
        """Return what the index at `url` is called; `pypi` and the like is the default one."""
        if "://" not in url or url == self.default:
            return DEFAULT
        return f"index-{self.others.index(url) + 1}"

    @property
    def explicit(self) -> dict[str, str]:
        """Return the address of each that is asked for nothing but what names it, by its name."""
        return {self.name_of(url): url for url in self.others if url != self.behind}

    def variables(self, *, together: bool = False) -> dict[str, str]:
        """Return the environment variables that name them to uv.

        With `together` uv looks nothing up, and only has to know who may log in where. Source: https://docs.astral.sh/uv/concepts/indexes/.
        """
        default = f"{DEFAULT}={self.default}"
        named = {"UV_DEFAULT_INDEX": default}
        if self.behind and not together:
            named["UV_INDEX"] = default
            named["UV_DEFAULT_INDEX"] = f"{self.name_of(self.behind)}={self.behind}"
            named["UV_INDEX_STRATEGY"] = "unsafe-first-match"
        if self.others and together:
            named["UV_INDEX"] = " ".join(f"{self.name_of(url)}={url}" for url in self.others)
        for url in (self.default, *self.others):
            variable = f"UV_INDEX_{self.name_of(url).upper().replace('-', '_')}"
            for place, name, password in self.logins:
                if place == _place(url):
                    named |= {f"{variable}_USERNAME": name} if name else {}
                    named |= {f"{variable}_PASSWORD": password} if password else {}
        return named


def indexes_of(sources: IndexConfig, wheels: Iterable[Wheel], behind: str | None = None) -> Indexes:
    """Return the indexes that have `wheels`; `behind` is one of them."""
    urls = (wheel.index_url for wheel in wheels if wheel.index_url != sources.index_url)
    others = tuple(dict.fromkeys(url for url in urls if "://" in url))
    named = (sources.index_url, sources.torch_index, sources.tensorrt_index)
    return Indexes(
        default=_without_login(sources.index_url),
        others=others,
        behind=behind if behind in others else None,
        logins=tuple(_login(url) for url in named if url and urlsplit(url).username),
    )


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _login(url: str) -> tuple[str, str | None, str | None]:
    parts = urlsplit(url)
    name, password = parts.username, parts.password
    return _place(url), name and unquote(name), password and unquote(password)
