"""The commands that change an environment: apply and undo.

Shell.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from . import console
from .apply import apply as do_plan
from .companions import LIBRARIES, for_plan
from .data_files import load_texts
from .engine import choose
from .errors import Error
from .index import Index
from .occasion import Occasion, occasion
from .plan import Plan
from .report import plan_json, plan_sections
from .report_checks import verification_sections
from .resolve import resolve
from .restore import recover
from .restore import undo as undo_last
from .run import run
from .sources import Sources, read
from .state import Site
from .target import target_of
from .texts import Language, Texts
from .verdict import Verification, exit_code
from .verify import verify


def apply(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Do the plan, verify it, undo it if it fails."""
    texts = load_texts("en" if arguments.json else language)
    _recover(arguments, environ, texts)
    about = occasion(arguments, environ, on_target=True)
    made = resolve(about.facts, about.wishes, about.matrix)
    sections = plan_sections(
        made,
        about.facts,
        texts,
        verbose=arguments.verbose,
        asked=about.wishes.chooses,
    )
    if made.verdict != "fixable":
        if arguments.json:
            console.print_json(plan_json(made, texts))
        else:
            console.print_sections(sections)
        return 0 if made.verdict == "healthy" else 3
    if not arguments.json:
        console.print_sections(sections)
    confirm(arguments, texts)
    verification = _do(made, about, arguments, environ, texts)
    if arguments.json:
        document = plan_json(made, texts) | {"verification": verification.to_json()}
        console.print_json(document)
    else:
        version = next(row.version for row in made.selection if row.name == "onnxruntime-gpu")
        console.print_sections(verification_sections(verification, texts))
        print("\n" + texts.label("applied", version=version))
    return 0


def _do(
    made: Plan,
    about: Occasion,
    arguments: argparse.Namespace,
    environ: Mapping[str, str],
    texts: Texts,
) -> Verification:
    target = about.target
    assert target is not None  # noqa: S101 - `on_target` reads it
    # Of this machine nothing is known where the facts are another's; the child finds what is here.
    driver = None if about.elsewhere else about.facts.driver
    # With the libraries' companion an unchanged application must find them: no help, then.
    plain = about.wishes.autoload and target.pth and _loads_itself(made, about)
    seen: list[Verification] = []

    def verified() -> tuple[bool, str]:
        verification = verify(
            target.executable,
            driver=driver,
            runner=run,
            environ=environ,
            plain=plain,
            ignore_gpus=sorted(about.wishes.ignored_gpus),
        )
        seen.append(verification)
        right = exit_code(verification, elsewhere=about.elsewhere) == 0
        return right, texts.verdict(verification.verdict, verification.values)

    sources = sources_of(arguments, environ, Path(target.prefix))
    with (
        console.progress(texts, quiet=arguments.json) as progress,
        tempfile.TemporaryDirectory() as folder,
    ):
        do_plan(
            made,
            target,
            index=Index(sources),
            engine=choose(target, environ, run),
            verify=verified,
            progress=progress,
            local=_companions(made, about, Path(folder)),
        )
    return seen[-1]


def _loads_itself(made: Plan, about: Occasion) -> bool:
    """Tell whether the companion that loads the libraries is there once the plan is done."""
    coming = {companion.name for companion in made.companions}
    return LIBRARIES in coming or about.facts.package(LIBRARIES) is not None


def _companions(made: Plan, about: Occasion, folder: Path) -> list[Path]:
    """Make the companions that the plan lacks, in `folder`, and return their paths."""
    wanted = {companion.name for companion in made.companions}
    platform = f"{about.facts.platform.system}_{about.facts.platform.machine}"
    paths: list[Path] = []
    for wheel in for_plan(made.selection, about.matrix, platform, about.matrix.modules):
        if wheel.name in wanted:
            paths.append(folder / wheel.file)
            paths[-1].write_bytes(wheel.content)
    return paths


def sources_of(
    arguments: argparse.Namespace, environ: Mapping[str, str], prefix: Path | None
) -> Sources:
    """Return where packages come from, by the flags and the user's configuration."""
    find_links = None if arguments.find_links is None else Path(arguments.find_links)
    return read(
        environ,
        index_url=arguments.index_url,
        find_links=find_links,
        offline=arguments.offline,
        prefix=prefix,
    )


def confirm(arguments: argparse.Namespace, texts: Texts) -> None:
    """Ask whether to go on, unless `--yes`. Raises Error `not-confirmed` without a terminal."""
    if arguments.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or arguments.json:
        raise Error("not-confirmed")
    print("\n" + texts.label("ask"), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes", "是"}:
        raise Error("declined")


def _recover(arguments: argparse.Namespace, environ: Mapping[str, str], texts: Texts) -> None:
    """Put back what an interrupted run left half done, before anything is planned on it."""
    target = target_of(arguments.python, environ=environ, cwd=Path.cwd(), runner=run)
    if recover(Site.of(target)):
        console.say(texts.label("recovered", path=target.prefix))


def undo(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Put the environment back to before the last apply."""
    texts = load_texts("en" if arguments.json else language)
    target = target_of(arguments.python, environ=environ, cwd=Path.cwd(), runner=run)
    site = Site.of(target)
    recovered = recover(site)
    if not recovered:
        confirm(arguments, texts)
        undo_last(site, [(one.key, one.version) for one in target.installed])
    if arguments.json:
        console.print_json({"schema": 1, "undone": True, "path": os.fspath(target.prefix)})
    else:
        print(texts.label("recovered" if recovered else "undone", path=target.prefix))
    return 0
