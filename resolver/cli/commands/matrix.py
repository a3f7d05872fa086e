"""Show what the matrix holds, and where each row comes from."""

from __future__ import annotations

from collections.abc import Mapping

from ...data_files import load_table
from ...errors import Error
from ...facts.model import GPU_BUILD
from ...matrix.load import load_matrix, matrix_table
from ...messages.catalog import Language, load_texts
from ...report import matrix as report
from ...report import supported
from ...versions import numbers
from .. import console
from ..described import read_machine
from ..matrix_files import forget_user_rows
from ..requests import MatrixRequest


def run(asked: MatrixRequest, environ: Mapping[str, str], language: Language) -> int:
    """Show all releases, one of them, or what runs on a GPU and a driver.

    With `--forget` drop what `--update` has added for this user.

    Raises Error `usage` for a release that the matrix does not hold, `wish-driver` and `wish-gpu`.
    """
    if asked.forget:
        return _forget(asked, environ, language)
    known, texts = load_matrix(torch=False), load_texts("en" if asked.json else language)
    rows, floors = matrix_table("onnxruntime")["build"], load_table("drivers")["floor"]
    version = "".join(asked.words).removeprefix(GPU_BUILD).lstrip("= ")
    if version:
        document = report.release_json(known, rows, floors, version)
        sections = report.release_sections(known, rows, floors, version, texts)
        if document is None:
            unknown = Error("release-unknown", version=version)
            if not numbers(version):
                unknown = Error("argument-unknown", given=version)
            raise Error("usage", problem=unknown)
    elif asked.driver is not None and asked.gpu is not None:
        read = read_machine(asked.driver, asked.gpu)
        gpus = tuple(gpu.compute_capability or "" for gpu in read.gpus)
        document = supported.runs_json(known, read.driver, gpus, texts)
        sections = supported.runs_sections(known, read.driver, gpus, texts)
    else:
        document = report.overview_json(known)
        sections = report.overview_sections(known, texts)
    if asked.json:
        console.print_json(document)
    else:
        console.print_sections(sections)
    return 0


def _forget(asked: MatrixRequest, environ: Mapping[str, str], language: Language) -> int:
    file = forget_user_rows(environ)
    if asked.json:
        console.print_json({"schema": 1, "forgotten": None if file is None else str(file)})
    else:
        label = "matrix-nothing-kept" if file is None else "matrix-forgotten"
        console.print_result(load_texts(language).label(label, file=file))
    return 0
