"""Prometheus: metrics in the text format 0.0.4, served at GET /metrics on the loopback address."""

from __future__ import annotations

import errno
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import groupby
from typing import Any, Protocol

from headgate.core.metrics.names import Family, Sample
from headgate.errors import ConflictError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SAMPLE = re.compile(
    r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})?[ \t]+(?P<value>[-+0-9.eE]+)[ \t]*$", re.MULTILINE
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def parse_samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Name, labels and value of each sample in an exposition; what is no finite number is left out."""
    for sample in _SAMPLE.finditer(text):
        labels = dict(_LABEL.findall(sample["labels"] or ""))
        yield sample["name"], labels, float(sample["value"])


def exposition(families: Iterable[Family]) -> str:
    """Each metric with its help and type, then its values.

    Families of one name stand beside each other; they may have different labels, and one head.
    """
    grouped = groupby(families, key=lambda family: family.metric.name)
    return "".join(_metric(tuple(same)) for _, same in grouped)


def _metric(families: Sequence[Family]) -> str:
    metric = families[0].metric
    head = f"# HELP {metric.name} {_help(metric.help)}\n# TYPE {metric.name} {metric.kind}\n"
    lines = (
        f"{metric.name}{_labels(family.metric.labels, sample)} {number(sample[1])}\n"
        for family in families
        for sample in family.samples
    )
    return head + "".join(lines)


def _labels(keys: tuple[str, ...], sample: Sample) -> str:
    pairs = [f'{key}="{_value(value)}"' for key, value in zip(keys, sample[0], strict=True)]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _help(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n")


def _value(words: str) -> str:
    return _help(words).replace('"', '\\"')


def number(value: float) -> str:
    """Whole numbers without a point, so that large counters lose no digit."""
    return str(int(value)) if value == int(value) else repr(float(value))


PATH = "/metrics"
FRESH_SECONDS = 1.0
CLIENT_SECONDS = 5.0
TRIED = 100


class Readings(Protocol):
    """What knows the values now: an engine's store, or a process that counts for itself."""

    def families(self) -> tuple[Family, ...]: ...


class MetricsServer:
    """Serves the readings until closed. One request at a time: a reading is quick and cached."""

    def __init__(self, port: int, readings: Readings) -> None:
        self._page = Page(readings)
        self._server = _bound(port, _handler(self._page.text))
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    def start(self) -> None:
        self._thread.start()

    def _serve(self) -> None:
        # The first reading is of the whole ledger: better now than while a scrape waits.
        with suppress(Exception):
            self._page.text()
        self._server.serve_forever(0.2)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(CLIENT_SECONDS + 1)


def _bound(wanted: int, handler: type[BaseHTTPRequestHandler]) -> HTTPServer:
    """On the wanted port when it is free, else on the next free one; 0 takes any."""
    for port in range(wanted, wanted + TRIED) if wanted else (0,):
        try:
            return HTTPServer(("127.0.0.1", port), handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise ConflictError(f"no free port from {wanted} on", fix="set METRICS_PORT to another")


class Page:
    """The text of the endpoint, made anew at most once a second."""

    def __init__(self, readings: Readings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._readings, self._now = readings, monotonic
        self._made, self._text = float("-inf"), ""

    def text(self) -> str:
        if self._now() - self._made >= FRESH_SECONDS:
            self._text = exposition(self._readings.families())
            self._made = self._now()
        return self._text


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = CLIENT_SECONDS
        server_version = "headgate"
        sys_version = ""

        def do_GET(self) -> None:
            if self.path.partition("?")[0] not in (PATH, "/"):
                self._answer(404, "text/plain; charset=utf-8", f"metrics are at {PATH}\n")
                return
            try:
                page = text()
            except Exception as error:  # a scrape that fails must not look like one of zeros
                self._answer(503, "text/plain; charset=utf-8", f"{type(error).__name__}\n")
            else:
                self._answer(200, CONTENT_TYPE, page)

        def _answer(self, status: int, kind: str, words: str) -> None:
            content = words.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """A scrape every few seconds is no news."""

    return Handler
