"""The page in a real browser: how it fits, what it asks for, whether it can be read and used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import PROGRAM, Browser
from pages import HOSTILE, page

from ortgpu_fix.messages.catalog import LANGUAGES, Language

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="needs Chromium"),
]
CONTRASTS = """
(() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(
      v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = node => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("main *")) {
    const own = [...node.childNodes].some(each => each.nodeType === 3 && each.data.trim());
    if (!own) continue;
    const [one, two] = [parse(getComputedStyle(node).color), behind(node)].map(light);
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    found.push([ratio, node.tagName, node.textContent.slice(0, 30)]);
  }
  return found.sort((a, b) => a[0] - b[0]);
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("width", "dark"), [(360, False), (1280, True)])
def test_it_fits_is_legible_and_asks_for_nothing(
    browser: Browser, tmp_path: Path, language: Language, width: int, *, dark: bool
) -> None:
    file = tmp_path / "page.html"
    file.write_text(page(language, name=HOSTILE), "utf-8")

    browser.open(file, width=width, height=800, dark=dark)

    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.documentElement.lang") in {"en", "zh-CN"}
    lowest = browser.evaluate(CONTRASTS)
    assert len(lowest) > 50
    assert lowest[0][0] >= 4.5, lowest[:3]
    dim = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dim == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    told = [row["method"] for row in browser.events]
    assert "Runtime.exceptionThrown" not in told
    assert "Runtime.consoleAPICalled" not in told
    logged = [row["params"] for row in browser.events if row["method"] == "Log.entryAdded"]
    assert not logged
    asked = [
        row["params"]["request"]["url"]
        for row in browser.events
        if row["method"] == "Network.requestWillBeSent"
    ]
    assert set(asked) <= {file.as_uri(), "data:,"}
