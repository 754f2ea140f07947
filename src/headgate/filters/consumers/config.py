"""Configuration of a consumer: a YAML file, with variables of the environment above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from headgate.declarations.document import Text, read_document, text_of, validate
from headgate.errors import DeclarationError

_STRICT = ConfigDict(extra="forbid", str_strip_whitespace=True)


@dataclass(frozen=True, config=_STRICT)
class Dealer:
    """Whose events these are."""

    id: Text
    name: Text


@dataclass(frozen=True, config=_STRICT)
class Login:
    """A key of a cluster that asks for one; without it there is no authentication."""

    key: Text
    secret: Annotated[Text, Field(repr=False)]


@dataclass(frozen=True, config=_STRICT)
class ConsumerConfig:
    """One consumer: its dealer, its own topic and group, and what it does with an event."""

    dealer: Dealer
    topic: Text
    group: Text
    sinks: tuple[Text, ...] = ()
    bootstrap: Text | None = None
    login: Login | None = field(default=None, repr=False)


def load_config(path: Path, environ: Mapping[str, str]) -> ConsumerConfig:
    """The configuration in `path`; a DeclarationError has all faults."""
    document = read_document(str(path), text_of(path), environ)
    config = validate(ConsumerConfig, document) if isinstance(document.data, dict) else None
    if config is None and not document.faults:
        document.add("", "the configuration is not a mapping", "Write `key: value` lines.", line=1)
    if config is None or document.faults:
        raise DeclarationError(sorted(document.faults, key=lambda fault: fault.line or 0))
    return overridden(config, environ)


def overridden(config: ConsumerConfig, environ: Mapping[str, str]) -> ConsumerConfig:
    """With the documents' variables over the file's values, as a container sets them."""
    key, secret = environ.get("KAFKA_API_KEY"), environ.get("KAFKA_API_SECRET")
    return replace(
        config,
        topic=environ.get("KAFKA_TOPIC") or config.topic,
        group=environ.get("CONSUMER_GROUP_ID") or config.group,
        bootstrap=environ.get("KAFKA_BOOTSTRAP_SERVERS") or config.bootstrap,
        login=Login(key, secret) if key and secret else config.login,
    )
