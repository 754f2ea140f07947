"""Somebody who uses the API over HTTP, with a key of their own."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

import httpx

from headgate.errors import ForbiddenError, OperationError, UnavailableError

FILTERS = "/api/v1/filters"
SECONDS = 30.0


class Person:
    """One identity; what the API refuses is raised in its own words."""

    def __init__(self, name: str, url: str, key: str) -> None:
        self.name = name
        headers = {"Authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=SECONDS, trust_env=False)

    def close(self) -> None:
        self.http.close()

    def filter(self, id: str) -> dict[str, Any]:
        return self.get(f"{FILTERS}/{id}")

    def act(self, id: str, action: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """`POST /api/v1/filters/{id}/{action}`."""
        return self.post(f"{FILTERS}/{id}/{action}", body or {})

    def change(self, id: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """A new version over the one that stands there now."""
        etag = self._asked("GET", f"{FILTERS}/{id}").headers["ETag"]
        headers = {"If-Match": etag}
        return _body(self._asked("PUT", f"{FILTERS}/{id}", document, headers))

    def get(self, path: str) -> dict[str, Any]:
        return _body(self._asked("GET", path))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return _body(self._asked("POST", path, body))

    def _asked(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        try:
            answer = self.http.request(method, path, json=body, headers=headers)
        except httpx.TransportError as error:
            raise UnavailableError("the API does not answer", why=str(error)) from error
        return self._answered(answer)

    def _answered(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        words = f"{self.name} was answered {answer.status_code}"
        forbidden = answer.status_code == HTTPStatus.FORBIDDEN
        raise (ForbiddenError if forbidden else OperationError)(words, why=answer.text[:500])


def _body(answer: httpx.Response) -> dict[str, Any]:
    return cast("dict[str, Any]", answer.json())
