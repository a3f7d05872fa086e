"""Every verdict, in every output and language: text, JSON, times and page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from pages import Shown, read, with_gpu
from smoke_said import (
    ABSENT,
    BUILD,
    END,
    IMPORTED,
    IMPORTING,
    INFERRING,
    NO_LIBCUDA,
    NUMPY,
    ON_CPU,
    ON_GPU,
    START,
    driver,
    failed,
    library,
    model,
    needed,
)

from ortgpu_fix.cli.commands import verify as command
from ortgpu_fix.guests.bench import command as bench_command
from ortgpu_fix.messages.catalog import Language, load_texts
from ortgpu_fix.utils.process import Finished
from ortgpu_fix.verify.verification import VerificationVerdict

MODEL = Path(__file__).parents[1] / "models/loop.onnx"
Rows = Sequence[dict[str, Any]]
RAN = (START, driver(), IMPORTING, BUILD, needed())
TORCH = {"event": "torch-found", "version": "2.10.0", "cuda": "12.8"}
NO_TORCH = {"event": "torch", "error": "ImportError: libcudnn.so.9", "unavailable": None}
LACKING = "libcublasLt.so.12"
PROVEN: dict[VerificationVerdict, Rows] = {
    "works": (*RAN, *ON_GPU, END),
    "no-gpu": (START, driver("12.2", 100), IMPORTING, BUILD, needed(), INFERRING),
    "no-driver": (START, NO_LIBCUDA, IMPORTING, BUILD, needed(), INFERRING),
    "driver-too-old": (START, driver("11.4"), IMPORTING, BUILD, needed(), INFERRING),
    "library-missing": (*RAN[:-1], needed(library(LACKING, ABSENT)), *ON_CPU, END),
    "cpu-fallback": (*RAN, *ON_CPU, END),
    "other-provider": ({**START, "provider": "Tensorrt"}, *RAN[1:], *ON_GPU, END),
    "wrong-result": (*RAN, model("conv", "Conv CUDA", deviation=0.5), *ON_GPU[1:], END),
    "crashed": (*RAN, failed("conv", "CUDA failure 700: an illegal access"), *ON_GPU[1:], END),
    "torch-conflict": (START, driver(), TORCH, IMPORTING, BUILD, needed(), *ON_GPU, END),
}
"""What `smoke` says where it proves this. With torch, onnxruntime alone is all right."""


def lines(rows: Rows) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def small_models(verdict: VerificationVerdict) -> Callable[..., Finished]:
    """Stand for the process that runs the small models, alone and beside torch."""

    def run(argv: Sequence[str], **_: Any) -> Finished:
        ended = -11 if PROVEN[verdict][-1] == INFERRING else 0
        rows = [*PROVEN[verdict]]
        if any(word.startswith("--torch") for word in argv):
            rows.insert(-1, NO_TORCH if "--torch=last" in argv else {**NO_TORCH, "error": None})
            rows.insert(-1, {"event": "torch-run", "product": 0.0, "convolution": 0.0})
        return Finished(tuple(argv), ended, lines(rows), "")

    return run


def own_model(*, gpu: bool, change: Callable[[Any], Any] = lambda row: row) -> Any:
    """Stand for the process that runs and times the model, which was recorded."""

    def listen(argv: Sequence[str], *, hear: Callable[[str], None], **_: Any) -> Finished:
        place = not json.loads(argv[-1])["seconds"]
        name = "silero-vad-place-1.31.1" if place else "rapidocr-cls-time-1.31.1"
        rows = [json.loads(line) for line in read(name).splitlines()]
        rows = [change(row) for row in (with_gpu(rows) if gpu else rows)]
        said = lines([row for row in rows if row])
        for line in said.splitlines():
            hear(line)
        return Finished(tuple(argv), 0 if rows[-1] else -11, said, "\x1b[31mthe last words\n")

    return listen


def on_the_cpu(row: Any) -> Any:
    """A session without the GPU's provider."""
    return {**row, "providers": ["CPUExecutionProvider"]} if row["event"] == "session" else row


def on_the_gpu(row: Any) -> Any:
    """A profile of which every node ran there."""
    if row["event"] != "profile":
        return row
    gpu = "CUDAExecutionProvider"
    return {**row, "events": [{**each, "provider": gpu} for each in row["events"]]}


def deviating(row: Any) -> Any:
    if row["event"] != "outputs":
        return row
    return {**row, "outputs": [{**each, "deviation": 0.5} for each in row["outputs"]]}


def ending(row: Any) -> Any:
    return row if row["event"] not in {"profile", "loaded", "end"} else None


ENVIRONMENTS = [
    pytest.param(verdict, own_model(gpu=verdict == "works", change=on_the_gpu), verdict, id=verdict)
    for verdict in ("works", "no-gpu", "library-missing", "crashed")
]
OWN = [
    pytest.param("works", own_model(gpu=True, change=on_the_cpu), "cpu-fallback", id="own-cpu"),
    pytest.param("works", own_model(gpu=True, change=deviating), "wrong-result", id="own-wrong"),
    pytest.param("works", own_model(gpu=True, change=ending), "crashed", id="own-crashed"),
    pytest.param("no-gpu", own_model(gpu=False, change=ending), "crashed", id="cpu-crashed"),
]


@pytest.fixture
def proven(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def stand(verdict: VerificationVerdict, listener: Any = None) -> None:
        small = small_models(verdict)

        def run(argv: Sequence[str], **more: Any) -> Finished:
            return (listener if "hear" in more else small)(argv, **more)

        for module in (command, bench_command):
            monkeypatch.setattr(module, "run_process", run)

    return stand


@pytest.mark.parametrize("verdict", PROVEN)
def test_the_small_models_in_words_and_as_json(
    verdict: VerificationVerdict, proven: Any, venv: Path, tmp_path: Path
) -> None:
    proven(verdict)
    language: Language = "en"
    texts, env = load_texts(language), {"ORTGPU_FIX_LANG": language}

    said = run_here("verify", "--python", str(venv), cwd=tmp_path, env=env)
    told = run_here("verify", "--python", str(venv), "--json", cwd=tmp_path, env=env)

    assert said.returncode == told.returncode == (0 if verdict == "works" else 6), said.stderr
    assert json.loads(told.stdout)["verdict"] == verdict
    assert json.loads(told.stdout)["evidence"][0] == f"environment: {venv}"
    assert f"  environment: {venv}\n" in said.stdout
    headline = texts.table["verdicts"][verdict]["text"][language].partition("{")[0]
    assert said.stdout.count(headline) == 1
    assert "{" not in said.stdout
    hint = texts.table["verdicts"][verdict]["hint"][language]
    if "{command}" in hint:
        assert f"`ortgpu-fix --python {venv}`" in said.stdout


@pytest.mark.parametrize(("verdict", "listener", "wanted"), [*ENVIRONMENTS, *OWN])
def test_a_model_in_words_as_json_timed_and_on_a_page(  # noqa: PLR0917 - a table, and fixtures
    verdict: VerificationVerdict,
    listener: Any,
    wanted: VerificationVerdict,
    proven: Any,
    venv: Path,
    tmp_path: Path,
) -> None:
    proven(verdict, listener)
    language: Language = "en"
    texts, page = load_texts(language), tmp_path / "page.html"
    argv = ("verify", str(MODEL), "--bench", "--report", str(page), "--python", str(venv))
    env = {"ORTGPU_FIX_LANG": language}

    said = run_here(*argv, cwd=tmp_path, env=env)
    told = run_here(*argv, "--json", cwd=tmp_path, env=env)

    assert said.returncode == told.returncode == (0 if wanted == "works" else 6), said.stderr
    own = verdict == "works" or wanted == "crashed" != verdict
    document = json.loads(told.stdout)
    assert (document["verdict"], document["model"]["verdict"]) == (wanted, wanted)
    timed = not (own and wanted == "crashed")
    assert ("bench" in document) is ("advice" in document) is timed
    row = texts.table["verdicts"][f"model-{wanted}" if own else wanted]
    parts = re.split(r"\{\w+\}", row["text"][language])
    headline = next(part for part in parts if part.strip())
    shown = Shown(page.read_text("utf-8"))
    for text in (said.stdout, shown.text):
        assert "{count}" not in text
        assert text.count(headline.strip()) == 1, text
    if wanted == "crashed" and own:
        assert "it printed last: the last words" in said.stdout
        assert "it printed last: the last words" in shown.text
    elif wanted == "crashed":  # the page is read without what the terminal said
        for text in (said.stdout, shown.text):
            assert text.count("CUDA failure 700: an illegal access") == 1, text


@pytest.mark.parametrize(
    ("build", "note"),
    [({"error": "ImportError: no", "whole": False}, "import-failed"), ({}, "numpy-too-new")],
)
def test_a_model_is_not_run_where_no_model_can_be(
    build: dict[str, Any],
    note: str,
    venv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(argv: Sequence[str], **more: Any) -> Finished:
        assert "hear" not in more, "the model was run"
        ran = [START, driver(), {**BUILD, **build}, *([] if build else [INFERRING])]
        log = "" if build else NUMPY.format(IMPORTED)
        return Finished(tuple(argv), 0 if build else -11, lines(ran), log)

    for module in (command, bench_command):
        monkeypatch.setattr(module, "run_process", run)
    argv = ("verify", str(MODEL), "--python", str(venv))
    env = {"ORTGPU_FIX_LANG": "en"}

    said = run_here(*argv, cwd=tmp_path, env=env)
    told = run_here(*argv, "--json", cwd=tmp_path, env=env)

    text = load_texts("en").verdict(note, (("version", "2.2.6"),))
    assert said.stdout.splitlines().count(f"  {text}") == 1
    assert [row["code"] for row in json.loads(told.stdout)["model"]["notes"]] == [note]
    assert said.returncode == told.returncode == 6


def test_what_was_measured_is_told_where_the_page_cannot_be_written(
    proven: Any, venv: Path, tmp_path: Path
) -> None:
    """Its folder was there before the measuring, which takes a minute."""
    folder = tmp_path / "pages"
    folder.mkdir()
    recorded = own_model(gpu=True, change=on_the_gpu)

    def listener(*arguments: Any, **more: Any) -> Any:
        folder.rmdir()
        proven("works", recorded)
        return recorded(*arguments, **more)

    proven("works", listener)
    argv = ("verify", str(MODEL), "--report", str(folder / "page.html"), "--python", str(venv))

    done = run_here(*argv, "--json", cwd=tmp_path, env={"ORTGPU_FIX_LANG": "en"})

    assert done.returncode == 7
    assert "error: " in done.stderr
    assert str(folder) in done.stderr
    assert json.loads(done.stdout)["verdict"] == "works"
