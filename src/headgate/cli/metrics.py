"""`headgate metrics` and `headgate obs`: metrics with their values, windows and sinks; Prometheus and Grafana."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from headgate.errors import UnavailableError, UsageError
from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.model import Window
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.core.metrics.delivery import Sink
    from headgate.core.metrics.names import Metric
    from headgate.core.metrics.readings import Family


@click.group()
def group() -> None:
    """List and show metrics; see windows close, and send them.

    \b
    Examples:
      headgate metrics list
      headgate metrics show dq_
      headgate metrics windows reconcile-orders
      headgate metrics send --sink http
    """


@group.command("list")
@click.option("--table", help="The metrics of this table's rules, with their three names.")
def list_(table: str | None) -> None:
    """Print every metric's name, kind, unit, labels and meaning.

    Those of a reconciled pair's verdicts and records are among them; the metrics of your own rules
    are listed with --table.

    \b
    Examples:
      headgate metrics list
      headgate metrics list --table customer
    """
    from headgate.core.metrics.names import METRICS

    if table is not None:
        console.data([*_rule_names(table)])
        return
    console.data(
        [
            {"name": m.name, "kind": m.kind, "unit": m.unit}
            | {"labels": " ".join(m.labels), "help": m.help}
            for m in (*METRICS, *_pair_metrics())
        ]
    )


def _pair_metrics() -> Iterator[Metric]:
    """The counters that every reconciled pair has: of its verdicts, and of its records."""
    from dataclasses import replace

    from headgate.core.metrics.names import COUNTED_METRICS, LATE_ARRIVAL, rule_metric
    from headgate.reconcile.decision_table import verdict_rules

    words = {rule.metric: f"Keys with the verdict {rule.status}." for rule in verdict_rules()}
    words |= {metric: f"Records of a pair: {name}." for name, metric in COUNTED_METRICS.items()}
    words |= {LATE_ARRIVAL: "Keys whose sides came together after the grace time."}
    for metric, meaning in words.items():
        yield replace(rule_metric(metric), help=meaning)


def _rule_names(table: str) -> Iterator[dict[str, object]]:
    from headgate.config.settings import load_settings
    from headgate.core.metrics.names import (
        COUNTED,
        COUNTED_METRICS,
        LATE_ARRIVAL,
        flat,
        namespaced,
        prometheus,
    )
    from headgate.core.sql.script import PLACEHOLDERS
    from headgate.quality.compile.resolve import judged_table
    from headgate.quality.compile.results import all_rules
    from headgate.quality.spec.loader import find_table, load_rules

    settings = load_settings()
    file = find_table(settings.root, table)
    declared = load_rules(file, PLACEHOLDERS)
    namespace = declared.value.metrics.namespace
    judged = judged_table(declared, declared.value.table(table))
    counted = [(rule.name, rule.severity, rule.metric) for rule in all_rules(judged)]
    if judged.table.reconcile is not None:
        metrics = {**COUNTED_METRICS, LATE_ARRIVAL: LATE_ARRIVAL}
        counted += [(f"{COUNTED}{name}", "INFO", metric) for name, metric in metrics.items()]
    for name, severity, metric in counted:
        yield {
            "rule": name,
            "severity": severity,
            "dotted": namespaced(namespace, metric),
            "flat": flat(metric),
            "prometheus": prometheus(metric),
        }


@group.command()
@click.argument("prefix", default="")
@click.option("--prometheus", is_flag=True, help="As Prometheus reads them.")
def show(prefix: str, prometheus: bool) -> None:
    """Print the values now of metrics whose names begin with PREFIX; needs no engine."""
    from headgate.core.engine.job_kind import find_trigger
    from headgate.core.metrics.prometheus import exposition
    from headgate.core.metrics.readings import Readings

    with _store() as store:
        families = Readings(store, find_trigger=find_trigger).families()
    found = [family for family in families if family.metric.name.startswith(prefix)]
    rows = [row for family in found for row in _rows(family)]
    if prometheus:
        console.data(rows, exposition(found).rstrip("\n"))
    else:
        console.data(rows)


def _rows(family: Family) -> Iterator[dict[str, object]]:
    for values, value in family.samples:
        labels = dict(zip(family.metric.labels, values, strict=True))
        words = " ".join(f"{key}={label}" for key, label in labels.items())
        shown = int(value) if value == int(value) else round(value, 6)
        yield {"name": family.metric.name, "value": shown, "labels": words}


@group.command()
@click.argument("job", required=False)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="The newest.")
def windows(job: str | None, limit: int) -> None:
    """Print windows with their sums, and which sinks have sent them.

    A closed window whose sums changed has a sequence above 1, and is late if rows came to it; of a
    table, which is judged anew each time, none is. `sent` names the sequence that each sink has sent.
    """
    with _store() as store:
        found = store.windows(job, limit)
        sent = {
            (name, start): sinks
            for name in {window.job for window in found}
            for start, sinks in store.sent_windows(
                name, [w.window_start for w in found if w.job == name]
            ).items()
        }
        console.data([_window_row(w, sent.get((w.job, w.window_start), {})) for w in found])


def _window_row(window: Window, sent: Mapping[str, int]) -> dict[str, object]:
    record = window.record or {}
    totals = record.get("totals", {})
    return {
        "job": window.job,
        "window_start": f"{window.window_start:%Y-%m-%dT%H:%M:%SZ}",
        "state": ("open" if not window.sequence else "touched") if window.is_pending else "closed",
        "sequence": window.sequence,
        "late": bool(record.get("late", False)),
        "rows": record.get("rows"),
        **{name.lower(): totals.get(name) for name in ("ERROR", "WARN", "INFO")},
        "sent": " ".join(f"{sink}:{sequence}" for sink, sequence in sorted(sent.items())),
    }


@group.command()
@click.option("--sink", "only", help="This one alone: kafka, dogstatsd or http.")
@click.option("--again", is_flag=True, help="All records that are kept, not only those that wait.")
@click.option("--dry-run", is_flag=True, help="Say what waits, and send nothing.")
def send(only: str | None, again: bool, dry_run: bool) -> None:
    """Send windows and batches that wait, without an engine; exit code 8 when a sink is away.

    A record that comes a second time has the same id; an agent is never sent the same counts twice.
    """
    from headgate.config.settings import load_settings

    settings = load_settings()
    chosen = _chosen(settings, only)
    with _store() as store:
        if dry_run:
            console.data([_waiting(store, sink) for sink in chosen])
            return
        if again:
            for sink in chosen:
                store.register_sink(sink.name)
                store.rewind_sink(sink.name, batches=not sink.at_most_once)
        _send(store, chosen)


def _chosen(settings: Settings, only: str | None) -> tuple[Sink, ...]:
    from headgate.core.engine.telemetry import sinks_of

    configured = sinks_of(settings)
    chosen = tuple(sink for sink in configured if only in (None, sink.name))
    if not chosen:
        known = ", ".join(sink.name for sink in configured) or "none"
        raise UsageError(
            f"no sink {only} is set up" if only else "no sink is set up",
            why=f"set up are: {known}",
            fix="start a broker (headgate local up), or set DOGSTATSD_ADDRESS or METRICS_PUSH_URL",
        )
    return chosen


def _waiting(store: OpsStore, sink: Sink) -> dict[str, object]:
    known = {state.name: state for state in store.sinks()}.get(sink.name)
    return {
        "sink": sink.name,
        "waiting": store.waiting_windows(known) if known else 0,
        "failures": known.failures if known else 0,
        "trouble": known.trouble if known else None,
    }


def _send(store: OpsStore, chosen: tuple[Sink, ...]) -> None:
    from headgate.core.metrics.delivery import Deliverer

    deliverer = Deliverer(store, chosen)
    sent, errors = deliverer.deliver_now()
    deliverer.close()
    console.data([_waiting(store, sink) for sink in chosen])
    if errors:
        first = next(iter(errors.values()))
        raise UnavailableError(
            f"not sent by {', '.join(errors)}: {first.what}", why=first.why, fix=first.fix
        )
    console.done(f"{sent:,} records sent" if sent else "nothing waited")


def _store() -> OpsStore:
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore

    return OpsStore.open(load_settings().ops_store_url)


@click.group()
def obs() -> None:
    """Start and stop Prometheus and Grafana; they need Docker.

    \b
    Examples:
      headgate obs up
      headgate obs down
    """


@obs.command()
def up() -> None:
    """Start both; the dashboard is Grafana's home screen. Exit code 8 without Docker."""
    from headgate.config.settings import load_settings
    from headgate.local.observability import obs_up

    settings = load_settings()
    screens = obs_up(settings)
    if not settings.metrics_url:
        console.warn("no engine runs yet: make up")
    console.done("up; the user and password are GRAFANA_ADMIN_USER and GRAFANA_ADMIN_PASSWORD")
    console.data(screens)


@obs.command()
def down() -> None:
    """Stop both and forget what they kept; the pipeline goes on."""
    from headgate.config.settings import load_settings
    from headgate.local.observability import obs_down

    obs_down(load_settings())
    console.done("Prometheus and Grafana are gone; `headgate obs up` starts them afresh")
