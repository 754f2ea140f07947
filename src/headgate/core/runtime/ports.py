"""Find a port that is free on the loopback address of this machine."""

from __future__ import annotations

import socket
from collections.abc import Collection

from headgate.errors import ConflictError

LOOPBACK = "127.0.0.1"
PORTS_TRIED = 100


def port_is_free(port: int) -> bool:
    """Whether a server could listen here; connections that linger do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def choose_port(wanted: int, name: str, *, taken: Collection[int] = (), exact: bool = False) -> int:
    """The wanted port when it is free, else the next free one; 0 asks for any."""
    if wanted == 0:
        return any_port(taken)
    tries = 1 if exact else PORTS_TRIED
    for port in range(wanted, min(wanted + tries, 65536)):
        if port not in taken and port_is_free(port):
            return port
    raise ConflictError(
        f"port {wanted} is in use",
        why=f"{name} is {wanted} and another program or stack has it"
        + ("" if exact else f", and on the {tries - 1} ports after it"),
        fix=f"stop that program, or set {name} to a free port",
    )


def any_port(taken: Collection[int] = ()) -> int:
    """A port that nobody uses now."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
