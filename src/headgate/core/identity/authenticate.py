"""From what a request carries to an identity."""

from __future__ import annotations

from headgate.core.identity.keys import PREFIX, Keys
from headgate.core.identity.model import Identity
from headgate.core.identity.tokens import TokenVerifier


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
