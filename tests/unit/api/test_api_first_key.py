"""Before the first key: this machine alone, reads alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.api_client import FILTER, FILTERS, ONE, ApiClient

from headgate.api.server import refuse_strangers
from headgate.config.settings import Settings
from headgate.core.identity.api_keys import KeyStore
from headgate.core.identity.roles import OPERATIONS, READS
from headgate.errors import ForbiddenError


def test_reads_are_answered(api_without_keys: ApiClient) -> None:
    assert api_without_keys("GET", FILTERS).json() == {"filters": [], "total": 0, "next": None}
    assert api_without_keys("POST", f"{FILTERS}:validate", json=FILTER).json()["valid"] is True


def test_changes_are_refused_and_the_command_is_named(api_without_keys: ApiClient) -> None:
    answer = api_without_keys("POST", FILTERS, json=FILTER)
    assert answer.status_code == 401
    assert "headgate keys create" in answer.json()["fix"]
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_no_key_can_be_made_over_http() -> None:
    assert not [name for name in OPERATIONS if "key" in name.lower()]


def test_another_machine_reads_nothing(api_without_keys: ApiClient) -> None:
    api_without_keys.peer = "10.1.2.3"
    assert api_without_keys("GET", FILTERS).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "10.1.2.3:8080", "localhost.evil"]
)
def test_a_page_that_points_its_own_name_here_reads_nothing(
    api_without_keys: ApiClient, host: str
) -> None:
    assert api_without_keys("GET", FILTERS, headers={"Host": host}).status_code == 401


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "[::1]"]
)
def test_this_machine_has_several_names(api_without_keys: ApiClient, host: str) -> None:
    assert api_without_keys("GET", FILTERS, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Forwarded-Port",
        "Forwarded",
        "X-Real-IP",
        "Via",
        "CF-Connecting-IP",
        "CF-Ray",
        "True-Client-IP",
        "X-Client-IP",
        "X-Amzn-Trace-Id",
        "X-Envoy-External-Address",
    ],
)
def test_what_a_proxy_passes_on_is_not_from_this_machine(
    api_without_keys: ApiClient, header: str
) -> None:
    assert api_without_keys("GET", FILTERS, headers={header: "for=10.1.2.3"}).status_code == 401


def test_after_the_first_key_reads_need_one_too(api_without_keys: ApiClient) -> None:
    api_without_keys.create_key("ann", "author")
    assert api_without_keys("GET", FILTERS).status_code == 401
    assert api_without_keys("GET", FILTERS, "ann").status_code == 200


def test_a_store_whose_keys_are_all_revoked_does_not_open_again(
    api_without_keys: ApiClient,
) -> None:
    api_without_keys.create_key("ann", "author")
    (key,) = api_without_keys.store.part(KeyStore).every()
    api_without_keys.store.part(KeyStore).revoke(key.id, by="test")
    assert api_without_keys("GET", FILTERS).status_code == 401


def test_it_listens_on_this_machine_only(api_without_keys: ApiClient, tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    for host in ("127.0.0.1", "::1", "localhost"):
        refuse_strangers(settings, api_without_keys.store, host)
    with pytest.raises(ForbiddenError) as refused:
        refuse_strangers(settings, api_without_keys.store, "0.0.0.0")
    assert "headgate keys create" in refused.value.fix
    api_without_keys.create_key("ann", "author")
    refuse_strangers(settings, api_without_keys.store, "0.0.0.0")


def test_what_is_no_read_is_refused_without_being_listed() -> None:
    assert not READS - set(OPERATIONS)


def test_a_filter_that_was_made_with_a_key_can_be_read_back(api_without_keys: ApiClient) -> None:
    api_without_keys.create_key("ann", "author")
    assert api_without_keys("POST", FILTERS, "ann", json=FILTER).status_code == 201
    assert api_without_keys("GET", ONE, "ann").json()["author"] == "ann"
