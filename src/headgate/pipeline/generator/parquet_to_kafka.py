"""Send each row of a Parquet file as JSON to the dataset's topic, at a given pace.

Everything is checked first; the first record leaves only if nothing is wrong.
"""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol

import orjson
import pyarrow as pa

from headgate.core.kafka.arrow_json import JsonRows, keys
from headgate.core.kafka.producer import TopicWriter
from headgate.core.runtime.journal import interruption, whole_file
from headgate.declarations.errors import Declared
from headgate.errors import InterruptedByUserError
from headgate.pipeline.generator.source import ParquetSource, RowContract, envelope, require_fit
from headgate.pipeline.spec import Dataset

Mode = Literal["burst", "realtime", "batch"]

BATCH_ROWS = 8_192
PACES_A_SECOND = 20


@dataclass(frozen=True)
class Plan:
    """What is sent where, and how fast; `said` names what pointed to the file."""

    file: Path
    said: str
    dataset: Declared[Dataset]
    bootstrap: str
    broker: str
    mode: Mode
    rate: int
    max_events: int
    schema_file: Path | None
    metrics_file: Path

    @property
    def topics(self) -> tuple[str, ...]:
        dataset = self.dataset.value
        return (dataset.topic, dataset.dlq_topic) if self.schema_file else (dataset.topic,)

    @property
    def batch_rows(self) -> int:
        if self.mode != "realtime":
            return BATCH_ROWS
        return max(1, min(BATCH_ROWS, self.rate // PACES_A_SECOND))


@dataclass(frozen=True)
class Generated:
    """What was sent; the metrics file has these fields."""

    events: int
    invalid: int
    elapsed_seconds: float
    events_per_second: float
    mode: str
    broker: str
    topic: str
    schema_validation: bool

    def summary(self) -> str:
        return f"Events produced: {self.events} / Invalid (→ DLQ): {self.invalid}"


class Writer(Protocol):
    """Where records go."""

    def send(self, topic: str, values: list[bytes], keys: Iterable[bytes | None]) -> None: ...

    def flush(self) -> None: ...


class Watcher(Protocol):
    """Sees how far the sending is."""

    def begin(self, total: int) -> None: ...

    def advance(self, rows: int) -> None: ...


def generate(plan: Plan, watcher: Watcher) -> Generated:
    """Check everything, then send; the first record leaves only if nothing is wrong."""
    source = ParquetSource(plan.file, plan.said)
    try:
        require_fit(source.schema, plan.dataset)
        contract = RowContract(plan.schema_file) if plan.schema_file else None
        writer = TopicWriter(plan.bootstrap)
        writer.require(plan.topics)
        plan.metrics_file.unlink(missing_ok=True)  # the last run's figures say nothing of this one
        with interruption() as interrupted:
            return Sending(plan, source, contract, writer).run(watcher, interrupted)
    finally:
        source.close()


class Sending:
    """One pass over the file."""

    def __init__(
        self,
        plan: Plan,
        source: ParquetSource,
        contract: RowContract | None,
        writer: Writer,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._plan, self._source, self._contract = plan, source, contract
        self._writer, self._clock, self._sleep = writer, clock, sleep
        self._rows = JsonRows(source.schema)
        self._events = self._invalid = 0

    def run(self, watcher: Watcher, interrupted: Callable[[], bool]) -> Generated:
        """Send all rows that the plan asks for; every one counted is acknowledged."""
        total = min(self._source.rows, self._plan.max_events or self._source.rows)
        watcher.begin(total)
        started = self._clock()
        for batch in self._source.batches(self._plan.batch_rows, total):
            if interrupted():
                break
            self._send(batch)
            watcher.advance(batch.num_rows)
            self._keep_pace(started)
        self._writer.flush()
        generated = self._generated(self._clock() - started)
        write_metrics(generated, self._plan.metrics_file)
        if self._events + self._invalid < total:
            raise stopped(generated, total)
        return generated

    def _send(self, batch: pa.RecordBatch) -> None:
        dataset = self._plan.dataset.value
        lines = self._rows.lines(batch)
        names = keys(batch.column(dataset.key_field)) if dataset.key_field else no_keys(lines)
        if self._contract:
            lines, names = self._accepted(self._contract, lines, names)
        self._writer.send(dataset.topic, lines, names)
        self._events += len(lines)

    def _accepted(
        self, contract: RowContract, lines: list[bytes], names: list[bytes | None]
    ) -> tuple[list[bytes], list[bytes | None]]:
        """The rows that meet the contract; the others go to the dead-letter topic."""
        refusals = [contract.refusal(line) for line in lines]
        refused = [row for row, refusal in enumerate(refusals) if refusal is not None]
        if not refused:
            return lines, names
        moment = datetime.now(UTC)
        letters = [envelope(str(refusals[row]), lines[row], moment) for row in refused]
        letter_keys = [names[row] for row in refused]
        self._writer.send(self._plan.dataset.value.dlq_topic, letters, letter_keys)
        self._invalid += len(refused)
        kept = [row for row, refusal in enumerate(refusals) if refusal is None]
        return [lines[row] for row in kept], [names[row] for row in kept]

    def _keep_pace(self, started: float) -> None:
        if self._plan.mode == "batch":
            self._writer.flush()
        elif self._plan.mode == "realtime":
            due = started + (self._events + self._invalid) / self._plan.rate
            self._sleep(max(0.0, due - self._clock()))

    def _generated(self, elapsed: float) -> Generated:
        return Generated(
            events=self._events,
            invalid=self._invalid,
            elapsed_seconds=round(elapsed, 3),
            events_per_second=round(self._events / elapsed, 1) if elapsed > 0 else 0.0,
            mode=self._plan.mode,
            broker=self._plan.broker,
            topic=self._plan.dataset.value.topic,
            schema_validation=self._contract is not None,
        )


def no_keys(lines: list[bytes]) -> list[bytes | None]:
    return [None for _ in lines]


def stopped(generated: Generated, total: int) -> InterruptedByUserError:
    return InterruptedByUserError(
        f"interrupted after {generated.events + generated.invalid:,} of {total:,} rows",
        why=f"{generated.summary()}; all of them are acknowledged",
        fix="to send the rest, run it again: it begins at the first row, "
        "and silver leaves out what came twice",
    )


def write_metrics(generated: Generated, file: Path) -> None:
    """Leave the figures where validation looks for them, whole or not at all."""
    with whole_file(file) as part:
        part.write_bytes(orjson.dumps(asdict(generated), option=orjson.OPT_INDENT_2) + b"\n")
