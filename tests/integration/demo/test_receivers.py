"""What the demo listens with keeps everything that comes."""

from __future__ import annotations

import socket
import time
import urllib.request
from collections.abc import Callable

from headgate.demo.quality.counts import datagrams, posts


def test_the_receivers_keep_what_they_get() -> None:
    with datagrams() as agent, posts() as hook:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"dq_a:5|c", ("127.0.0.1", agent.port))
        asked = urllib.request.Request(hook.url, data=b'{"a": 1}', method="POST")
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 204
        assert hook.bodies == [b'{"a": 1}']
        waited_until(lambda: bool(agent.texts))
    assert agent.texts == ["dq_a:5|c"]


def waited_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
