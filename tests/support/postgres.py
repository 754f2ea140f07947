"""What tests on PostgreSQL share: databases of their own on the session's server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headgate.core.runtime.ports import LOOPBACK
from headgate.filters.events.database import Place, connect
from headgate.local.postgres import DATABASE, USER, PostgresServer

ROOT = Path(__file__).parents[2]


def place_in(server: PostgresServer) -> Place:
    """Where clients reach the server's events database."""
    return Place(LOOPBACK, server.port, USER, DATABASE, server.password)


def create_database(server: PostgresServer, name: str) -> Place:
    """Create an empty database of this name; where clients find it."""
    with connect(place_in(server)) as connection:
        connection.autocommit = True
        connection.execute(f"CREATE DATABASE {name}".encode())
    return replace(place_in(server), database=name)


def create_ops_store(server: PostgresServer, name: str) -> str:
    """The URL of an ops store in a new database of this name."""
    place = create_database(server, name)
    password = quote(place.password or "", safe="")
    return f"postgresql+psycopg://{place.user}:{password}@{place.host}:{place.port}/{name}"


def settings_of(place: Place) -> dict[str, Any]:
    """The settings by which the product finds this database."""
    return {
        "postgres_host": place.host,
        "postgres_port": place.port,
        "postgres_db": place.database,
        "postgres_password": place.password,
    }


def query_rows(place: Place, statement: str) -> list[tuple]:
    """The rows that a statement returns."""
    with connect(place) as connection:
        return connection.execute(statement.encode()).fetchall()
