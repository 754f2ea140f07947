"""What tests on PostgreSQL share: a server of their own, and the place that clients ask."""

from __future__ import annotations

from pathlib import Path

from headgate.feeds.events.database import Place, connect
from headgate.local.postgres import DATABASE, USER, PostgresServer
from headgate.local.process import LOOPBACK

ROOT = Path(__file__).parents[2]


def place_in(server: PostgresServer) -> Place:
    return Place(LOOPBACK, server.port, USER, DATABASE, server.password)


def rows(place: Place, statement: str) -> list[tuple]:
    with connect(place) as connection:
        return connection.execute(statement.encode()).fetchall()
