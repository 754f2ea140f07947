"""Headless Chromium, driven over a pipe by the DevTools protocol: no server, no port, no further package."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 240
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# The contrast ratio, by WCAG, of the text that a selector (`%s`) picks against the page.
CONTRAST = """(() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const words = light(getComputedStyle(document.querySelector('%s')).color);
  const ground = light(getComputedStyle(document.body).backgroundColor);
  return (Math.max(words, ground) + 0.05) / (Math.min(words, ground) + 0.05);
})()"""


def chromium() -> str:
    """The path of Chromium; without one the test is skipped, and fails in CI."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None and os.environ.get("CI") == "true":
        pytest.fail("Chromium is not installed: `make setup-system` installs it")
    if found is None:
        pytest.skip("Chromium is not installed: `make setup-system` installs it")
    return found


@dataclass
class Page:
    """A page, with the DevTools events since it was opened."""

    browser: Browser
    session: str
    events: list[dict[str, Any]] = field(default_factory=list)

    def open(self, file: Path, *, dark: bool = False, width: int = 1200) -> None:
        self.events.clear()
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        loader = self.call("Page.navigate", url=file.as_uri())["loaderId"]
        # Of this page: that of the page before, or of the empty one, may come only now.
        self.browser.until(lambda: loader in self._loaded())

    def call(self, method: str, **params: object) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def run(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    @property
    def requests(self) -> list[str]:
        """The URLs that the page requested, without its own."""
        sent = [e["params"]["request"]["url"] for e in self._of("Network.requestWillBeSent")]
        return sent[1:]

    @property
    def complaints(self) -> list[str]:
        """Console messages, log entries and uncaught exceptions of the page."""
        logged = [e["params"]["entry"]["text"] for e in self._of("Log.entryAdded")]
        said = [str(e["params"]) for e in self._of("Runtime.consoleAPICalled")]
        return logged + said + [str(e["params"]) for e in self._of("Runtime.exceptionThrown")]

    def _of(self, method: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["method"] == method]

    def _loaded(self) -> list[str]:
        told = [event["params"] for event in self._of("Page.lifecycleEvent")]
        return [one["loaderId"] for one in told if one["name"] == "load"]


class Browser:
    """The DevTools connection: JSON messages, each ended by a zero byte, over two pipes."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._left = to, back, b""
        self._number, self._answers = 0, dict[int, dict[str, Any]]()
        self._pages = dict[str, Page]()

    def new_page(self) -> Page:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.call("Page.setLifecycleEventsEnabled", enabled=True)
        return page

    def call(self, method: str, session: str | None = None, **params: object) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        self.until(lambda: number in self._answers)
        answer = self._answers.pop(number)
        assert "error" not in answer, answer
        return answer["result"]

    def until(self, true: Any) -> None:
        limit = time.monotonic() + SECONDS
        while not true():
            ready, _, _ = select.select([self._back], [], [], max(0, limit - time.monotonic()))
            assert ready, "Chromium did not answer"
            read = os.read(self._back, 1 << 20)
            assert read, "Chromium ended"
            *whole, self._left = (self._left + read).split(b"\0")
            for text in whole:
                self._take(json.loads(text))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
        elif message.get("sessionId") in self._pages:
            self._pages[message["sessionId"]].events.append(message)


@contextmanager
def start_browser(profile: Path) -> Iterator[Browser]:
    """Start Chromium, which reads commands from descriptor 3 and answers on 4; end it with the block."""
    command = [chromium(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    # Numbers above those that the child gets, so that none is overwritten.
    first = (*os.pipe(), *os.pipe())
    pipes = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in first]
    for end in first:
        os.close(end)
    theirs_in, ours_out, ours_in, theirs_out = pipes

    def hand_over() -> None:
        os.dup2(theirs_in, 3)
        os.dup2(theirs_out, 4)

    child = subprocess.Popen(
        command,
        preexec_fn=hand_over,
        close_fds=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Browser(ours_out, ours_in)
    finally:
        child.terminate()
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for end in pipes:
            os.close(end)
