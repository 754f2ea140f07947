"""Asks a Cassandra node whether it takes requests, and its name, without a driver."""

from __future__ import annotations

import socket
import struct

from headgate.local.process import LOOPBACK

PROTOCOL = 4
RESPONSE = 0x80 | PROTOCOL
STARTUP, READY, AUTHENTICATE, QUERY, RESULT = 0x01, 0x02, 0x03, 0x07, 0x08
CONSISTENCY_ONE = 0x0001
ROWS = 2
LARGEST_ANSWER = 65_536
HEADER = struct.Struct(">BBhBi")
CLUSTER_NAME = "SELECT cluster_name FROM system.local"


def answers(port: int, limit: float = 1.0, host: str = LOOPBACK) -> bool:
    """Whether a node opens a CQL connection here, or asks who wants one."""
    try:
        with socket.create_connection((host, port), timeout=limit) as connection:
            return _start(connection) in (READY, AUTHENTICATE)
    except OSError:
        return False


def cluster_name(port: int, limit: float = 1.0, host: str = LOOPBACK) -> str | None:
    """The name of the cluster whose node answers here; None without an answer or a login."""
    try:
        with socket.create_connection((host, port), timeout=limit) as connection:
            if _start(connection) != READY:
                return None
            query = CLUSTER_NAME.encode()
            body = struct.pack(">i", len(query)) + query + struct.pack(">HB", CONSISTENCY_ONE, 0)
            opcode, answer = _ask(connection, QUERY, body)
            return _only_value(answer) if opcode == RESULT else None
    except (OSError, struct.error, UnicodeDecodeError):
        return None


def _start(connection: socket.socket) -> int | None:
    return _ask(connection, STARTUP, _text_map({"CQL_VERSION": "3.0.0"}))[0]


def _ask(connection: socket.socket, opcode: int, body: bytes) -> tuple[int | None, bytes]:
    """Send one frame; the answer's opcode and body, no opcode when it is no answer in CQL."""
    connection.sendall(HEADER.pack(PROTOCOL, 0, 0, opcode, len(body)) + body)
    head = _exactly(connection, HEADER.size)
    if len(head) < HEADER.size:
        return None, b""
    version, _, _, answered, size = HEADER.unpack(head)
    if version != RESPONSE or not 0 <= size <= LARGEST_ANSWER:
        return None, b""
    return answered, _exactly(connection, size)


def _only_value(result: bytes) -> str | None:
    """The text of a result with one row of one column; the value stands at its very end."""
    kind, _, columns = struct.unpack_from(">iii", result)
    if kind != ROWS or columns != 1:
        return None
    at = struct.calcsize(">iii")
    for _ in range(3):  # keyspace, table, column
        at += 2 + int(struct.unpack_from(">H", result, at)[0])
    at += 2  # the column's type
    rows, size = struct.unpack_from(">ii", result, at)
    at += struct.calcsize(">ii")
    return result[at : at + size].decode() if rows == 1 and size >= 0 else None


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
