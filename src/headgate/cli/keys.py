"""`headgate keys`: create, list and revoke API keys; record who a git identity belongs to.

Works on the ops store, never over HTTP.
"""

from __future__ import annotations

import getpass
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import click

from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.core.identity.api_keys import ApiKey, Keys

ROLES = ("viewer", "author", "approver", "deployer", "operator", "auditor", "admin", "producer")


@dataclass(frozen=True)
class ShownKey:
    """What may be seen of a key after it was made."""

    id: str
    name: str
    roles: tuple[str, ...]
    state: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


@click.group()
def group() -> None:
    """Make, list and revoke keys of the API, on the machine of the ops store.

    \b
    Examples:
      headgate keys create alice --role author
      headgate keys list
      headgate keys revoke 3f0k2m9x7q1a
    """


@group.command()
@click.argument("name")
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    type=click.Choice(ROLES),
    help="What it is for.",
)
@click.option("--days", type=float, default=90, show_default=True, help="How long it holds.")
@click.option("--no-expiry", is_flag=True, help="It holds until it is revoked.")
def create(name: str, roles: tuple[str, ...], days: float, no_expiry: bool) -> None:
    """Make a key for a person or a program. It is printed once and kept nowhere.

    The name is who they are: two keys of one name are one person, who cannot approve what they
    wrote with either.

    \b
    Examples:
      headgate keys create alice --role author --role deployer
      headgate keys create shop --role producer --no-expiry
      export HEADGATE_API_KEY=$(headgate keys create bob --role approver --days 7)
    """
    with opened() as keys:
        made = keys.create(name, roles, None if no_expiry else days, by=_local())
    shown = {"id": made.key.id, "name": name, "roles": made.key.roles, "key": made.secret}
    console.data({**shown, "expires_at": made.key.expires_at}, text=made.secret)
    until = f"until {made.key.expires_at:%Y-%m-%d %H:%M} UTC" if made.key.expires_at else "for good"
    console.done(f"key {made.key.id} of {name} holds {until}; it is not shown again")


@group.command("list")
def list_keys() -> None:
    """All keys with their state and last use; never the keys themselves.

    \b
    Examples:
      headgate keys list
      headgate -o json keys list
    """
    from headgate.core.ledger.ops_store import utc_now

    with opened() as keys:
        found = [_shown(key, utc_now()) for key in keys.every()]
    console.data({"keys": found}, text=_table(found))


@group.command()
@click.argument("id")
def revoke(id: str) -> None:
    """Let a key hold no longer, from the next request on.

    \b
    Examples:
      headgate keys revoke 3f0k2m9x7q1a
    """
    from headgate.core.ledger.ops_store import utc_now

    with opened() as keys:
        key = keys.revoke(id, by=_local())
    console.data(_shown(key, utc_now()), text="")
    console.done(f"key {key.id} of {key.name} is revoked")


@group.group("git")
def git_identities() -> None:
    """Say whose identities in git are whose: who commits may not approve what they wrote.

    \b
    Examples:
      headgate keys git add alice alice.smith@corp.example
      headgate keys git list
      headgate keys git remove alice.smith@corp.example
    """


@git_identities.command("add")
@click.argument("name")
@click.argument("identity")
def add_identity(name: str, identity: str) -> None:
    """Declare that NAME commits as IDENTITY, a mail address or a name as git shows it.

    NAME is the name of a key or a token. An identity of somebody else changes hands. A program that
    commits for others, such as a forge's merge button, gets a name of its own.

    \b
    Examples:
      headgate keys git add alice alice.smith@corp.example
      headgate keys git add alice "Alice Smith"
      headgate keys git add forge noreply@forge.example
    """
    with opened() as keys:
        owned = keys.add_git_identity(name, identity, by=_local())
    console.data(owned, text="")
    console.done(f"{owned.identity} in git is {owned.name}")


@git_identities.command("list")
def list_identities() -> None:
    """List the declared identities of git and who each is.

    \b
    Example:
      headgate keys git list
    """
    from headgate.terminal.console import as_table

    with opened() as keys:
        owned = keys.git_identities()
    rows: list[dict[str, object]] = [{"identity": one.identity, "name": one.name} for one in owned]
    console.data({"identities": owned}, text=as_table(rows))


@git_identities.command("remove")
@click.argument("identity")
def remove_identity(identity: str) -> None:
    """Let an identity of git be nobody's again.

    \b
    Example:
      headgate keys git remove alice.smith@corp.example
    """
    with opened() as keys:
        keys.remove_git_identity(identity, by=_local())
    console.done(f"{identity} in git is nobody's")


@contextmanager
def opened() -> Generator[Keys]:
    """The keys of the ops store that the settings name."""
    from headgate.config.settings import load_settings
    from headgate.core.identity.api_keys import Keys, KeyStore
    from headgate.core.ledger.ops_store import OpsStore

    with OpsStore.open(load_settings().ops_store_url) as store:
        yield Keys(store.part(KeyStore))


def _local() -> str:
    """Whoever is at this machine: there is no other identity before the first key."""
    from headgate.core.identity.roles import LOCAL

    try:
        return f"{LOCAL}:{getpass.getuser()}"
    except (KeyError, OSError):
        return LOCAL


def _shown(key: ApiKey, now: datetime) -> ShownKey:
    from headgate.core.identity.api_keys import state

    return ShownKey(
        key.id,
        key.name,
        key.roles,
        state(key, now),
        key.created_at,
        key.expires_at,
        key.last_used_at,
    )


def _table(keys: list[ShownKey]) -> str:
    from headgate.terminal.console import as_table

    return as_table(
        [
            {
                "id": key.id,
                "name": key.name,
                "roles": ", ".join(key.roles),
                "state": key.state,
                "expires": _day(key.expires_at),
                "last used": _day(key.last_used_at),
            }
            for key in keys
        ]
    )


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "never"
