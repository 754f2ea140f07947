"""What a metrics agent and a web hook would receive: both listen here, on free ports of their own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

HOST = "127.0.0.1"
LARGEST = 65_535
WAIT_SECONDS = 0.2


class Datagrams:
    """Every datagram that came to a UDP port, as text."""

    def __init__(self, receiving: socket.socket) -> None:
        self._socket = receiving
        self.port = int(cast("tuple[str, int]", receiving.getsockname())[1])
        self.texts: list[str] = []
        self._done = threading.Event()

    def listen(self) -> None:
        self._socket.settimeout(WAIT_SECONDS)
        while not self._done.is_set():
            with suppress(TimeoutError):
                self.texts.append(self._socket.recv(LARGEST).decode())

    def close(self) -> None:
        self._done.set()


class Posts:
    """The body of every request that came to an HTTP port."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.port = int(server.server_port)
        self.bodies: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/metrics"


@contextmanager
def datagrams() -> Generator[Datagrams]:
    """A UDP listener."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiving:
        receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        receiving.bind((HOST, 0))
        found = Datagrams(receiving)
        thread = threading.Thread(target=found.listen, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            found.close()
            thread.join()


@contextmanager
def posts() -> Generator[Posts]:
    """An HTTP server that takes every POST."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            found.bodies.append(self.rfile.read(length))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    found = Posts(server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
