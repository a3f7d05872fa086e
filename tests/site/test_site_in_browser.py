"""The site in a real browser answers as the command line does, byte for byte, and asks nobody."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from site_pages import ROOT

from ortgpu_fix.messages.catalog import LANGUAGES, Language
from support import site_browser
from support.site_browser import CHROMIUM, Asking, chromium, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.online,
    pytest.mark.skipif(
        CHROMIUM is None or shutil.which("npm") is None,
        reason="the site in a browser needs Chromium and npm",
    ),
]
LOG = ROOT / "tests" / "cases" / "logs" / "cudnn-9-missing.txt"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    out = tmp_path_factory.mktemp("served")
    spec = importlib.util.spec_from_file_location("write_site", ROOT / "scripts" / "site.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.call(sys.executable, script.PAGES, out)
    script.write_program(Path(sys.executable), out / "python")
    with served(out) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def printed(folder: Path, *argv: str) -> str:
    """Return what the command line prints."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONUTF8": "1"}
    words = [sys.executable, "-m", "ortgpu_fix", *argv]
    done = subprocess.run(words, cwd=folder, env=environ, capture_output=True, check=False)
    assert done.returncode in {0, 1, 3}, done.stderr
    return done.stdout.decode()


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_answers_as_the_command_line_does(
    browser: Any, base: str, tmp_path: Path, language: Language
) -> None:
    asking = Asking(browser, base, language)
    began = time.monotonic()
    asking.answer(LOG.read_text("utf-8"))
    first = time.monotonic() - began
    filled, files = asking.complete()
    log = tmp_path / "log.txt"
    log.write_text(LOG.read_text("utf-8"), "utf-8")

    facts = tmp_path / "facts.json"
    facts.write_text(files["facts.json"], "utf-8")

    assert filled == site_browser.MENUS
    assert files["explain.json"] == printed(tmp_path, "explain", str(log), "--text-only", "--json")
    assert files["plan.json"] == printed(tmp_path, "--facts", str(facts), "--json")
    machine = json.loads(files["facts.json"])
    assert machine["driver"]["version"] == "535.104.12"
    assert [gpu["compute_capability"] for gpu in machine["gpus"]] == ["8.0"]
    assert asking.page.inner_text("#commands pre").startswith("ortgpu-fix ")
    assert asking.elsewhere == asking.complaints == []
    assert first < site_browser.SECONDS


OUTPUTS = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 535.104.12    Driver Version: 535.104.12    CUDA Version: 12.2     |
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile   |
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:00:04.0 Off |            0 |
+-----------------------------------------------------------------------------+
"""


def test_outputs_are_a_machine_and_the_form_completes_it(
    browser: Any, base: str, tmp_path: Path
) -> None:
    asking = Asking(browser, base)
    asking.answer(OUTPUTS)
    filled, files = asking.complete()
    log, facts = tmp_path / "log.txt", tmp_path / "facts.json"
    log.write_text(OUTPUTS, "utf-8")
    facts.write_text(files["facts.json"], "utf-8")
    flags = ("--platform", "linux-x86_64", "--python", "3.11")

    assert filled == {"system": "linux-x86_64", "python": "3.11"}
    assert files["facts.json"] == printed(tmp_path, "facts", "--from-text", str(log), *flags)
    assert files["plan.json"] == printed(tmp_path, "--facts", str(facts), "--json")


def test_the_worker_reaches_its_own_site_alone(browser: Any, base: str) -> None:
    """The policy of the page holds in what it starts, too."""
    asking = Asking(browser, base)
    reached = asking.page.evaluate(
        """() => new Promise(done => {
          const source = `
            self.addEventListener("securitypolicyviolation", each => {
              postMessage(each.effectiveDirective);
            });
            self.onmessage = () => fetch("http://127.0.0.1:1/", {mode: "no-cors"})
              .catch(() => setTimeout(postMessage, 5000, "no policy forbade it"));`;
          const blob = new Blob([source], {type: "text/javascript"});
          const worker = new Worker(URL.createObjectURL(blob));
          worker.onerror = error => done(error.message);
          worker.onmessage = ({data}) => done(data);
          worker.postMessage(1);
        })"""
    )

    assert reached == "connect-src"


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1280, True)])
def test_pages_fit_and_complain_of_nothing(
    browser: Any, base: str, width: int, *, dark: bool
) -> None:
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    for where in ("", "ort/", "zh/ort/1.26.0/", "error/cudnn-9-missing/", "exit/3/", "doc/guide/"):
        page.goto(base + where)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, where
    assert said == []
    page.close()


def test_the_filter_leaves_what_runs(browser: Any, base: str) -> None:
    page = browser.new_page()
    page.goto(base + "ort/?driver=535&system=linux_x86_64&gpu=8.0")
    shown = page.locator("tr[data-runs]:visible a").all_inner_texts()
    assert "1.26.0" in shown
    assert "1.31.1" not in shown
    assert page.inner_text("#count").startswith(f"{len(shown)} ")

    page.select_option("select[name=driver]", "580")
    assert "driver=580" in page.url
    assert "1.31.1" in page.locator("tr[data-runs]:visible a").all_inner_texts()
    page.close()
