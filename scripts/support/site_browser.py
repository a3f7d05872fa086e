"""The site in a headless Chromium, driven by Playwright: what it asks for, says and answers."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
"""The browser of the system; Playwright's own is not fetched."""
ENDS = re.compile("Done|完成|marked|标出|could not|无法")
SECONDS = 120
MENUS = {
    "system": "linux-x86_64",
    "driver": "535.104.12",
    "gpus": "NVIDIA A100-SXM4-80GB",
    "python": "3.11",
}
"""What is chosen where the outputs do not show it."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder as `python -m http.server` does; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser."""
    driver: Playwright
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Asking:
    """The page that answers, in one language, and all that it asked for and complained of."""

    def __init__(self, browser: Browser, base: str, language: str = "en") -> None:
        """Open the page."""
        self.base = base
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page: Page = browser.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(base + ("" if language == "en" else "zh/"))

    @property
    def elsewhere(self) -> list[str]:
        """What was asked of other places than the site."""
        own = (self.base, f"blob:{self.base}", "data:")
        return [url for url in self.requests if not url.startswith(own)]

    def answer(self, text: str) -> dict[str, str]:
        """Return the documents that the page gives for a text, by name."""
        self.page.locator("form").evaluate("form => form.reset()")
        self.page.fill("textarea", text)
        self.submit()
        return self.files()

    def complete(
        self, menus: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Fill in the marked fields; return that, and the documents."""
        filled: dict[str, str] = {}
        for fact, value in {**MENUS, **menus}.items():
            label = self.page.locator(f"label[data-fact={fact}].needed")
            if not label.count():
                continue
            if fact == "driver":
                label.locator("input").fill(value)
            else:
                label.locator("select").select_option(value)
            filled[fact] = value
        self.submit()
        return filled, self.files()

    def submit(self, button: str = "button[type=submit]") -> None:
        """Press a button, and wait for the answer."""
        status = self.page.locator("#status")
        self.page.evaluate("() => { document.getElementById('status').textContent = ''; }")
        self.page.click(button)
        status.filter(has_text=ENDS).wait_for(timeout=SECONDS * 1000)

    def files(self) -> dict[str, str]:
        """Return the documents that the page offers, by name."""
        found: dict[str, str] = {}
        for link in self.page.locator("#files a").all():
            with self.page.expect_download() as download:
                link.click()
            name = download.value.suggested_filename
            found[name] = Path(download.value.path()).read_text("utf-8")
        return found
