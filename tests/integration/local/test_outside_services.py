"""Services that a profile names and nobody here starts: away is said as such, and not as success."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from headgate.config.settings import Settings
from headgate.core.runtime.ports import any_port
from headgate.local.health import probe_storage

DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"
CONFIG = b'{"defaults": {}, "overrides": {}}'


def headgate(home: Path, *words: str, **environ: str) -> tuple[int, str]:
    """The exit code of a command, and all it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", *words],
        env={**os.environ, "HEADGATE_HOME": str(home), **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """The URL of a server that always answers so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def outside() -> dict[str, str]:
    """A broker of the profile's that is away."""
    return {"BROKER": "kafka", "BOOTSTRAP_SERVERS": f"127.0.0.1:{any_port()}"}


def object_store(url: str) -> dict[str, str]:
    login = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    place = {"WAREHOUSE": "s3a://tables/", "MINIO_ROOT_USER": "u", "MINIO_ROOT_PASSWORD": "p"}
    return {"STORAGE": "minio", "S3_ENDPOINT": url, **place, **login}


def test_up_does_not_succeed_while_the_brokers_profile_is_away(tmp_path, outside):
    home = tmp_path / "home"
    code, text = headgate(home, "local", "up", **outside)
    assert code == 8, text
    assert "away: broker" in text
    assert "env/embedded.env" in text
    assert not (home / "local.json").exists(), "nothing was started"


@pytest.mark.parametrize(("status", "body"), [(404, b"no such page"), (200, b"<html>It works")])
def test_up_does_not_succeed_while_something_else_answers_for_the_storage(tmp_path, status, body):
    with answering(status, body) as url:
        code, text = headgate(tmp_path, "local", "up", **object_store(url))
    assert code == 8, text
    assert "not as an object store does" in text
    assert "env/embedded.env" in text


@pytest.mark.parametrize(
    ("status", "body", "healthy"),
    [(404, b"no such page", False), (200, b"<html>It works", False), (403, DENIED, True)],
)
def test_validation_takes_only_an_object_store_for_one(tmp_path, status, body, healthy):
    with answering(status, body) as url:
        named = {"storage": "minio", "warehouse": "s3a://tables/", "s3_endpoint": url}
        login = {"minio_root_user": "u", "minio_root_password": "p"}
        settings = Settings.model_validate({"root": tmp_path, "home": tmp_path, **named, **login})
        found = probe_storage(settings)
    assert (found.name, found.ok) == ("storage", healthy)


def test_health_asks_the_storage_and_the_catalog(tmp_path):
    with answering(403, DENIED) as storage, answering(200, CONFIG) as catalog:
        rest = {"CATALOG": "rest", "CATALOG_URI": catalog}
        code, text = headgate(tmp_path, "local", "health", **object_store(storage), **rest)
        assert "storage:" not in text
        assert "catalog:" not in text
        assert (code, "away: broker, engine" in text) == (8, True)
        wrong = object_store(catalog) | {"CATALOG": "rest", "CATALOG_URI": storage}
        code, text = headgate(tmp_path, "local", "health", **wrong)
        assert "away: broker, engine, storage, catalog" in text
        assert "not as an Iceberg REST catalog does" in text
    code, text = headgate(tmp_path, "local", "health", **object_store(storage), **rest)
    assert "away: broker, engine, storage, catalog" in text


def test_a_broker_that_is_away_is_told_where_there_is_no_home(tmp_path, outside):
    bootstrap = outside["BOOTSTRAP_SERVERS"]
    for environ in (outside, {"BOOTSTRAP_SERVERS": bootstrap}):
        code, text = headgate(tmp_path / "none", "local", "health", **environ)
        assert code == 8, text
        assert f"broker: {bootstrap} does not answer" in text


def test_local_up_is_not_advised_for_a_broker_that_it_does_not_start(tmp_path, outside):
    code, text = headgate(tmp_path, "topics", "create", **outside)
    assert code == 8, text
    assert "headgate local up" not in text
    assert "BOOTSTRAP_SERVERS" in text
