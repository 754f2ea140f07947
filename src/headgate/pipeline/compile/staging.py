"""The dbt staging model of a dataset: every silver row under the names used from there on."""

from __future__ import annotations

import re

from headgate.conditions.keywords import RESERVED
from headgate.core.sql.compile_fragments import view_stem
from headgate.pipeline.spec import Dataset

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
# Words that DuckDB reserves beyond Spark's.
_DUCKDB_RESERVED = frozenset(
    """
    ANALYSE ANALYZE ASOF ASYMMETRIC BINARY BY COLUMNS CONCURRENTLY DEFERRABLE DESCRIBE DO FREEZE
    GENERATED GLOB INITIALLY ISNULL LAMBDA NOTNULL PIVOT PIVOT_LONGER PIVOT_WIDER PLACING POSITIONAL
    QUALIFY RETURNING SHOW SIMILAR SUMMARIZE SYMMETRIC TABLESAMPLE TRY_CAST UNPACK UNPIVOT
    VARIADIC VERBOSE
    """.split()
)


def staging_model(dataset: Dataset) -> str:
    return f"stg_{view_stem(dataset.name)}"


def staging_file(dataset: Dataset) -> str:
    return f"{staging_model(dataset)}.sql"


def staging_columns(dataset: Dataset) -> str:
    """Silver's columns; of those that say where a row came from, only when it was taken in."""
    names = (
        dataset.surrogate_key_name,
        *(column.silver_name for column in dataset.columns),
        dataset.partition_date_col,
        "ingestion_ts",
    )
    return ",\n".join(quoted(name) for name in names)


def quoted(name: str) -> str:
    """A name in DuckDB's SQL, which folds case and has its own keywords."""
    reserved = name.upper() in RESERVED or name.upper() in _DUCKDB_RESERVED
    bare = _PLAIN.fullmatch(name) and not reserved
    return name if bare else '"' + name.replace('"', '""') + '"'


def staging_source(dataset: Dataset) -> str:
    """dbt's own call, filled when dbt runs."""
    schema, table = dataset.silver_table.split(".", 1)
    return f"{{{{ source('{schema}', '{table}') }}}}"
