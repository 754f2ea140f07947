"""The commands `headgate dataset`, `headgate feed` and `headgate dbt`.

`dataset` is the noun with its verbs, `draft` drafts a manifest from a Parquet file, `manifest` checks it and
writes the files made from it, `feed` makes and sends sample data, `dbt` builds the marts.
No module here imports a heavy library at its head, so that `--help` starts quickly.
"""
