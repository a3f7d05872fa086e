"""What is seen of this machine and of an environment: what `probe` read, as facts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import Error
from ..facts import capture
from ..facts.model import GPU_BUILD, PLUGINS, ChangeState, Facts, Package, Platform, Provider
from ..facts.project_tool import (
    ENVIRONMENT_FILES,
    LOCKS,
    PIPENV_NOTE,
    RECEIPTS,
    environment_named,
    locked_release,
    tool_of_folder,
)
from ..facts.redact import redact
from ..facts.target import STATE_FOLDER, Target
from ..matrix.model import Matrix, libraries_of
from ..messages.catalog import load_texts
from ..probe.interpreter import chosen_by
from ..probe.kernel import kernel_python
from ..probe.libraries import find_text
from ..probe.machine import probe
from ..probe.mistaken import find_old_place, find_other_command, find_shadow
from ..utils.files import is_file
from ..utils.process import run
from .command_line import in_shells
from .console import print_notice, user_language
from .described import start_looking
from .facts_files import capability_of
from .requests import MachineOptions


def require_platform(wanted: Platform, target: Target) -> None:
    """Refuse to fill an environment with another system's wheels. Raises Error `other-platform`."""
    windows = {"x86_64": "win-amd64", "aarch64": "win-arm64"}
    name = windows[wanted.machine] if wanted.system == "windows" else f"linux-{wanted.machine}"
    if name != target.platform:
        raise Error("other-platform", wanted=name, path=target.executable, here=target.platform)


def probe_machine(machine: MachineOptions, environ: Mapping[str, str]) -> tuple[Facts, Target]:
    """Return the facts of this machine and of the environment that `--python` names.

    Raises those of `start_looking`, `probe` and `capture.facts`.
    """
    processes = machine.processes or start_looking(machine, environ)
    found = probe(processes, runner=run, environ=environ)
    elsewhere = machine.driver is not None
    facts = capture.facts(found.capture, capability_of, elsewhere=elsewhere)
    sources = {**facts.sources, "python": chosen_by(machine.python, environ, Path.cwd())}
    facts = facts._replace(sources=sources)
    if machine.python is None:
        _show_kernel(found.target, environ)
    return with_surroundings(facts, found.target, environ), found.target


def _show_kernel(target: Target, environ: Mapping[str, str]) -> None:
    """Say in a cell of a notebook that its kernel has another Python than the one looked at."""
    kernel = kernel_python(os.getppid())
    if kernel is None or kernel.parent.parent.resolve() == Path(target.prefix).resolve():
        return
    texts = load_texts(user_language(environ))
    command = in_shells(("ortgpu-fix", "--python", str(kernel)))
    print_notice(texts.label("kernel-elsewhere", path=target.executable, command=command))


def with_unknown_releases(facts: Facts, target: Target, matrix: Matrix) -> Facts:
    """Return `facts` with what can be read of the installed releases that `matrix` lacks.

    Of the others the files are known.
    """
    from ..resolve.onnxruntime_installed import with_installed_owners
    from ..resolve.unknown_releases import is_unknown_build, without_known_files

    matrix = with_installed_owners(facts, matrix)
    packages = tuple(_with_plugin(package, target, matrix) for package in facts.packages)
    packages = tuple(_with_seen(package, target, matrix, facts.platform) for package in packages)
    facts = facts._replace(packages=packages)
    facts = facts._replace(packages=without_known_files(facts, matrix))
    owners = [
        package
        for package in facts.packages
        if package.name in matrix.owners and not package.provided
    ]
    installed = target.find(GPU_BUILD) or (target.find(owners[0].name) if owners else None)
    read = facts.onnxruntime and facts.onnxruntime._replace(provider=Provider())
    if installed is None or read is None:
        return facts
    gpu_build = installed.key == GPU_BUILD
    if gpu_build and not is_unknown_build(facts._replace(onnxruntime=read), matrix):
        return facts
    from ..probe.provider import read_provider

    provider = read_provider(Path(installed.metadata_path).parent / "onnxruntime")
    if gpu_build or (provider and provider.links):
        facts = facts._replace(onnxruntime=read._replace(provider=provider))
    return facts


def _with_seen(package: Package, target: Target, matrix: Matrix, platform: Platform) -> Package:
    """Return one of NVIDIA's distributions without RECORD as whole only where its libraries are."""
    known = matrix.distributions.get(package.name)
    if known is None:
        return package
    installed = target.find(package.name)
    if installed is None or Path(installed.metadata_path, "RECORD").is_file():
        return package
    from ..resolve.unknown_releases import nearest_release

    like = nearest_release(package.version, known, platform.key)
    held = libraries_of(known, like) if like else None
    folder, paths = Path(installed.metadata_path).parent, held.libraries.values() if held else ()
    return package._replace(intact=all((folder / path).is_file() for path in paths))


def _with_plugin(package: Package, target: Target, matrix: Matrix) -> Package:
    """Return a plugin of onnxruntime with what its provider says, where that is not known."""
    row = matrix.plugins.get(package.name)
    if not package.name.startswith(PLUGINS) or (row and row.sass):
        return package
    installed = target.find(package.name)
    if installed is None:
        return package
    from ..probe.provider import read_plugin

    folder = Path(installed.metadata_path).parent
    return package._replace(provider=read_plugin(folder, installed.libraries))


def with_surroundings(facts: Facts, target: Target, environ: Mapping[str, str]) -> Facts:
    """Return `facts` with what lies in the environment, and beside it, of others and of ours.

    That is the tool that keeps the environment, what a program imports in its place, and what an
    earlier change left in it.
    """
    noted = find_text(Path(target.prefix, PIPENV_NOTE))
    folder = Path(noted.strip()) if noted else Path(target.prefix).parent
    files = {tool: Path(target.prefix, file) for tool, file in RECEIPTS.items()}
    files |= {tool: folder / file for tool, file in LOCKS.items()}
    tools = [tool for tool, file in files.items() if is_file(file)]
    owner = tools[0] if tools else tool_of_folder(target.prefix)
    project = owner if target.kind == "venv" else _conda_tool(target, Path.cwd())
    change, size = _change(target)
    shadow = find_shadow(target, environ, Path.cwd())
    command = find_other_command(target, environ)
    moved_from = find_old_place(target)
    home = environ.get("HOME") or environ.get("USERPROFILE")
    python = facts.python._replace(
        project=project,
        locked=locked_release(project, find_text(files[project]) or "")
        if project in files
        else None,
        shadow=None if shadow is None else redact(str(shadow), home),
        command=None if command is None else redact(str(command), home),
        moved_from=None if moved_from is None else redact(moved_from, home),
        change=change,
        change_size=size,
    )
    return facts._replace(python=python)


def _conda_tool(target: Target, cwd: Path) -> str | None:
    """Return what makes a conda environment anew: pixi, or conda from an environment.yml here."""
    if target.kind != "conda":
        return None
    if target.managed_by == "pixi":
        return "pixi"
    texts = (find_text(cwd / file) for file in ENVIRONMENT_FILES)
    named = {environment_named(text) for text in texts if text is not None}
    return "conda" if Path(target.prefix).name in named else None


def _change(target: Target) -> tuple[ChangeState | None, int]:
    """Return what an earlier run left in the environment, and its size in bytes."""
    if not Path(target.purelib, STATE_FOLDER).exists():  # the usual case: nothing more to import
        return None, 0
    from ..apply.files_to_remove import installed_in_site
    from ..apply.history import history_summary
    from ..apply.state_folder import Site

    site = Site.of(target)
    return history_summary(site, installed_in_site(target, site))
