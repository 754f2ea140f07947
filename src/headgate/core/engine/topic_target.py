"""Where the batches of a topic go, whatever job reads it: one table that says how far, and others beside it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.core.engine.protocol import Result
from headgate.core.ledger.store_model import Intent
from headgate.core.sql.compile_fragments import DEAD_LETTERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class TopicTarget(ABC):
    """`table` is published last: a batch that it holds is wholly written."""

    job: str
    table: str
    dlq_topic: str
    bootstrap: str

    @property
    def before(self) -> tuple[str, ...]:
        """The tables that a batch is published to before it is in `table`."""
        return (DEAD_LETTERS,)

    @property
    def shape(self) -> str:
        """The shape of the state that its query keeps; most keep none."""
        return ""

    @abstractmethod
    def account(self, session: SparkSession, intent: Intent) -> Result | None:
        """What became of a batch, from the tables alone; None when `table` has no commit of it."""
