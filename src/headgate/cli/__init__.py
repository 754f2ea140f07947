"""The `headgate` command line: the root command, and the nouns that belong to no capability.

`main` builds the root from the nouns listed in `headgate.app` and turns errors into messages and exit codes.
Nouns here: `config`, `connect`, `engine` (with `serve` and `sql`), `hash`, `job`, `keys`, `lake`, `ledger`,
`local` (with `doctor`), `metrics` (with `obs`), `topics`. Commands of a capability stand in its own folder.
No module here imports a heavy library at its head, so that `--help` starts quickly.
"""
