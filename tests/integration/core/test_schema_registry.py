"""The client against a real registry, one that is away, and one that comes back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from headgate.core.kafka.codecs import FramedReader, FramedWriter, subject_of
from headgate.core.kafka.schema_registry import (
    TRIES,
    RegistryClient,
    Schema,
    UnreadableError,
    framed,
)
from headgate.core.runtime.ports import any_port
from headgate.errors import ConflictError, ForbiddenError, OperationError, UnavailableError
from headgate.local.registry import RegistryServer
from headgate.local.service import Running


def record(*fields: dict[str, object]) -> Schema:
    return Schema(json.dumps({"type": "record", "name": "Hash", "fields": list(fields)}))


PK: dict[str, object] = {"name": "pk", "type": "string"}
HASH: dict[str, object] = {"name": "hash_cloud", "type": ["null", "string"], "default": None}
VERSION: dict[str, object] = {"name": "hash_version", "type": "int"}
AVRO = record(PK, HASH)
JSON = Schema(
    '{"type": "object", "properties": {"pk": {"type": "string"}}, "required": ["pk"]}', "JSON"
)


@pytest.fixture
def client(registry: Running[RegistryServer]) -> RegistryClient:
    return RegistryClient(registry.service.url)


def test_values_go_round_by_avro_and_by_json_schema(client: RegistryClient) -> None:
    reader = FramedReader(RegistryClient(client._url))
    avro = FramedWriter(client, subject_of("topic2"), AVRO)
    plain = FramedWriter(client, subject_of("topic1"), JSON)
    values = [{"pk": "1", "hash_cloud": "ab"}, {"pk": "é", "hash_cloud": None}]
    assert [reader.read(avro.write(value)).value for value in values] == values
    assert reader.read(plain.write({"pk": "1", "more": [1]})).value == {"pk": "1", "more": [1]}
    assert {"topic1-value", "topic2-value"} <= set(client.subjects())


def test_another_registry_on_its_port_is_not_taken_for_it(
    registry: Running[RegistryServer], tmp_path: Path
) -> None:
    assert registry.service.is_own()
    assert not RegistryServer(tmp_path, port=registry.service.port).is_own()


def test_a_schema_keeps_its_id(client: RegistryClient) -> None:
    first = client.register("kept", AVRO)
    again = RegistryClient(client._url)
    assert again.register("kept", AVRO) == first
    found = again.schema(first)
    assert found is not None
    assert json.loads(found.text) == json.loads(AVRO.text)
    assert found.kind == "AVRO"
    latest = again.latest("kept")
    assert latest is not None
    assert (latest.version, latest.id) == (1, first)


def test_a_version_that_readers_could_not_follow_is_refused(client: RegistryClient) -> None:
    client.register("moving", AVRO)
    client.set_compatibility("BACKWARD", "moving")
    assert client.compatibility("moving") == "BACKWARD"
    worse, better = record(PK, HASH, VERSION), record(PK, HASH, {**VERSION, "default": 2})
    assert not client.compatible("moving", worse)
    assert client.compatible("moving", better)
    with pytest.raises(ConflictError, match="does not fit the versions of moving"):
        client.register("moving", worse)
    client.register("moving", better)
    assert client.versions("moving") == (1, 2)


def test_what_the_registry_does_not_know_is_told(client: RegistryClient) -> None:
    assert client.schema(987_654) is None
    assert client.latest("nowhere") is None
    assert client.versions("nowhere") == ()
    assert client.compatible("nowhere", AVRO)
    with pytest.raises(UnreadableError, match="id 987654"):
        FramedReader(client).read(framed(987_654, b"x"))
    with pytest.raises(OperationError, match="refused the request"):
        client.register("broken", Schema('{"type": "recor"}'))


def test_what_was_read_once_needs_no_registry(registry: Running[RegistryServer]) -> None:
    client = RegistryClient(registry.service.url, pause=lambda _: None)
    writer = FramedWriter(client, "away-value", JSON)
    sent, reader = writer.write({"pk": "1"}), FramedReader(client)
    reader.read(sent)
    registry.kill()
    try:
        assert reader.read(sent).value == {"pk": "1"}
        assert writer.write({"pk": "2"})[:5] == sent[:5]
        with pytest.raises(UnavailableError, match="does not answer"):
            reader.read(framed(4_711, b"{}"))
    finally:
        registry.restart()
    assert RegistryClient(registry.service.url).schema(int.from_bytes(sent[1:5])) == JSON


@contextmanager
def answering(*answers: tuple[int, object]) -> Iterator[tuple[str, list[str | None]]]:
    """A server with these answers, one after another; the last for ever. It notes who asked."""
    left, seen = list(answers), list[str | None]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = left.pop(0) if len(left) > 1 else left[0]
            seen.append(self.headers.get("Authorization"))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_registry_that_stumbles_is_asked_again_with_longer_pauses() -> None:
    pauses: list[float] = []
    with answering((503, {}), (500, {}), (200, ["a"])) as (host, seen):
        client = RegistryClient(f"http://{host}", pause=pauses.append)
        assert client.subjects() == ("a",)
    assert len(seen) == 3
    assert pauses == sorted(pauses)
    assert len(pauses) == 2


def test_a_registry_that_is_away_is_told_with_what_to_do() -> None:
    pauses: list[float] = []
    client = RegistryClient(f"http://127.0.0.1:{any_port()}", pause=pauses.append)
    with pytest.raises(UnavailableError) as away:
        client.subjects()
    assert len(pauses) == TRIES - 1
    assert "SCHEMA_REGISTRY_URL" in away.value.fix
    assert away.value.retryable


def test_a_password_goes_into_the_header_and_into_no_message() -> None:
    with answering((401, {"message": "no"})) as (host, seen):
        client = RegistryClient(f"http://me:canary@{host}")
        with pytest.raises(ForbiddenError) as refused:
            client.subjects()
    assert seen == ["Basic bWU6Y2FuYXJ5"]
    assert "canary" not in refused.value.one_line
