"""Declared files: YAML and JSON with line numbers, validated against typed models.

`yaml` parses text into nodes that know their lines; `document` fills in `${VAR}`, validates the
values against a model and collects every fault with its line; `types` are the column types,
durations and time patterns that declarations share, `columns` the columns of records; `names` are
those that a declaration cannot take; `project` finds the datasets of a project; `errors` holds a
refused value and a value with the place it was declared at.
Entry points: `document.read_document` then `document.validate`; each capability has its own models.
"""
