"""Runs inside the transaction and under the lock that `database.migrate` holds."""

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
