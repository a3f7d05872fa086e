"""What a plan removes, installs and downloads, in words.

Returns sections, prints nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..facts.model import Facts
from ..matrix.torch import TORCH
from ..messages.catalog import Texts
from ..messages.sections import Row, Section, size
from ..plan.model import Plan
from ..plan.wheels import Wheel, read_hashes, short_name
from ..versions import newest_first

NVIDIA = "nvidia-"
MSVC = "msvc-runtime"


def steps_section(
    plan: Plan, facts: Facts, texts: Texts, at_hand: Collection[str], *, verbose: bool
) -> Section:
    """Return the steps, what comes together in one line unless `verbose`.

    The heading says how much is downloaded; `at_hand`: the files of wheels that need not be.
    """
    rows = [
        *_removed(plan, facts, texts, verbose=verbose),
        *_installed(plan, facts, texts, verbose=verbose),
        *_helpers(plan, texts, verbose=verbose),
    ]
    if plan.requires:
        code = "requirement" if len(plan.requires) == 1 else "requirements"
        listed, count = texts.listed(plan.requires), len(plan.requires)
        rows.append(_comes(texts.label(code, listed=listed, count=count)))
    if plan.install and plan.bytes_saved and plan.small:
        rows.append(Row(text=texts.label("less-taken", size=size(plan.bytes_saved)), style="dim"))
    for added, wheels in read_hashes(plan.install, plan.matrix_added):
        listed = texts.listed(f"{short_name(wheel.name)} {wheel.version}" for wheel in wheels)
        text = texts.label("hash-read", listed=listed, index=added.index_url, date=added.read)
        rows.append(Row(text=text, style="dim"))
    broken = any(finding.severity == "error" for finding in plan.findings)
    heading = texts.label("fix" if broken else "change")
    if plan.install:
        heading = texts.label(
            "with-download", heading=heading, size=_download(plan, texts, at_hand)
        )
    return Section(heading=heading, rows=tuple(rows))


def _comes(text: str) -> Row:
    return Row(text=f"+ {text}", style="green")


def _removed(plan: Plan, facts: Facts, texts: Texts, *, verbose: bool) -> Iterator[Row]:
    packages = [package for name in plan.uninstall if (package := facts.package(name)) is not None]
    together = [package for package in packages if package.name.startswith(NVIDIA)]
    if verbose or len(together) == 1:
        together = []
    for package in packages:
        if package not in together:
            yield Row(text=f"- {package.name} {package.version}", style="red")
    if together:
        yield Row(text=f"- {texts.label('components', count=len(together))}", style="red")


def _installed(plan: Plan, facts: Facts, texts: Texts, *, verbose: bool) -> Iterator[Row]:
    together = [
        wheel
        for wheel in plan.install
        if wheel.name.startswith(NVIDIA) and not facts.package(wheel.name)
    ]
    if verbose or len(together) == 1:
        together = []
    for wheel in plan.install:
        if wheel not in together:
            yield _installed_row(wheel, facts, texts, verbose=verbose)
    if together:
        yield _comes(texts.label("components-of", count=len(together), cuda=plan.cuda))


def _installed_row(wheel: Wheel, facts: Facts, texts: Texts, *, verbose: bool) -> Row:
    """Return the row of one wheel: `+` where it is new, `~` where it takes the place of another."""
    before, more = facts.package(wheel.name), ""
    if not wheel.size:
        more = texts.label("comma") + texts.label("from-index", index=wheel.index_url)
    elif verbose:
        more = texts.label("comma") + size(wheel.size)
    text = f"{wheel.name} {wheel.version}"
    if wheel.name == MSVC:
        text = texts.label("msvc-runtime", text=text)
    if before is None:
        return _comes(f"{text}{more}")
    if before.version == wheel.version:
        return _comes(texts.label("reinstalled", text=text) + more)
    text = f"{wheel.name} {before.version} → {wheel.version}"
    if newest_first(wheel.version) < newest_first(before.version):
        return Row(text=f"~ {texts.label('downgraded', text=text)}{more}", style="yellow")
    return Row(text=f"~ {text}{more}", style="green")


def _helpers(plan: Plan, texts: Texts, *, verbose: bool) -> Iterator[Row]:
    """Yield the packages that are made locally."""
    if verbose:
        for companion in plan.companions:
            version = companion.version.partition("+")[0]
            yield _comes(
                texts.label(f"made-{companion.name}", name=companion.name, version=version)
            )
    elif plan.companions:
        names = (texts.label(f"helper-{companion.name}") for companion in plan.companions)
        code = "helper" if len(plan.companions) == 1 else "helpers"
        listed = texts.label("list-comma").join(names)
        yield _comes(texts.label(code, count=len(plan.companions), listed=listed))


def _download(plan: Plan, texts: Texts, at_hand: Collection[str]) -> str:
    """Return what is to be downloaded, and how much it is with the smallest wheels."""
    wanted = [wheel for wheel in plan.install if wheel.file not in at_hand]
    if not wanted:
        return texts.label("total-none")
    total = sum(wheel.size for wheel in wanted)
    text = texts.label(
        "total" if all(wheel.size for wheel in wanted) else "total-and-others", size=size(total)
    )
    if any(wheel.name == TORCH for wheel in plan.install):
        text = texts.label("total-torch", total=text)
    local = sum(wheel.size for wheel in plan.install) - total
    if local:
        return texts.label("total-here", total=text, size=size(local))
    if plan.bytes_saved and not plan.small and len(wanted) == len(plan.install):
        text = texts.label("less", total=text, size=size(total - plan.bytes_saved))
    return text
