"""Asks a Cassandra node whether it takes requests, without a driver: one frame there, one back."""

from __future__ import annotations

import socket
import struct

from headgate.local.process import LOOPBACK

PROTOCOL = 4
RESPONSE = 0x80 | PROTOCOL
STARTUP, READY, AUTHENTICATE = 0x01, 0x02, 0x03
HEADER = struct.Struct(">BBhBi")


def answers(port: int, limit: float = 1.0, host: str = LOOPBACK) -> bool:
    """Whether a node opens a CQL connection here, or asks who wants one."""
    body = _text_map({"CQL_VERSION": "3.0.0"})
    try:
        with socket.create_connection((host, port), timeout=limit) as connection:
            connection.sendall(HEADER.pack(PROTOCOL, 0, 0, STARTUP, len(body)) + body)
            head = _exactly(connection, HEADER.size)
    except OSError:
        return False
    if len(head) < HEADER.size:
        return False
    version, _, _, opcode, _ = HEADER.unpack(head)
    return version == RESPONSE and opcode in (READY, AUTHENTICATE)


def _text_map(pairs: dict[str, str]) -> bytes:
    return struct.pack(">H", len(pairs)) + b"".join(
        _text(part) for pair in pairs.items() for part in pair
    )


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack(">H", len(raw)) + raw


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (part := connection.recv(size - len(found))):
        found += part
    return found
