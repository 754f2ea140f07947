"""The `headgate` command line: `main` builds the root from the nouns listed in `headgate.app`.

The other files are nouns that belong to no capability: jobs, engine, server, SQL and sample data.
Commands of a capability stand in its own folder.
"""
