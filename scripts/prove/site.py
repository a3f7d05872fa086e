"""Prove that the site answers as the command line does, asks nobody, and can be read by everybody.

    python scripts/prove/site.py SITE [--machines 200] [--threads 40] [--audits NODE_MODULES]

SITE is what `scripts/site.py` wrote. In Debian's Chromium, driven by Playwright, the outputs of
three machines, the newest threads of tests/cases/threads.txt, the recorded machines and random
ones of tests/support/random_machines.py are pasted, in both languages: each document must be what
the command line prints, byte for byte, no request may leave the site, and the console stays empty.
Pictures are made of three widths in two schemes (`--pictures DIR`).
`--audits`: a folder `node_modules` with axe-core and lighthouse, which look at the pages too. The
dated result goes to scripts/prove/results/; the exit code is 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, given, seed, settings
from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from random_machines import Document, documents

from ortgpu_fix.__main__ import main as run_main
from ortgpu_fix.data_files import example_machine
from support.site_browser import CHROMIUM, Asking, chromium, served

ROOT = Path(__file__).resolve().parents[2]
THREADS = ROOT / "tests" / "cases" / "threads.txt"
CAPTURES = ROOT / "tests" / "captures"
WIDTHS = (360, 1280, 2560)
PAGES = ("", "ort/", "ort/1.26.0/", "error/", "error/cudnn-9-missing/", "exit/3/", "doc/guide/")
LOOKUPS = PAGES[1:]
LEAST = 90
"""Of Lighthouse's performance, of the look-up pages."""
FLAGS = {"system": "--platform", "python": "--python"}
FIVE = {
    "the image tagger": """['AzureExecutionProvider', 'CPUExecutionProvider']
Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*, and the latest \
MSVC runtime.
Error loading "C:\\venv\\Lib\\site-packages\\onnxruntime\\capi\\onnxruntime_providers_cuda.dll" \
which depends on "cublas64_12.dll" which is missing.

Package     Version
----------- -------
onnxruntime 1.22.1
""",
    "the container": """Failed to load library libonnxruntime_providers_cuda.so with error: \
libcudnn.so.9: cannot open shared object file: No such file or directory
Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*
['TensorrtExecutionProvider', 'CUDAExecutionProvider', 'CPUExecutionProvider']
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 535.104.12    Driver Version: 535.104.12    CUDA Version: 12.4     |
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile   |
|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:00:10.0 Off |            0 |
+-----------------------------------------------------------------------------+
onnxruntime-gpu==1.19.2
""",
    "a new card": """RuntimeError: CUDA error: no kernel image is available for execution on \
the device
name, driver_version, compute_cap
NVIDIA GeForce RTX 5060, 581.29, 12.0
torch==2.5.1+cu121
""",
}
"""What three people would paste whose machines the tests record."""


def printed(*argv: str) -> str:
    """Return what the command line prints."""
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    environ = {"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir(), "LANG": "C.UTF-8"}
    with (
        mock.patch.dict(os.environ, environ, clear=True),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        run_main(argv)
    said.seek(0)
    return said.read()


def threads(count: int) -> dict[str, str]:
    """Return the newest threads by their addresses."""
    parts = re.split(
        r"^# (http\S+) \| ([\d-]+) .*\n", THREADS.read_text("utf-8"), flags=re.MULTILINE
    )
    rows = sorted(zip(parts[2::3], parts[1::3], parts[3::3], strict=True), reverse=True)
    return {address: text for _, address, text in rows[:count]}


def machines(count: int, number: int) -> list[Document]:
    """Return random machines."""
    found: list[Document] = []

    @seed(number)
    @settings(
        max_examples=count, suppress_health_check=list(HealthCheck), database=None, deadline=None
    )
    @given(documents())
    def draw(document: Document) -> None:
        found.append(document)

    draw()
    return found[:count]


class Proof:
    """What is asked of the page, and what was wrong."""

    def __init__(self, work: Path) -> None:
        """Begin."""
        self.work = work
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.seconds: list[float] = []

    def text(self, asking: Asking, name: str, text: str) -> None:
        """Paste a text, choose what it does not show, and compare all documents."""
        files = asking.answer(text)
        filled: dict[str, str] = {}
        if asking.page.locator("label.needed").count():
            filled, files = asking.complete()
        log, facts = self.work / "log.txt", self.work / "facts.json"
        log.write_text(text, "utf-8")
        compared: list[tuple[str, tuple[str, ...]]] = [
            ("explain.json", ("explain", str(log), "--text-only", "--json"))
        ]
        if "facts.json" in files:
            facts.write_text(files["facts.json"], "utf-8")
            compared.append(("plan.json", ("--facts", str(facts), "--json")))
            if not filled.keys() & {"driver", "gpus"}:
                flags = [word for fact in filled for word in (FLAGS[fact], filled[fact])]
                compared.append(("facts.json", ("facts", "--from-text", str(log), *flags)))
        for document, argv in compared:
            self.same(name, document, files.get(document), printed(*argv))

    def facts(self, asking: Asking, name: str, document: Document) -> None:
        """Paste a facts file, and compare the plan."""
        text = json.dumps(document)
        facts = self.work / "facts.json"
        facts.write_text(text, "utf-8")
        began = time.monotonic()
        files = asking.answer(text)
        self.seconds.append(time.monotonic() - began)
        self.same(
            name, "plan.json", files.get("plan.json"), printed("--facts", str(facts), "--json")
        )

    def same(self, name: str, document: str, page: str | None, here: str) -> None:
        """Compare a document, byte for byte."""
        self.seen[document] += 1
        if page != here:
            self.wrong.append(f"{name}: {document}: {(page or 'none')[:300]!r}")
            print("FAIL", self.wrong[-1], flush=True)

    def quiet(self, asking: Asking) -> None:
        """Hold what the page asked for and complained of against nothing."""
        self.wrong += [f"asked {url}" for url in asking.elsewhere]
        self.wrong += [f"console: {text}" for text in asking.complaints]
        asking.page.close()


def measure(browser: Browser, base: str) -> dict[str, dict[str, float]]:
    """Return of each page its bytes and the milliseconds until it shows."""
    found: dict[str, dict[str, float]] = {}
    for where in PAGES:
        page = browser.new_page()
        page.goto(base + where)
        timing = page.evaluate(
            """() => new Promise((done) => {
              const [one] = performance.getEntriesByType("navigation");
              new PerformanceObserver((list) => {
                const [paint] = list.getEntriesByName("first-contentful-paint");
                if (paint) {
                  done({bytes: one.decodedBodySize, shown_ms: Math.round(paint.startTime)});
                }
              }).observe({type: "paint", buffered: true});
            })"""
        )
        found[where or "ask"] = timing
        page.close()
    return found


def picture(browser: Browser, base: str, folder: Path) -> None:
    """Take a picture of pages at three widths, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            for where in ("ort/", "error/cudnn-9-missing/", "zh/"):
                page.goto(base + where)
                name = where.strip("/").replace("/", "-")
                page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
            page.close()


def axe(browser: Browser, base: str, modules: Path) -> list[str]:
    """Return what axe-core finds wrong, light and dark, in both languages."""
    script = (modules / "axe-core" / "axe.min.js").read_text("utf-8")
    found: list[str] = []
    for scheme in ("light", "dark"):
        context = browser.new_context(bypass_csp=True, color_scheme=scheme)
        page = context.new_page()
        for where in (*PAGES, *(f"zh/{each}" for each in PAGES if not each.startswith("doc"))):
            page.goto(base + where)
            page.add_script_tag(content=script)
            for row in page.evaluate("async () => (await axe.run()).violations"):
                nodes = [node["html"][:120] for node in row["nodes"][:3]]
                found.append(f"{where} {scheme}: {row['id']}: {row['help']}: {nodes}")
        context.close()
    return found


def lighthouse(base: str, modules: Path) -> dict[str, dict[str, int]]:
    """Return Lighthouse's scores."""
    found: dict[str, dict[str, int]] = {}
    for where in LOOKUPS:
        words = ["--quiet", "--output=json", "--chrome-flags=--headless --no-sandbox"]
        words.append("--only-categories=performance,accessibility,best-practices,seo")
        done = subprocess.run(
            [str(modules / ".bin" / "lighthouse"), base + where, *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "CHROME_PATH": str(CHROMIUM)},
        )
        if done.returncode:
            found[where] = {"failed": done.returncode}
            print(done.stderr[-500:], flush=True)
            continue
        rows = json.loads(done.stdout)["categories"]
        found[where] = {name: round(100 * (row["score"] or 0)) for name, row in rows.items()}
        print(where, found[where], flush=True)
    return found


def main() -> int:
    """Ask, measure, look, and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--threads", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--audits", type=Path)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--results", type=Path, default=ROOT / "scripts" / "prove" / "results")
    arguments = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("Chromium is needed: apt install chromium")
    program = [each.stat().st_size for each in (arguments.site / "python").iterdir()]
    result: dict[str, Any] = {"bytes of the program": sum(program)}
    with (
        tempfile.TemporaryDirectory() as work,
        served(arguments.site) as base,
        chromium() as browser,
    ):
        result["chromium"] = browser.version
        proof = Proof(Path(work))
        began = time.monotonic()
        asking = Asking(browser, base)
        proof.facts(asking, "the example", example_machine())  # type: ignore[arg-type]
        result["seconds to the first answer"] = round(time.monotonic() - began, 1)
        proof.seconds.clear()
        pasted = {**FIVE, **threads(arguments.threads)}
        for number, (name, text) in enumerate(pasted.items()):
            proof.text(asking, name, text)
            print(number + 1, "of", len(pasted), name, flush=True)
        for recorded in sorted(CAPTURES.glob("*/facts.json")):
            proof.facts(asking, recorded.parent.name, json.loads(recorded.read_text("utf-8")))
        for number, document in enumerate(machines(arguments.machines, arguments.seed)):
            proof.facts(asking, f"machine {number}", document)
        proof.quiet(asking)
        chinese = Asking(browser, base, "zh")
        for name, text in FIVE.items():
            proof.text(chinese, f"{name}, zh", text)
        proof.quiet(chinese)
        result["documents compared"] = dict(proof.seen)
        answers = sorted(proof.seconds) or [0.0]
        result["seconds of a plan"] = {
            "median": round(answers[len(answers) // 2], 2),
            "longest": round(answers[-1], 2),
        }
        if arguments.pictures:
            picture(browser, base, arguments.pictures)
        if arguments.audits:
            proof.wrong += axe(browser, base, arguments.audits)
            result["lighthouse"] = lighthouse(base, arguments.audits)
            proof.wrong += [
                f"lighthouse {where}: {scores}"
                for where, scores in result["lighthouse"].items()
                if scores.get("performance", 0) < LEAST
            ]
    result["wrong"] = proof.wrong
    day = dt.datetime.now(tz=dt.timezone.utc).date()
    arguments.results.mkdir(parents=True, exist_ok=True)
    file = arguments.results / f"site-{day}.json"
    file.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(result, indent=2, ensure_ascii=False))
    return 1 if proof.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
