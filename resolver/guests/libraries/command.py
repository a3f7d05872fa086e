"""`download --libraries`: NVIDIA's libraries in a directory, for programs that are not Python."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...cli import console
from ...cli.command_line import SYSTEM, in_shells
from ...cli.commands.plan import VERDICT_EXIT, print_plan
from ...cli.flags import lacking
from ...cli.inputs import PlanInputs, gather_inputs
from ...cli.lock_inputs import LockPlace, group_of_one, lock_builder
from ...facts.model import Facts
from ...index.download import download_all
from ...messages.catalog import Language, Texts, load_texts
from ...messages.sections import size as size_of
from ...resolve.resolver import resolve
from .carried import Carried, find_carried
from .guest import LibrariesRequest
from .planning import (
    library_wheels,
    machine_of,
    matrix_for,
    nearest_version,
    with_carried,
)
from .unpacked import unpack, write_manifest

PARTS = ".ortgpu-fix-wheels"
"""The directory of the wheels in that of `-d`, until they are unpacked: a name of ours alone."""


def run(request: LibrariesRequest, environ: Mapping[str, str], language: Language) -> int:
    """Write the libraries that an onnxruntime links into the directory of `-d`.

    The rules of every plan choose them. Where nothing works on the machine that is shown, and 3
    returned. Raises Error `usage` without `-d`, those of `gather_inputs`, `find_carried`,
    `LockBuilder.files`, `download_all`, `unpack` and `write_manifest`.
    """
    if request.directory is None:
        raise lacking("download", "-d DIR", "download -d gpu-libraries --libraries")
    asked, into, program = request.plan, Path(request.directory), request.for_
    inputs = gather_inputs(asked, environ)
    carried = find_carried(Path(program), inputs.facts.platform) if program else None
    texts = load_texts("en" if asked.json else language)
    inputs = _for_programs(inputs, carried)
    if like := _like(inputs, carried):
        console.print_notice(texts.label("libraries-like", version=asked.install.ort, like=like))
        options = inputs.options._replace(onnxruntime=f"=={like}")
        inputs = inputs._replace(options=options)
    plan = resolve(inputs.facts, inputs.options, inputs.matrix)
    wheels = library_wheels(plan, inputs.matrix)
    version = carried.version if carried else (like and asked.install.ort) or plan.release
    if not wheels:
        if carried is not None:  # no other will be there
            rejected = tuple(
                rejection for rejection in plan.rejected if rejection.version == version
            )
            plan = plan._replace(rejected=rejected)
        print_plan(plan, inputs, asked, language)
        return VERDICT_EXIT["impossible"]
    maker = lock_builder(
        asked, environ, inputs.options, inputs.matrix, LockPlace(companions=request.directory)
    )
    alone_there = plan._replace(selection=tuple(wheels), requires=())
    pinned = maker.files(group_of_one(alone_there, inputs, inputs.facts))
    with console.progress(texts, quiet=asked.json) as progress:
        paths = download_all(maker.index, pinned, into / PARTS, progress)
        files = unpack(dict(zip((pin.wheel for pin in pinned), paths, strict=True)), into, progress)
    document = {
        "schema": 1,
        "onnxruntime": version,
        "cuda": plan.cuda,
        "platform": inputs.facts.platform.key,
        "wheels": [
            {
                "name": wheel.name,
                "version": wheel.version,
                "file": wheel.file,
                "sha256": wheel.sha256,
            }
            for wheel in wheels
        ],
        "files": [file._asdict() for file in files],
        "matrix": {"date": plan.matrix_date, "digest": plan.matrix_digest},
    }
    write_manifest(into, document)
    shutil.rmtree(into / PARTS, ignore_errors=True)
    if asked.json:
        console.print_json(document)
        return 0
    size = size_of(sum(file.size for file in files))
    console.print_notice(texts.label("downloaded", count=len(files), size=size, folder=into))
    for text in how_found(Path(program) if program else None, into, inputs.facts, texts):
        console.print_result(text)
    return 0


def _for_programs(inputs: PlanInputs, carried: Carried | None) -> PlanInputs:
    """Return the inputs of a plan for a program that is not Python: the machine, and its build."""
    facts, options = machine_of(inputs.facts), inputs.options
    if carried is not None:
        facts = with_carried(facts, carried.version, carried.provider)
        facts = facts._replace(platform=facts.platform._replace(**_system(carried)))
        options = options._replace(onnxruntime=f"=={carried.version or '0'}")
    matrix = matrix_for(inputs.matrix, carried=carried is not None)
    return inputs._replace(facts=facts, options=options, matrix=matrix, target=None)


def _like(inputs: PlanInputs, carried: Carried | None) -> str | None:
    """Return the version that stands for that of `--ort`, where the matrix does not have it."""
    wish = inputs.options.onnxruntime.removeprefix("==")
    if carried is not None:
        return None
    platform, cuda = inputs.facts.platform.key, inputs.options.cuda
    return nearest_version(wish, inputs.matrix, platform, cuda)


def _system(carried: Carried) -> dict[str, Any]:
    return {"system": carried.platform.system, "machine": carried.platform.machine}


def how_found(program: Path | None, into: Path, facts: Facts, texts: Texts) -> Iterator[str]:
    """Yield how the program finds the libraries: what to type on its machine."""
    directory = program.resolve().parent if program and program.is_file() else None
    folder = into.resolve() if facts.platform.system == SYSTEM else into
    if facts.platform.system == "windows":
        if directory == into.resolve():
            return
        yield texts.label("libraries-beside")
        words = ("copy", f"{folder}\\*.dll", str(directory or r"C:\PROGRAM"))
        yield in_shells(words, "windows")
        return
    yield texts.label("libraries-path")
    path = in_shells((str(folder),), "linux")
    yield f'export LD_LIBRARY_PATH={path}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
    if directory and program:
        yield in_shells((str(program.resolve()),), "linux")
