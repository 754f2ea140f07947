"""Create every table of the ops store as the code declares it.

Before the first release there is this one version. A change of the schema renumbers it, together
with `database.HEAD`, and stores of any other number are refused.
"""

from __future__ import annotations

from alembic import op

from headgate.app import STORE_TABLES, load
from headgate.core.ledger.tables import metadata

revision = "0013"
down_revision = None


def upgrade() -> None:
    for tables in STORE_TABLES:  # a module that is not imported adds none to the metadata
        load(tables)
    # A table that is there already is another program's: fail instead of using it.
    metadata.create_all(op.get_bind(), checkfirst=False)
