"""A headless Chromium, driven over its debugging pipe with nothing but the standard library."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Browser:
    """One page in a browser of its own; `events` is all that it told."""

    def __init__(self, folder: Path) -> None:
        assert PROGRAM
        to_browser, ours = os.pipe()
        theirs, from_browser = os.pipe()

        def place() -> None:  # the pipe is expected at 3 and 4
            one, two = os.dup(to_browser), os.dup(from_browser)
            os.dup2(one, 3)
            os.dup2(two, 4)

        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        profile = f"--user-data-dir={folder}"
        self._process = subprocess.Popen(
            [PROGRAM, *flags, profile, "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place,  # noqa: PLW1509 - no threads yet
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._write = os.fdopen(ours, "wb", buffering=0)
        self._read = os.fdopen(theirs, "rb", buffering=0)
        self._number = 0
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        [page] = [
            row
            for row in self.call("Target.getTargets", "")["targetInfos"]
            if row["type"] == "page"
        ]
        attach = {"targetId": page["targetId"], "flatten": True}
        self._session = self.call("Target.attachToTarget", "", **attach)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Security"):
            self.call(f"{domain}.enable")

    def call(self, method: str, session: str | None = None, /, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is None:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = self._read.read(1 << 20)
            assert more, "the browser is gone"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def open(self, file: Path, *, width: int, height: int, dark: bool) -> None:
        """Open a file on a screen of this size."""
        self.events.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=file.as_uri())
        for _ in range(200):
            if self.evaluate("document.readyState + location.protocol") == "completefile:":
                return
            time.sleep(0.05)
        raise AssertionError("the page does not load")

    def evaluate(self, code: str) -> Any:
        """Return the value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def close(self) -> None:
        """End it, with all that it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._write.close()
        self._read.close()
