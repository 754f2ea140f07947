"""Tokens: only those of the issuer, for us, signed with a key pair, not expired."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from headgate.config.settings import Settings
from headgate.core.identity.authentication import (
    Issuer,
    KeyInFile,
    KeySetAtUrl,
    KeySetInFile,
    TokenVerifier,
    verifier_of,
)
from headgate.core.identity.roles import person
from headgate.errors import SettingsError, UnauthenticatedError
from headgate.filters.control.approvals import is_among

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
ISSUER = Issuer("https://issuer.example", "headgate", ("RS256", "ES256"))


def pem(private: rsa.RSAPrivateKey) -> bytes:
    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def claims(**other: Any) -> dict[str, Any]:
    now = int(time.time())
    usual = {"iss": ISSUER.name, "aud": "headgate", "sub": "ann", "iat": now, "exp": now + 300}
    return {k: v for k, v in {**usual, "roles": ["author"], **other}.items() if v is not None}


def signed(key: Any = RSA, alg: str = "RS256", kid: str | None = "one", **other: Any) -> str:
    return jwt.encode(claims(**other), key, alg, headers={"kid": kid} if kid else None)


def part(values: Mapping[str, Any]) -> bytes:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=")


def by_hand(alg: str, secret: bytes, header: Mapping[str, Any] | None = None) -> str:
    """What a library refuses to write for us."""
    words = part({"alg": alg, "typ": "JWT", "kid": "one", **(header or {})}) + b"." + part(claims())
    signature = hmac.new(secret, words, hashlib.sha256).digest() if secret else b""
    return (words + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> TokenVerifier:
    file = tmp_path_factory.mktemp("keys") / "jwks.json"
    keys = [
        {**RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "one", "alg": "RS256"},
        {**ECAlgorithm.to_jwk(CURVE.public_key(), as_dict=True), "kid": "two", "alg": "ES256"},
        {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"s" * 32).decode()},
    ]
    file.write_text(json.dumps({"keys": keys}))
    return TokenVerifier(ISSUER, KeySetInFile(file))


def test_a_token_gives_name_and_roles(verifier: TokenVerifier) -> None:
    found = verifier.identify(signed())
    assert (found.name, found.roles, found.key_id) == ("ann", {"author"}, "")
    assert verifier.identify(signed(CURVE, "ES256", "two")).name == "ann"


def test_roles_that_we_do_not_know_are_left_out(verifier: TokenVerifier) -> None:
    roles = ["author", "superuser", 7, "ADMIN", None]
    assert verifier.identify(signed(roles=roles)).roles == {"author"}
    assert verifier.identify(signed(roles="viewer author")).roles == {"viewer", "author"}
    for odd in (None, 5, {"admin": True}, []):
        assert verifier.identify(signed(roles=odd)).roles == frozenset()


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (lambda: signed(iss="https://other.example"), "another issuer"),
        (lambda: signed(aud="somebody"), "somebody else"),
        (lambda: signed(aud=None), "lacks"),
        (lambda: signed(exp=int(time.time()) - 31), "expired"),
        (lambda: signed(exp=None), "lacks"),
        (lambda: signed(sub=None), "lacks"),
        (lambda: signed(nbf=int(time.time()) + 300), "not hold yet"),
        (lambda: signed(OTHER), "signature"),
        (lambda: signed(kid="unknown"), "no token"),
        (lambda: signed(kid=None), "no token"),
        (lambda: signed(RSA, "RS512"), "algorithm"),
        (lambda: signed(b"s" * 32, "HS256", "shared"), "algorithm"),
        (lambda: by_hand("none", b""), "algorithm"),
        (lambda: by_hand("None", b""), "algorithm"),
        (lambda: by_hand("HS256", pem(RSA)), "algorithm"),
        (lambda: by_hand("RS256", pem(RSA)), "signature"),
        (lambda: by_hand("RS256", b"", {"jwk": {"kty": "oct", "k": "AA"}}), "signature"),
        (lambda: signed()[:-4] + "AAAA", "signature"),
        (lambda: "a" * 9000, "too long"),
    ],
)
def test_a_token_that_does_not_hold_is_refused(
    verifier: TokenVerifier, token: Any, why: str
) -> None:
    made = token()
    with pytest.raises(UnauthenticatedError) as refused:
        verifier.identify(made)
    assert why in refused.value.why
    assert made not in refused.value.one_line


@pytest.mark.parametrize("sub", ["", "a" * 201, "ann\n", "an\x00n", 7, ["ann"]])
def test_a_subject_that_is_no_name_is_refused(verifier: TokenVerifier, sub: Any) -> None:
    made = claims()
    made["sub"] = sub
    body = part({"alg": "RS256", "kid": "one"}) + b"." + part(made)
    signature = RSAAlgorithm(RSAAlgorithm.SHA256).sign(body, RSA)
    token = (body + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()
    with pytest.raises(UnauthenticatedError):
        verifier.identify(token)


@pytest.mark.parametrize("sub", ["Alice@Corp", "ALICE@CORP", " alice@corp ", "\uff21lice@corp"])
def test_one_person_has_one_name_in_tokens_and_keys(verifier: TokenVerifier, sub: str) -> None:
    assert verifier.identify(signed(sub=sub)).name == "alice@corp"


UNSEEN = (
    0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x200B, 0x200D, 0x202E, 0x2060,
    0x2800, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0x1BCA0, 0x1D173, 0xE0001, 0xE0100, 0xE01EF,
)  # fmt: skip


@pytest.mark.parametrize("point", UNSEEN, ids=hex)
@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_name_that_looks_like_another_is_refused_and_is_the_same_person(
    verifier: TokenVerifier, point: int, place: int
) -> None:
    sub = "alice"[:place] + chr(point) + "alice"[place:]
    with pytest.raises(UnauthenticatedError):
        verifier.identify(signed(sub=sub))
    assert person(sub) == "alice"
    assert is_among(sub, ["Alice"])


def test_another_claim_can_be_the_name() -> None:
    verifier = TokenVerifier(replace(ISSUER, name_claim="email"), OneKey())
    made = {"sub": "auth0|12345", "email": "Alice@Corp.example"}
    assert verifier.identify(signed(**made)).name == "alice@corp.example"
    assert verifier.identify(signed(**made, email_verified=True)).name == "alice@corp.example"
    with pytest.raises(UnauthenticatedError) as unverified:
        verifier.identify(signed(**made, email_verified=False))
    assert "has not verified" in unverified.value.why
    with pytest.raises(UnauthenticatedError) as missing:
        verifier.identify(signed(sub="alice"))
    assert "lacks" in missing.value.why


def test_the_claim_of_the_name_is_a_setting(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(pem(RSA))
    given: dict[str, Any] = {
        "jwt_issuer": ISSUER.name,
        "jwt_audience": "headgate",
        "jwt_public_key": "key.pem",
    }
    usual = verifier_of(Settings(root=tmp_path, **given))
    mail = verifier_of(Settings(root=tmp_path, **given, jwt_name_claim="email"))
    token = signed(sub="ann", email="ann@corp.example")
    assert usual is not None
    assert mail is not None
    assert (usual.identify(token).name, mail.identify(token).name) == ("ann", "ann@corp.example")


class OneKey:
    def of(self, token: str) -> Any:
        return RSA.public_key()


@pytest.mark.parametrize(
    "sub", ["git:alice", "system", "System", "nobody", "NOBODY ", "local", "local:root", " "]
)
def test_nobody_bears_the_name_of_one_of_our_own_actors(verifier: TokenVerifier, sub: str) -> None:
    with pytest.raises(UnauthenticatedError):
        verifier.identify(signed(sub=sub))


def test_a_public_key_in_a_file_is_no_shared_secret(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(pem(RSA))
    verifier = TokenVerifier(ISSUER, KeyInFile(file))
    assert verifier.identify(signed()).name == "ann"
    with pytest.raises(UnauthenticatedError):
        verifier.identify(by_hand("HS256", pem(RSA)))


@pytest.mark.parametrize("algorithms", [(), ("HS256",), ("RS256", "none"), ("RS256", "HS512")])
def test_algorithms_without_a_key_pair_cannot_be_set(algorithms: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError):
        Issuer("https://issuer.example", "headgate", algorithms)


@pytest.mark.parametrize("algorithms", ["HS256", "none", "RS256,HS256", "rs256"])
def test_nor_in_the_settings(tmp_path: Path, algorithms: str) -> None:
    with pytest.raises(SettingsError):
        Settings(root=tmp_path, jwt_algorithms=algorithms)


def test_without_an_issuer_there_are_no_tokens(tmp_path: Path) -> None:
    assert verifier_of(Settings(root=tmp_path)) is None


def test_an_issuer_needs_an_audience_and_keys(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="JWT_AUDIENCE"):
        verifier_of(Settings(root=tmp_path, jwt_issuer="https://issuer.example"))
    with pytest.raises(SettingsError, match="JWT_JWKS"):
        verifier_of(
            Settings(root=tmp_path, jwt_issuer="https://i.example", jwt_audience="headgate")
        )


def test_keys_are_not_read_over_plain_http_from_elsewhere() -> None:
    with pytest.raises(SettingsError):
        KeySetAtUrl("http://issuer.example/keys")
    KeySetAtUrl("https://issuer.example/keys")
    KeySetAtUrl("http://127.0.0.1:9/keys")


def test_a_private_key_in_the_file_is_read_as_no_key_set(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    words = RSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(words)
    with pytest.raises(SettingsError) as refused:
        KeySetInFile(file)
    assert "PRIVATE" not in refused.value.one_line


@given(token=st.text(max_size=200) | st.from_regex(r"\A[A-Za-z0-9_-]*(\.[A-Za-z0-9_-]*){0,4}\Z"))
def test_whatever_is_sent_as_a_token_is_refused(token: str, verifier: TokenVerifier) -> None:
    with pytest.raises(UnauthenticatedError):
        verifier.identify(token)
