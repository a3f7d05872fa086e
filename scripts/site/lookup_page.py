"""The look-up page: which build runs with which driver, GPU, Python and torch.

Everything can be read without its script, which filters the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lookup import GenerationCode, KnownValue, LookedUp, LookUp

from ortgpu_fix.matrix.model import Build
from ortgpu_fix.messages.catalog import Texts
from ortgpu_fix.report.page_parts import Markup, element, prose

Address = Callable[[str], str]
"""Where a release is told of: `1.26.0` to `1.26.0/index.html`."""
Say = Callable[..., str]
"""A text of the site by its code, with values."""


def lookup_parts(found: LookUp, texts: Texts, say: Say, address: Address) -> list[Markup]:
    """Return the filter and the table."""
    count = say("lookup-count", shown="{shown}", all="{all}")
    all_ = say("lookup-count", shown=len(found.rows), all=len(found.rows))
    dated = texts.label("matrix-of", date=found.date, digest=found.digest)
    return [
        element("p", prose(say("lookup-legend"))),
        _filter(found, say),
        element("p", all_, id="count", role="status", data_text=count),
        _table(found, texts, say, address),
        element("p", dated, class_="dim"),
    ]


def release_parts(found: LookUp, texts: Texts, say: Say) -> dict[str, list[Markup]]:
    """Return what is told of each release, by its version: all builds with their sources."""
    parts: dict[str, list[Markup]] = {}
    for row in found.rows:
        facts = [part for fact in row.facts for part in _fact(fact, say)]
        heading = element("h2", row.build.platform, id=_key(row.build))
        parts.setdefault(row.build.version, []).extend((heading, element("dl", *facts)))
    for version, source in found.gone.items():
        gone = element("p", texts.label("matrix-gone"), " · ", linked(source))
        parts.setdefault(version, []).append(gone)
    return parts


def linked(source: str) -> Markup:
    """Return a source: an address as a link, and any other as it is."""
    address = source.partition(",")[0]
    if not address.startswith("https://"):
        return element("span", source)
    return element("span", element("a", address, href=address), source[len(address) :])


def _key(build: Build) -> str:
    return f"{build.version}-{build.platform}"


def _fact(fact: KnownValue, say: Say) -> tuple[Markup, Markup]:
    known = element("small", linked(fact.source), f" · {fact.since}", class_="dim")
    return element("dt", say(fact.label)), element("dd", fact.value, known)


def _filter(found: LookUp, say: Say) -> Markup:
    systems = dict.fromkeys(row.build.platform for row in found.rows)
    drivers = [(str(branch), f"{branch} (CUDA {cuda})") for branch, cuda in found.branches.items()]
    cards = [
        element(
            "optgroup",
            *(element("option", name, value=capability) for name in names),
            label=f"{capability} {generation.name}",
        )
        for generation in found.generations
        for capability, names in generation.names.items()
    ]
    menus = (
        ("system", [_option(each, each) for each in sorted(systems)]),
        ("driver", [_option(*each) for each in drivers]),
        ("gpu", cards),
        ("torch", [_option(each, each) for each in found.torch]),
    )
    any_ = say("lookup-any")
    chosen = [
        element(
            "label",
            element("span", say(f"lookup-my-{name}")),
            element("select", element("option", any_, value=""), *options, name_=name),
        )
        for name, options in menus
    ]
    return element("form", *chosen, id="filter")


def _option(value: str, text: str) -> Markup:
    return element("option", text, value=value)


def _table(found: LookUp, texts: Texts, say: Say, address: Address) -> Markup:
    caption = say("lookup-title")
    plain = ("lookup-release", "lookup-system", "lookup-cuda", "lookup-cudnn", "lookup-driver")
    heads = [
        *map(say, plain),
        *(each.name for each in found.generations),
        *map(say, ("lookup-python", "lookup-torch")),
    ]
    made = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
        element("tbody", *(_row(row, texts, address) for row in found.rows)),
    )
    return element("div", made, class_="scroll", role="region", aria_label=caption, tabindex="0")


def _row(row: LookedUp, texts: Texts, address: Address) -> Markup:
    build = row.build
    known = {fact.label: f"{fact.source} · {fact.since}" for fact in row.facts}
    torch = list(dict.fromkeys(each.name for each in row.torch))
    runs = " ".join(f"{gpu}:{first}-{last}" for gpu, (first, last) in row.runs.items())
    return element(
        "tr",
        element("th", element("a", build.version, href=address(build.version)), scope="row"),
        element("td", build.platform, class_="name"),
        element("td", build.cuda, title=known["lookup-cuda"]),
        element("td", build.cudnn, title=known["lookup-cudnn"]),
        element("td", f"≥ {row.driver}", class_="name", title=known["lookup-driver"]),
        *(_code(code, known["lookup-code"]) for code in row.code),
        element("td", row.pythons, class_="list", title=known["lookup-python"]),
        element("td", _span(torch, texts), class_="list", title=known.get("lookup-torch")),
        data_system=build.platform,
        data_runs=runs,
        data_torch=" ".join(torch),
    )


def _code(code: GenerationCode, known: str) -> Markup:
    kind = "yes" if code.sass else "ptx" if code.ptx else "no"
    shown = " ".join(code.sass) or ("" if code.ptx else "–")
    compiled = [element("i", f" {' '.join(code.ptx)}")] if code.ptx else []
    return element("td", shown, *compiled, class_=kind, title=known)


def _span(torch: Sequence[str], texts: Texts) -> str:
    """Return the first and the last release of torch: `2.4.0 to 2.15.0`."""
    releases = list(dict.fromkeys(name.partition("+")[0] for name in torch))
    return texts.versions([releases[-1], releases[0]][: len(releases)]) if releases else "–"
