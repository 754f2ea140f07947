"""The OpenAPI document: committed, and what is served."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_client import ApiClient, open_api_client
from tools.openapi import FILE, written

from headgate.core.identity.roles import PUBLIC


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("document")
    shutil.copy(empty_database, folder / "ops.db")
    with open_api_client(folder) as app:
        return app.app.openapi()


def test_the_committed_document_is_the_one_that_is_served(api: ApiClient) -> None:
    served = api("GET", "/api/v1/openapi.json").json()
    assert written(served) == FILE.read_text("utf-8"), "run: make docs"


def test_the_ten_paths_of_the_documents_are_there(document: dict[str, Any]) -> None:
    paths = document["paths"]
    ten = {
        ("/api/v1/filters", "post"),
        ("/api/v1/filters", "get"),
        ("/api/v1/filters/{id}", "get"),
        ("/api/v1/filters/{id}", "put"),
        ("/api/v1/filters/{id}", "delete"),
        ("/api/v1/filters/{id}/generate", "post"),
        ("/api/v1/filters/{id}/validate", "post"),
        ("/api/v1/filters/{id}/approve", "post"),
        ("/api/v1/filters/{id}/deploy", "post"),
        ("/api/v1/filters/{id}/status", "get"),
    }
    assert ten <= {(path, method) for path, methods in paths.items() for method in methods}


def test_every_operation_says_what_it_does_and_how_it_refuses(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (path, method)
            refused = {s for s in operation["responses"] if s[0] == "4"}
            assert {"401", "403"} <= refused or operation["operationId"] in PUBLIC
            for status in refused:
                content: dict[str, Any] = operation["responses"][status]["content"]
                assert list(content) == ["application/problem+json"], (path, method, status)


def test_posts_that_change_something_take_an_idempotency_key(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            names = {parameter["name"] for parameter in operation.get("parameters", [])}
            if path.startswith("/api/v1/filters/{id}/") and method == "post":
                reads = path.rpartition("/")[2] in ("dry-run", "generate", "validate")
                assert ("Idempotency-Key" in names) is not reads, path


def test_the_body_of_a_filter_is_described_down_to_its_conditions(document: dict[str, Any]) -> None:
    body = document["paths"]["/api/v1/filters"]["post"]["requestBody"]["content"]
    assert body["application/json"]["schema"] == {"$ref": "#/components/schemas/Filter"}
    assert {"Filter", "Condition", "AllOf", "AnyOf", "NotOf", "Problem"} <= set(
        document["components"]["schemas"]
    )
