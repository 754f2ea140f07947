"""The OpenAPI document: committed, and what is served."""

from __future__ import annotations

from typing import Any

from tests.support.api_client import ApiClient
from tools.openapi import FILE, written

from headgate.control.identity.policy import PUBLIC


def test_the_committed_document_is_the_one_that_is_served(api: ApiClient) -> None:
    served = api("GET", "/api/v1/openapi.json").json()
    assert written(served) == FILE.read_text("utf-8"), "run: make docs"


def test_the_ten_paths_of_the_documents_are_there(api: ApiClient) -> None:
    paths = api.app.openapi()["paths"]
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


def test_every_operation_says_what_it_does_and_how_it_refuses(api: ApiClient) -> None:
    for path, methods in api.app.openapi()["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (path, method)
            refused = {s for s in operation["responses"] if s[0] == "4"}
            assert {"401", "403"} <= refused or operation["operationId"] in PUBLIC
            for status in refused:
                content: dict[str, Any] = operation["responses"][status]["content"]
                assert list(content) == ["application/problem+json"], (path, method, status)


def test_posts_that_change_something_take_an_idempotency_key(api: ApiClient) -> None:
    for path, methods in api.app.openapi()["paths"].items():
        for method, operation in methods.items():
            names = {parameter["name"] for parameter in operation.get("parameters", [])}
            if path.startswith("/api/v1/filters/{id}/") and method == "post":
                reads = path.rpartition("/")[2] in ("dry-run", "generate", "validate")
                assert ("Idempotency-Key" in names) is not reads, path


def test_the_body_of_a_filter_is_described_down_to_its_conditions(api: ApiClient) -> None:
    document = api.app.openapi()
    body = document["paths"]["/api/v1/filters"]["post"]["requestBody"]["content"]
    assert body["application/json"]["schema"] == {"$ref": "#/components/schemas/Filter"}
    assert {"Filter", "Condition", "AllOf", "AnyOf", "NotOf", "Problem"} <= set(
        document["components"]["schemas"]
    )
