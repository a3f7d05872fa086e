"""The inputs of a plan: facts of the machine and the environment, options, and the matrix."""

import argparse
import functools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..data_files import example_machine, load_table
from ..errors import Error
from ..facts import capture
from ..facts.document import from_json
from ..facts.gpu_names import capability_by_name, with_capabilities
from ..facts.model import GPU_BUILD, ChangeState, Driver, Facts, Gpu, Platform, Provider
from ..facts.project_tool import LOCKS, locked_release, tool_of_folder
from ..facts.redact import redact
from ..facts.target import STATE_FOLDER, Target, in_environment
from ..matrix.load import add_torch, load_matrix
from ..matrix.model import Matrix
from ..matrix.torch import TORCH
from ..probe.background import start_probe
from ..probe.interpreter import chosen_by
from ..probe.libraries import find_text
from ..probe.machine import probe, target_of
from ..probe.moved import find_old_place
from ..probe.shadow import find_other_command, find_shadow
from ..resolve.options import PlanOptions
from ..utils.process import run
from .matrix_files import wheels_folder
from .options import capability, parse_plan_options

if TYPE_CHECKING:
    from ..index.config import IndexConfig

EXAMPLE = "example"


class PlanInputs(NamedTuple):
    """Everything that a plan is made from, and the environment to work on."""

    facts: Facts
    options: PlanOptions
    matrix: Matrix
    target: Target | None
    """None where a facts file stands for the environment too."""
    elsewhere: bool
    """True where the plan is for another machine than this one."""


def gather_inputs(
    arguments: argparse.Namespace, environ: Mapping[str, str], *, on_target: bool = False
) -> PlanInputs:
    """Gather everything that the plan of this command line is made from.

    `on_target`: something is to be done, so the environment is always read from where it is.
    Raises what `probe_machine`, `read_facts` and `parse_plan_options` raise.
    """
    options = plan_options_of(arguments)
    if arguments.facts is None and arguments.processes is None:
        arguments.processes = start_probe(arguments.python, environ)
    # The children that are asked take as long as all this: it is done meanwhile.
    matrix = load_matrix(torch=False)
    from ..report import plan as report  # noqa: F401
    from ..resolve import resolver as resolve  # noqa: F401

    facts, target = _look(arguments, environ, on_target=on_target)
    if target is not None:
        facts = with_unknown_releases(facts, target, matrix)
    if options.torch != "keep" or facts.package(TORCH) is not None:
        matrix = add_torch(matrix)
    return PlanInputs(
        facts=facts,
        options=options,
        matrix=matrix,
        target=target,
        elsewhere=arguments.facts is not None or arguments.driver is not None,
    )


def plan_options_of(arguments: argparse.Namespace) -> PlanOptions:
    """Return the options of a plan. Raises what `parse_plan_options` raises."""
    return parse_plan_options(
        ort=arguments.ort,
        cuda=arguments.cuda,
        ignored_gpus=arguments.ignore_gpu,
        requirements=arguments.requirement,
        mend=arguments.write,
        autoload=not arguments.no_autoload,
        provide=not arguments.no_provide,
        torch=arguments.torch,
        conflicts="conflicts" in arguments.allow,
        torch_index=arguments.torch_index_url,
    )


def _look(
    arguments: argparse.Namespace, environ: Mapping[str, str], *, on_target: bool
) -> tuple[Facts, Target | None]:
    """Return the facts to plan from, and the environment where it was looked at."""
    if arguments.facts is None:
        facts, target = probe_machine(arguments, environ)
        if arguments.driver is not None:
            facts = _short_form(facts, arguments.driver, arguments.gpu)
        return facts, target
    facts = read_facts(arguments.facts)
    if arguments.python is None and not on_target:
        return facts, None
    target = target_of(arguments.python, environ=environ, cwd=Path.cwd(), runner=run)
    if on_target:
        _require_platform(facts.platform, target)
    facts = in_environment(facts, target, environ.get("HOME"))
    return with_surroundings(facts, target, environ), target


def _require_platform(wanted: Platform, target: Target) -> None:
    """Refuse to fill an environment with another system's wheels. Raises Error `other-platform`."""
    windows = {"x86_64": "win-amd64", "aarch64": "win-arm64"}
    name = windows[wanted.machine] if wanted.system == "windows" else f"linux-{wanted.machine}"
    if name != target.platform:
        raise Error("other-platform", wanted=name, path=target.executable, here=target.platform)


def probe_machine(
    arguments: argparse.Namespace, environ: Mapping[str, str]
) -> tuple[Facts, Target]:
    """Return the facts of this machine and of the environment that `--python` names.

    Raises those of `start_probe`, `probe` and `capture.facts`.
    """
    processes = arguments.processes or start_probe(arguments.python, environ)
    found = probe(processes, runner=run, environ=environ)
    elsewhere = arguments.driver is not None
    facts = capture.facts(found.capture, _capability, elsewhere=elsewhere)
    sources = {**facts.sources, "python": chosen_by(arguments.python, environ, Path.cwd())}
    facts = facts._replace(sources=sources)
    return with_surroundings(facts, found.target, environ), found.target


def with_unknown_releases(facts: Facts, target: Target, matrix: Matrix) -> Facts:
    """Return `facts` with what can be read of the installed releases that `matrix` lacks.

    Of the others the files are known.
    """
    from ..resolve.unknown_releases import is_unknown, is_unknown_build

    platform = facts.platform.key
    packages = tuple(
        row if is_unknown(row, matrix, platform) else row._replace(libraries=())
        for row in facts.packages
    )
    facts = facts._replace(packages=packages)
    installed = target.find(GPU_BUILD)
    read = facts.onnxruntime and facts.onnxruntime._replace(provider=Provider())
    if installed is None or read is None:
        return facts
    if not is_unknown_build(facts._replace(onnxruntime=read), matrix):
        return facts
    from ..probe.provider import read_provider

    provider = read_provider(Path(installed.metadata_path).parent / "onnxruntime")
    return facts._replace(onnxruntime=read._replace(provider=provider))


@functools.cache
def _capability(gpu: str) -> str | None:
    """Return the compute capability of a GPU by its name; few machines are asked for that."""
    return capability_by_name(load_table("gpus"))(gpu)


def with_surroundings(facts: Facts, target: Target, environ: Mapping[str, str]) -> Facts:
    """Return `facts` with what lies in the environment, and beside it, of others and of ours.

    That is the tool that keeps the environment, what a program imports in its place, and what an
    earlier change left in it.
    """
    folder = Path(target.prefix).parent
    tools = [tool for tool, file in LOCKS.items() if (folder / file).is_file()]
    owner = tools[0] if tools else tool_of_folder(target.prefix)
    project = owner if target.kind == "venv" else None
    lock = find_text(folder / LOCKS[tools[0]]) if tools and project else None
    change, size = _change(target)
    shadow = find_shadow(target, environ, Path.cwd())
    command = find_other_command(target, environ)
    moved_from = find_old_place(target)
    home = environ.get("HOME") or environ.get("USERPROFILE")
    python = facts.python._replace(
        project=project,
        locked=None if lock is None else locked_release(lock),
        shadow=None if shadow is None else redact(str(shadow), home),
        command=None if command is None else redact(str(command), home),
        moved_from=None if moved_from is None else redact(moved_from, home),
        change=change,
        change_size=size,
    )
    return facts._replace(python=python)


def _change(target: Target) -> tuple[ChangeState | None, int]:
    """Return what an earlier run left in the environment, and its size in bytes."""
    if not Path(target.purelib, STATE_FOLDER).exists():  # the usual case: nothing more to import
        return None, 0
    from ..apply.files_to_remove import distributions_here
    from ..apply.history import history_summary
    from ..apply.state_folder import Site

    site = Site.of(target)
    return history_summary(site, distributions_here(target, site))


def read_facts(file: str) -> Facts:
    """Return the facts in `file`; `example` is the machine that is shipped with the program.

    A GPU that has a name only, as in a file written by hand, gets its compute capability by it.

    Raises Error `facts-unreadable` where it cannot be read or is no JSON, `facts-invalid` as
    `facts_json.from_json` does.
    """
    if file == EXAMPLE and not os.path.lexists(file):
        return from_json(example_machine())
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise Error("facts-unreadable", file=file, cause=error.strerror or error) from error
    try:
        facts, ignored = _parse_facts(content)
    except ValueError as error:
        raise Error("facts-unreadable", file=file, cause=f"no JSON: {error}") from error
    except RecursionError as error:
        raise Error("facts-unreadable", file=file, cause="nested too deep") from error
    if ignored:
        _print_ignored(file, ignored)
    return facts


@functools.lru_cache(maxsize=4096)  # machines of one kind have the same file, to the byte
def _parse_facts(content: bytes) -> tuple[Facts, tuple[str, ...]]:
    """Return the facts in `content`, and the keys that were ignored in it."""
    ignored: list[str] = []
    facts = from_json(json.loads(content), ignored)  # of any Unicode, marked or not
    if not all(gpu.compute_capability for gpu in facts.gpus or ()):
        facts = with_capabilities(facts, _capability)
    return facts, tuple(ignored)


def _print_ignored(file: str, keys: Sequence[str]) -> None:
    """Say which keys of a newer program's facts this one does not read."""
    from ..messages.catalog import load_texts
    from .console import print_notice, user_language

    texts = load_texts(user_language(os.environ))
    print_notice(texts.label("facts-keys-ignored", file=file, keys=", ".join(keys)))


def read_short_form(driver: str, gpus: str) -> tuple[str, tuple[str, ...]]:
    """Return the values of `--driver` and `--gpu`. Raises Error `wish-driver` or `wish-gpu`."""
    if not driver.replace(".", "").isdigit():
        raise Error("wish-driver", value=driver)
    return driver, tuple(capability(text.strip(), "--gpu") for text in gpus.split(","))


def _short_form(facts: Facts, driver: str, gpus: str) -> Facts:
    """Return the machine of `--driver` and `--gpu`: this system, and nothing else of this one."""
    version, capabilities = read_short_form(driver, gpus)
    words = [text.strip() for text in gpus.split(",")]
    cards = [
        Gpu(name=None if text == word else word, compute_capability=text)
        for word, text in zip(words, capabilities, strict=True)
    ]
    return facts._replace(
        driver=Driver(version=version),
        gpus=tuple(cards),
        toolkits=(),
        libraries=(),
        environment={},
        sources={"python": facts.sources["python"], "driver": "--driver", "gpus": "--gpu"},
    )


def index_config_of(
    arguments: argparse.Namespace, environ: Mapping[str, str], prefix: Path | None
) -> "IndexConfig":
    """Return where packages come from, by the flags and the user's configuration.

    Raises Error `index-insecure`, and `index-unreachable` for what is no address.
    """
    from ..index.config import load_index_config

    find_links = None if arguments.find_links is None else Path(arguments.find_links)
    return load_index_config(
        environ,
        index_url=arguments.index_url,
        torch_index=arguments.torch_index_url,
        find_links=find_links,
        kept=wheels_folder(environ),
        offline=arguments.offline,
        prefix=prefix,
    )
