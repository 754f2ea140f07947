"""Turns the credentials of a request into an identity: API keys always, tokens where an OIDC issuer is set.

Tokens must be signed by a key pair, made out for this audience and not expired; roles that are not known here are
ignored. Signing keys come from a file or from the issuer's JWKS.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import jwt

from headgate.config.settings import Settings
from headgate.core.identity.api_keys import PREFIX, Keys
from headgate.core.identity.roles import ROLES, Identity, has_unseen, is_reserved, person
from headgate.errors import SettingsError, UnauthenticatedError, UnavailableError


def is_loopback(host: str) -> bool:
    """Of a host name or an address; a name other than `localhost` may lead anywhere."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


# Whoever checks a token by a shared secret could write one; and `none` is no signature.
ASYMMETRIC = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
LONGEST = 8192
LONGEST_NAME = 200
LEEWAY_SECONDS = 30
KEYS_SECONDS = 5
# So long an issuer that did not answer is not asked again.
AWAY_SECONDS = 10
NEEDED = ("exp", "iss", "aud")
SUBJECT, MAIL = "sub", "email"


@dataclass(frozen=True)
class Issuer:
    """Whose tokens are taken, and for whom they must be made out."""

    name: str
    audience: str
    algorithms: tuple[str, ...]
    name_claim: str = SUBJECT

    def __post_init__(self) -> None:
        if not self.algorithms or not ASYMMETRIC.issuperset(self.algorithms):
            raise SettingsError(
                "JWT_ALGORITHMS names an algorithm without a key pair",
                why="with a shared secret, or none, whoever reads the public key could write tokens",
                fix=f"choose among {', '.join(sorted(ASYMMETRIC))}",
            )


class SigningKeys(Protocol):
    """The issuer's public keys."""

    def of(self, token: str) -> Any:
        """The key that the token's header names; jwt.PyJWTError when there is none."""
        ...


class KeyInFile:
    """One public key, as PEM."""

    def __init__(self, path: Path) -> None:
        self._pem = _text(path)

    def of(self, token: str) -> Any:
        return self._pem


class KeySetInFile:
    """A JWKS that somebody put there."""

    def __init__(self, path: Path) -> None:
        try:
            self._keys = jwt.PyJWKSet.from_dict(json.loads(_text(path)))
        except (ValueError, jwt.PyJWTError) as error:
            raise SettingsError("JWT_JWKS is no key set", why=str(error)) from error

    def of(self, token: str) -> Any:
        named = jwt.get_unverified_header(token).get("kid")
        for key in self._keys.keys:
            if key.key_id == named or (named is None and len(self._keys.keys) == 1):
                return _public(key)
        raise jwt.InvalidKeyError("no such key")


class KeySetAtUrl:
    """The JWKS that the issuer serves; kept for some minutes, read again for an unknown key."""

    def __init__(self, url: str) -> None:
        self._client = jwt.PyJWKClient(_safe(url), timeout=KEYS_SECONDS)
        self._lock, self._failed_at = threading.Lock(), float("-inf")

    def of(self, token: str) -> Any:
        # One thread asks an issuer that hangs, not all of them one after another.
        with self._lock:
            if time.monotonic() - self._failed_at < AWAY_SECONDS:
                raise _away()
            try:
                return _public(self._client.get_signing_key_from_jwt(token))
            except jwt.PyJWKClientConnectionError as error:
                self._failed_at = time.monotonic()
                raise _away() from error


def _away() -> UnavailableError:
    return UnavailableError("the issuer's keys cannot be read", why="JWT_JWKS does not answer")


class TokenVerifier:
    """From a token to an identity: one claim is the name, `roles` the roles; what we do not know is left out."""

    def __init__(self, issuer: Issuer, keys: SigningKeys) -> None:
        self._issuer, self._keys = issuer, keys

    def identify(self, token: str) -> Identity:
        """UnauthenticatedError unless the token holds."""
        if len(token) > LONGEST:
            raise _refused("it is too long")
        try:
            claims = self._claims(token)
        except jwt.PyJWTError as error:
            raise _refused(_why(error)) from error
        return Identity(self._name(claims), _roles(claims.get("roles")))

    def _claims(self, token: str) -> Mapping[str, Any]:
        if jwt.get_unverified_header(token).get("alg") not in self._issuer.algorithms:
            raise jwt.InvalidAlgorithmError
        return jwt.decode(
            token,
            self._keys.of(token),
            algorithms=list(self._issuer.algorithms),
            issuer=self._issuer.name,
            audience=self._issuer.audience,
            leeway=LEEWAY_SECONDS,
            options={"require": [*NEEDED, self._issuer.name_claim]},
        )

    def _name(self, claims: Mapping[str, Any]) -> str:
        """The person that the claim names, in the one spelling that keys have too."""
        claim = self._issuer.name_claim
        if claim == MAIL and claims.get("email_verified") is False:
            raise _refused("its issuer has not verified its `email`")
        text = claims[claim]
        name = person(text) if isinstance(text, str) and text.isprintable() else ""
        if not 0 < len(name) <= LONGEST_NAME or is_reserved(name):
            raise _refused(f"its `{claim}` is no name of a person")
        if has_unseen(text):
            raise _refused(f"its `{claim}` has characters that cannot be seen")
        return name


def verifier_of(settings: Settings) -> TokenVerifier | None:
    """As the settings say; None where no issuer is set."""
    if not settings.jwt_issuer:
        return None
    algorithms = tuple(word.strip() for word in settings.jwt_algorithms.split(","))
    issuer = Issuer(
        settings.jwt_issuer, settings.need("jwt_audience"), algorithms, settings.jwt_name_claim
    )
    if settings.jwt_public_key:
        return TokenVerifier(issuer, KeyInFile(settings.root / settings.jwt_public_key))
    source = settings.need("jwt_jwks")
    at_url = source.startswith(("http://", "https://"))
    keys = KeySetAtUrl(source) if at_url else KeySetInFile(settings.root / source)
    return TokenVerifier(issuer, keys)


def _roles(claim: object) -> frozenset[str]:
    words = claim.split() if isinstance(claim, str) else claim
    given = cast("Sequence[object]", words) if isinstance(words, list) else ()
    return frozenset(role for role in ROLES if role in given)


def _public(key: jwt.PyJWK) -> jwt.PyJWK:
    if key.key_type == "oct":
        raise jwt.InvalidKeyError("a shared secret")
    return key


def _safe(url: str) -> str:
    """Keys that come over plain http could be anybody's, unless they come from this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https" or is_loopback(host):
        return url
    raise SettingsError("JWT_JWKS is read over plain http", fix="give an https address, or a file")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError("the issuer's key cannot be read", why=str(error)) from error


WHY: Mapping[type[jwt.PyJWTError], str] = {
    jwt.ExpiredSignatureError: "it is expired",
    jwt.InvalidIssuerError: "it comes from another issuer",
    jwt.InvalidAudienceError: "it is made out for somebody else",
    jwt.InvalidAlgorithmError: "its algorithm is not allowed",
    jwt.InvalidSignatureError: "its signature does not hold",
    jwt.ImmatureSignatureError: "it does not hold yet",
    jwt.MissingRequiredClaimError: "it lacks one of exp, iss, aud and the claim of its name",
}


def _why(error: jwt.PyJWTError) -> str:
    return next((words for kind, words in WHY.items() if isinstance(error, kind)), "it is no token")


def _refused(why: str) -> UnauthenticatedError:
    return UnauthenticatedError("the token does not hold", why=why)


class Authenticator:
    """Knows keys always, and tokens where an issuer is set."""

    def __init__(self, keys: Keys, tokens: TokenVerifier | None = None) -> None:
        self._keys, self._tokens = keys, tokens

    @property
    def is_new(self) -> bool:
        """Whether nobody can have an identity yet: no key was ever made, and no issuer is set."""
        return self._tokens is None and not self._keys.any()

    def identify(self, credentials: str | None) -> Identity | None:
        """None without credentials; UnauthenticatedError when they do not hold."""
        if credentials is None:
            return None
        if credentials.startswith(PREFIX) or self._tokens is None:
            return self._keys.identify(credentials)
        return self._tokens.identify(credentials)
