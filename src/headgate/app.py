"""The composition root: what the core and the command line load by name, each part only when it is used.

Nothing else names all capabilities. Every entry is a string `module:attribute`, so that `--help` starts in
a blink and no layer imports the one above it.
"""

from __future__ import annotations

import importlib
from typing import Any

# The nouns of the command line: what each is for, and the command that it loads.
NOUNS: dict[str, tuple[str, str]] = {
    "audit": ("read, check and export who did what to filters", "headgate.filters.cli.audit:group"),
    "certify": (
        "prove that every record is accounted for",
        "headgate.certify.cli:certify_command",
    ),
    "config": ("choose, show and check settings", "headgate.cli.config:group"),
    "connect": (
        "build the Connect plugins; deploy and watch connectors",
        "headgate.cli.connect:group",
    ),
    "dataset": ("check and compile dataset manifests", "headgate.pipeline.cli.dataset:group"),
    "dbt": ("build and test the marts", "headgate.pipeline.cli.dbt:group"),
    "demo": ("run the whole path on sample data", "headgate.demo.cli:group"),
    "dlq": ("browse dead letters and send them again", "headgate.dead_letters.cli:group"),
    "doctor": ("say what this machine has and lacks", "headgate.cli.local:doctor_command"),
    "engine": ("run the long-running Spark application", "headgate.cli.engine:group"),
    "feed": ("make sample data and send it to the topic", "headgate.pipeline.cli.feed:group"),
    "filters": (
        "submit, approve, deploy, follow and undo filters",
        "headgate.filters.cli.group:group",
    ),
    "hash": ("hash rows by contract, and prove that all sides agree", "headgate.cli.hash:group"),
    "job": ("run, start, watch, stop and mend jobs", "headgate.cli.job.group:group"),
    "keys": ("make, list and revoke keys of the API", "headgate.cli.keys:group"),
    "lake": ("count and wait for tables", "headgate.cli.lake:group"),
    "ledger": ("show, export and rebuild the ledger", "headgate.cli.ledger:group"),
    "local": ("start and stop the embedded services", "headgate.cli.local:group"),
    "maintain": ("compact, expire and vacuum tables", "headgate.maintenance.cli:group"),
    "metrics": ("list, show and send metrics", "headgate.cli.metrics:group"),
    "obs": ("start and stop Prometheus and Grafana", "headgate.cli.metrics:obs"),
    "reconcile": (
        "compare both sides key by key; tell, explain and repair differences",
        "headgate.reconcile.cli:group",
    ),
    "rules": ("check, test and compile rule sets", "headgate.quality.cli:group"),
    "serve": ("answer the API of filters", "headgate.cli.engine:serve_command"),
    "sql": ("query the running engine", "headgate.cli.engine:sql_command"),
    "topics": ("create and show topics", "headgate.cli.topics:group"),
    "validate": ("run the four-stage validation", "headgate.certify.cli:validate_command"),
}

# What a rule table with two sources needs of reconciliation: a `headgate.quality.pairs.PairSupport`.
PAIR_SUPPORT = "headgate.reconcile.rule_tables:PAIRS"

# `(settings, name)` gives what other capabilities take from a dataset's manifest.
DATASET_DEFAULTS = "headgate.pipeline.loader:dataset_defaults"


def load(entry: str) -> Any:
    """The attribute that an entry `module:attribute` names; its module is imported on first use."""
    module, _, attribute = entry.partition(":")
    return getattr(importlib.import_module(module), attribute)
