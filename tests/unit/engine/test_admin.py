from __future__ import annotations

from headgate.engine.admin import shared_admin

NOBODY = "127.0.0.1:1"


def test_clients_of_one_broker_are_one_client() -> None:
    assert shared_admin(NOBODY, 1.0) is shared_admin(NOBODY, 1.0)
    assert shared_admin(NOBODY, 1.0) is not shared_admin(NOBODY, 2.0)
