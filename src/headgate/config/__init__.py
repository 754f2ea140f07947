"""Settings: typed values from env files and the environment, checked before anything starts.

`env_files` reads the profile, what running local services wrote about themselves, and the
environment, each value with its file and line; `schema` declares every variable once with its type
and default, and the rules between variables; `reference` describes a variable and its faults to a
person; `settings` puts the sources in order of strength and returns `Settings`.
Entry points: `settings.load_settings()` for everything that runs, `Settings(...)` in tests,
`env_files.find_root()` for commands that only need the project's folder.
"""
