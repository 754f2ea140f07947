"""Alembic's environment for the ops store's schema: runs inside the transaction and lock of `database.migrate`.

`versions/` has one file a version. This folder is no package: nothing imports it, Alembic loads it by its path. It
may import the tables of every capability, so that one version creates all of them at once.
"""

from __future__ import annotations

from alembic import context

from headgate.core.ledger.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
