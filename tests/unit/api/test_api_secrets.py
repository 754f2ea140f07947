"""Canaries: what is secret stands in no log, answer, metric or audit entry (N8)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.support.api_client import FILTER, FILTERS, ONE, open_api_client

from headgate.core.identity.api_keys import KeyStore

CANARY = "canary-7f3a91"
PASSWORDS = {
    "postgres_password": f"{CANARY}-postgres",
    "confluent_cloud_api_secret": f"{CANARY}-confluent",
    "minio_root_password": f"{CANARY}-minio",
    "api_key": f"{CANARY}-api-key",
    "connect_token": f"{CANARY}-token",
}


def test_no_secret_leaves_through_any_door(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (None, "headgate.api", "headgate.api.access"):
        caplog.set_level(logging.DEBUG, logger=name)
    said: list[str] = []
    with open_api_client(tmp_path, **PASSWORDS) as api:
        secret = api.create_key("ann", "author", "auditor")
        other = api.create_key("bob", "approver")
        kept = api.store.part(KeyStore).every()
        bad = f"hg_{kept[0].id}_{CANARY}{'x' * 29}"
        token = f"eyJhbGciOiJub25lIn0.{CANARY}.x"

        def told(*asked_for: object, **more: object) -> None:
            answer = api(*asked_for, **more)  # type: ignore[arg-type]
            said.append(answer.text + repr(dict(answer.headers)))

        told("POST", FILTERS, "ann", json=FILTER)
        told("POST", FILTERS, "ann", json={**FILTER, "conditions": []})
        for words in (bad, token, secret[:-1], "x" * 10_000):
            told("GET", FILTERS, headers={"Authorization": f"Bearer {words}"})
            told("GET", FILTERS, headers={"X-API-Key": words})
        told("GET", f"{FILTERS}?key={CANARY}", "ann")
        told("POST", f"{ONE}/approve", "bob", json={"revision": CANARY, "password": CANARY})
        told("POST", f"{ONE}/validate", "bob", content=CANARY, headers={"Content-Type": "a/b"})
        told(
            "POST",
            FILTERS,
            "ann",
            content=f'{{"{CANARY}',
            headers={"Content-Type": "application/json"},
        )
        told("GET", "/metrics", "ann")
        told("GET", "/api/v1/audit", "ann")
        told("GET", "/readyz")

        def broken(*_: object) -> None:
            raise RuntimeError("inside")

        monkeypatch.setattr(api.service, "get", broken)
        told("GET", ONE, "ann")
    # The client of this test logs its own URLs; a server never does.
    logged = "\n".join(
        caplog.handler.format(record) for record in caplog.records if record.name != "httpx"
    )
    assert "headgate.api.access" in logged
    everything = "\n".join(said) + logged
    for hidden in (secret, other, secret[16:], other[16:], *(key.hash for key in kept), token, bad):
        assert hidden not in everything
    assert CANARY not in "\n".join(said).replace(f'"pointer":"/{CANARY}', "")
    assert CANARY not in logged


def test_settings_and_keys_do_not_print_themselves(tmp_path: Path) -> None:
    with open_api_client(tmp_path, **PASSWORDS) as api:
        secret = api.create_key("ann", "author")
        assert CANARY not in repr(api.app.state.served.settings)
        assert secret not in repr(api.store.part(KeyStore).every())
        assert CANARY not in repr(api.app.state.served)
