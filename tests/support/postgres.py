"""Databases of an embedded PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from headgate.feeds.events.database import Place, connect
from headgate.local.postgres import DATABASE, USER, PostgresServer
from headgate.local.process import LOOPBACK

ROOT = Path(__file__).parents[2]


def place_in(server: PostgresServer) -> Place:
    """Where clients reach the server's events database."""
    return Place(LOOPBACK, server.port, USER, DATABASE, server.password)


def create_ops_store(server: PostgresServer, name: str) -> str:
    """Create a database of this name, and return its URL as an ops store."""
    place = place_in(server)
    with connect(place) as connection:
        connection.autocommit = True
        connection.execute(f"CREATE DATABASE {name}".encode())
    password = quote(place.password or "", safe="")
    return f"postgresql+psycopg://{place.user}:{password}@{place.host}:{place.port}/{name}"


def query_rows(place: Place, statement: str) -> list[tuple]:
    """The rows that a statement returns."""
    with connect(place) as connection:
        return connection.execute(statement.encode()).fetchall()
