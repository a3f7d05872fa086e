"""`verify MODEL.onnx` and `verify --bench`: the user's own model, measured in the environment.

Shell, and thin. Raises the Errors of what it calls, `shape-syntax` and `shape-counts`, and, before
anything is measured, `file-unwritable`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ...cli import console
from ...cli.command_line import texts_for, typed_command
from ...cli.commands.verify import VerifiedEnvironment, verify_environment
from ...cli.flags import PROVIDERS
from ...cli.machine import with_unknown_releases
from ...cli.options import plan_options_of
from ...cli.requests import InstallOptions, PlanRequest
from ...data_files import DATA
from ...errors import Error, cause
from ...facts.model import Facts
from ...facts.redact import redact as redact_text
from ...matrix.load import add_torch, load_matrix
from ...messages.catalog import Language, load_texts
from ...messages.sections import Row, Section
from ...report.verification import verification_sections
from ...utils.files import check_place
from ...utils.process import run as run_process
from .guest import BenchRequest
from .model_report import without_run
from .model_runner import Measured, MeasuringPlace, run_model

OWN_MODEL = DATA / "bench.onnx"
"""What is measured where no model is given: a small convolutional network for any image."""
INTERRUPTED = 130
UNUSABLE = frozenset({"import-failed", "gutted", "numpy-too-new", "runtime-too-old"})
"""Notes of an environment whose onnxruntime cannot run any model."""


def run(request: BenchRequest, environ: Mapping[str, str], language: Language) -> int:
    """Run real inference with a model, and say what ran where.

    Raises as `verify_environment`.
    """
    if request.verify.provider != PROVIDERS[0]:
        clash = f"--provider {request.verify.provider}, MODEL.onnx, --bench"
        raise Error("flags-clash", flags=clash)
    read_shapes(request.shape)  # a mistake is reported before anything takes time
    for model in request.words:
        if not Path(model).is_file():
            raise Error("model-unreadable", file=model, problem=cause("file-absent"))
    if request.report:
        check_place(Path(request.report))
    about = verify_environment(request.verify, environ, language, with_torch=False)
    return _verify_model(request, environ, language, about)


def _verify_model(
    request: BenchRequest,
    environ: Mapping[str, str],
    language: Language,
    about: VerifiedEnvironment,
) -> int:
    """Run the user's model, print what came of it, and write the page; that last: it may fail."""
    from .report import bench_sections, model_sections

    _, target, verification = about
    asked, model = request.verify, next(iter(request.words), None)
    redact = partial(redact_text, home=environ.get("HOME") or environ.get("USERPROFILE"))
    texts = load_texts(language)
    with console.progress(texts, quiet=asked.json) as progress:
        place = MeasuringPlace(
            target=Path(target.executable),
            model=Path(model or OWN_MODEL).resolve(),
            shown=redact(str(model or OWN_MODEL.name)),
            shapes=read_shapes(request.shape),
            ignored=asked.ignore_gpu,
            environ=environ,
            runner=run_process,
            progress=progress,
        )
        usable = not UNUSABLE & {note.code for note in verification.notes}
        measured = (
            run_model(place, verification, bench=request.bench)
            if usable
            else Measured(without_run(verification, place.shown))
        )
    report, bench, advice = measured.report, measured.bench, measured.advice
    command = typed_command(asked.options)
    sections = model_sections(report, texts, command) if usable else ()
    if bench is not None and advice is not None:
        sections += bench_sections(bench, advice, texts)
    if verification.verdict != "works":
        first, *others = verification_sections(verification, texts, command=command)
        sections = (first, *sections, *others)
    if asked.json:
        document = {**verification.to_json(), "verdict": report.verdict, "model": report.to_json()}
        if bench is not None and advice is not None:
            document |= {"bench": bench.to_json(), "advice": advice.to_json()}
        console.print_json(_redacted(document, redact))
    else:
        console.print_sections(sections)
    if request.report:
        try:
            _write_page(request, about, measured, sections, redact, language)
        except Error as error:
            failed = texts.error(error)
            console.print_error(failed, texts, as_json=False)
            return failed.exit_code
    if measured.interrupted:
        return INTERRUPTED
    return 0 if report.verdict == "works" else 6


def _write_page(  # noqa: PLR0917
    request: BenchRequest,
    about: VerifiedEnvironment,
    measured: Measured,
    sections: Sequence[Section],
    redact: Callable[[str], str],
    language: Language,
) -> None:
    """Write the page that `--report` asks for, with the plan and versions of what computes here.

    Raises Error `file-unwritable`.
    """
    from ...report.plan import machine_section
    from ...resolve.resolver import resolve
    from .page import render, times_by_row

    found, target, verification = about
    texts = texts_for(request.verify.options, language)
    matrix = add_torch(load_matrix(torch=False))
    found = with_unknown_releases(found, target, matrix)
    install = InstallOptions(ignore_gpu=request.verify.ignore_gpu)
    options = plan_options_of(PlanRequest(install=install))
    plan = resolve(found, options, matrix, unlocking=False)
    pairs = [(texts.summary(finding), texts.remedy(finding)) for finding in plan.findings]
    said = [" – ".join(filter(None, pair)) for pair in pairs]
    loaded = verification.libraries if verification.verdict == "works" else ()  # else listed before
    more = {
        "page-findings": [Row(text=line) for line in said or [texts.label("page-no-findings")]],
        "page-versions": [
            Row(*library) for library in _versions(found, measured.report.onnxruntime)
        ],
        "loaded": [Row(head=library.name, text=library.path) for library in loaded],
    }
    added = [Section(heading=texts.label(key), rows=tuple(rows)) for key, rows in more.items()]
    machine = machine_section(found, texts)._replace(heading=texts.label("machine"))
    page = render(
        [*sections, machine, *added],
        times_by_row(measured.report, measured.bench, texts),
        texts,
        title=texts.label("page-title", model=measured.report.file),
        made=console.made_today(texts),
        redact=redact,
    )
    console.write_file(request.report, page, texts)


def _versions(found: Facts, release: str | None) -> list[tuple[str, str]]:
    """Return the versions of what computes here."""
    named = re.compile(r"onnxruntime|nvidia-|numpy$|torch$|cuda")
    rows = [
        (package.name, package.version) for package in found.packages if named.match(package.name)
    ]
    if release and not any(version == release for _, version in rows):
        rows.insert(0, ("onnxruntime", release))
    return [("Python", found.python.version), *rows]


def read_shapes(given: Sequence[str]) -> list[dict[str, list[int]]]:
    """Return the shapes of each run: `x=1x3x8x8` twice are two, one of another input is in both.

    Raises Error `shape-syntax` or `shape-counts`.
    """
    by_name: dict[str, list[list[int]]] = {}
    for text in given:
        name, equals, sizes = text.rpartition("=")
        if not equals or not name or not re.fullmatch(r"([0-9]{1,9}(x[0-9]{1,9})*)?", sizes):
            raise Error("shape-syntax", text=text)
        by_name.setdefault(name, []).append([int(size) for size in sizes.split("x") if size])
    count = max((len(each) for each in by_name.values()), default=0)
    if any(len(each) not in {1, count} for each in by_name.values()):
        counts = ", ".join(f"{name}: {len(each)}" for name, each in by_name.items())
        raise Error("shape-counts", counts=counts)
    return [
        {name: each[min(number, len(each) - 1)] for name, each in by_name.items()}
        for number in range(count)
    ]


def _redacted(document: object, redact: Callable[[str], str]) -> object:
    """Return a JSON document in which no text shows a home."""
    if isinstance(document, str):
        return redact(document)
    if isinstance(document, dict):
        return {key: _redacted(value, redact) for key, value in document.items()}
    if isinstance(document, list):
        return [_redacted(value, redact) for value in document]
    return document
