"""The command line starts in a blink: a large library is loaded by what a command does, not with the command."""

from __future__ import annotations

import json
import subprocess
import sys

LARGE_LIBRARIES = frozenset(
    {
        *("cassandra", "confluent_kafka", "duckdb", "fastapi", "httpx", "jwt", "pandas", "psycopg"),
        *("pyarrow", "pyspark", "rich", "sqlalchemy", "uvicorn"),
    }
)
# In a process of its own: this one has loaded most of them. Prints the number of commands and the modules.
LOAD_ALL_COMMANDS = """
import json, sys
import click
from headgate.cli.main import cli

def load(command):
    if not isinstance(command, click.Group):
        return 1
    context = click.Context(command)
    return sum(load(command.get_command(context, name)) for name in command.list_commands(context))

commands = load(cli)
print(json.dumps([commands, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_loading_every_command_loads_no_large_library() -> None:
    child = [sys.executable, "-c", LOAD_ALL_COMMANDS]
    done = subprocess.run(child, capture_output=True, text=True, check=True)
    commands, libraries = json.loads(done.stdout)
    assert commands > 100
    assert not LARGE_LIBRARIES & set(libraries)
