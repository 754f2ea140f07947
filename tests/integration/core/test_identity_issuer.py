"""Keys that an issuer serves: read once, read again for a new one, and said to be away."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from tests.support.api_server import FILTER, run_api

from headgate.core.identity import authentication as tokens
from headgate.core.identity.authentication import AWAY_SECONDS, Issuer, KeySetAtUrl, TokenVerifier
from headgate.errors import UnauthenticatedError, UnavailableError

ISSUER = "https://issuer.example"


class KeyServer:
    """What an issuer's /keys does."""

    def __init__(self) -> None:
        self.keys: dict[str, rsa.RSAPrivateKey] = {}
        self.reads = 0
        self.add("one")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.reads += 1
                body = json.dumps({"keys": [outer.public(kid) for kid in outer.keys]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"

    def add(self, kid: str) -> None:
        self.keys[kid] = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def public(self, kid: str) -> dict[str, Any]:
        made = RSAAlgorithm.to_jwk(self.keys[kid].public_key(), as_dict=True)
        return {**made, "kid": kid, "alg": "RS256", "use": "sig"}

    def token(self, kid: str = "one", **other: Any) -> str:
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": "headgate", "sub": "Zoe", "exp": now + 600, **other}
        return jwt.encode(claims, self.keys[kid], "RS256", headers={"kid": kid})


@pytest.fixture
def issuer() -> Iterator[KeyServer]:
    made = KeyServer()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def verifier(url: str) -> TokenVerifier:
    return TokenVerifier(Issuer(ISSUER, "headgate", ("RS256",)), KeySetAtUrl(url))


def test_the_keys_are_read_once_and_kept(issuer: KeyServer) -> None:
    checks = verifier(issuer.url)
    for _ in range(5):
        assert checks.identify(issuer.token(roles=["viewer"])).roles == {"viewer"}
    assert issuer.reads == 1


def test_unknown_keys_do_not_make_us_ask_the_issuer_again_and_again(issuer: KeyServer) -> None:
    checks = verifier(issuer.url)
    checks.identify(issuer.token())
    issuer.keys["ghost"] = issuer.keys["one"]
    token = issuer.token("ghost")
    del issuer.keys["ghost"]
    for _ in range(5):
        with pytest.raises(UnauthenticatedError):
            checks.identify(token)
    assert issuer.reads <= 2


def test_an_issuer_that_does_not_answer_is_away_and_not_a_refusal(
    issuer: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, fetch, now = list[float](), jwt.PyJWKClient.fetch_data, [0.0]

    def counted(client: jwt.PyJWKClient) -> Any:
        asked.append(now[0])
        return fetch(client)

    monkeypatch.setattr(jwt.PyJWKClient, "fetch_data", counted)
    monkeypatch.setattr(tokens, "time", SimpleNamespace(monotonic=lambda: now[0]))
    token = issuer.token()
    issuer.server.shutdown()
    issuer.server.server_close()
    checks = verifier(issuer.url)
    with pytest.raises(UnavailableError) as away:
        checks.identify(token)
    assert token not in away.value.one_line
    for at in range(1000):
        now[0] = (AWAY_SECONDS + 1) * at / 1000
        with pytest.raises(UnavailableError):
            checks.identify(token)
    # It is asked once, and once more when it may have come back.
    assert asked == [0.0, pytest.approx(AWAY_SECONDS, abs=0.02)]


def test_somebody_with_a_token_is_the_same_person_as_with_a_key(
    issuer: KeyServer, tmp_path: Path
) -> None:
    with run_api(tmp_path, jwt_issuer=ISSUER, jwt_audience="headgate", jwt_jwks=issuer.url) as api:
        url = f"{api.url}/api/v1/filters"

        def post(path: str, token: str, body: dict[str, Any]) -> httpx.Response:
            headers = {"Authorization": f"Bearer {token}"}
            return httpx.post(url + path, json=body, headers=headers, trust_env=False, timeout=120)

        author = issuer.token(roles=["author"])
        made = post("", author, FILTER)
        assert (made.status_code, made.json()["author"]) == (201, "zoe")
        yes = {"revision": made.json()["revision"]}
        approver = issuer.token(roles=["approver"], sub="ZOE")
        refused = post(f"/{FILTER['id']}/approve", approver, yes)
        assert (refused.status_code, refused.json()["code"]) == (403, "HG-7001")
        roleless = issuer.token(sub="mallory")
        assert post(f"/{FILTER['id']}/approve", roleless, yes).status_code == 403
        expired = issuer.token(roles=["approver"], sub="bob", exp=int(time.time()) - 60)
        assert post(f"/{FILTER['id']}/approve", expired, yes).status_code == 401
        assert httpx.get(url, trust_env=False, timeout=120).status_code == 401
        other = issuer.token(roles=["approver"], sub="Yann")
        assert post(f"/{FILTER['id']}/approve", other, yes).json()["approvedBy"] == "yann"
