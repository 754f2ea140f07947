"""Headgate: declared datasets, rules and filters on Kafka, Spark and Iceberg, every record accounted for.

Seven capabilities stand over one core: `pipeline`, `quality`, `reconcile`, `filters`, `maintenance`,
`dead_letters`, `certify`. Below them are `core`, `hashing`, `conditions`, `declarations` and `config`; beside
them the toolkits `terminal` and `web`; above them `api`, `local`, `cli` and `demo`. A module imports only what
is below it; `app` names by string what must be found from below. docs/architecture.md is the guided tour.
Imported during setup, before any package is installed: it must not import anything.
"""

__version__ = "0.1.0"
