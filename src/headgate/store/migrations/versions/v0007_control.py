"""Filters with their versions, approvals and operations, the audit chain, git errands, API keys."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME, HASH, WORD, TIME = sa.String(200), sa.String(64), sa.String(20), sa.String(32)


def upgrade() -> None:
    _filters()
    _versions_and_approvals()
    _operations()
    _audit()
    _errands()
    _keys_and_answers()


def _needed(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _filters() -> None:
    op.create_table(
        "filters",
        sa.Column("id", NAME, primary_key=True),
        _needed("version", sa.Integer()),
        _needed("revision", HASH),
        _needed("status", WORD),
        _needed("document", sa.Text()),
        _needed("consumer", sa.String(300)),
        _needed("author", NAME),
        _needed("created_at", TIME),
        _needed("updated_at", TIME),
        sa.Column("approved_by", NAME),
        sa.Column("approved_at", TIME),
        sa.Column("deployed_at", TIME),
        sa.Column("deployed_version", sa.Integer()),
        sa.Column("deployed_revision", HASH),
        sa.Column("deployment_error", sa.Text()),
        _needed("paused", sa.Boolean()),
        _needed("target", sa.String(50)),
        _needed("statement_ids", sa.Text()),
        sa.Column("wanted_version", sa.Integer()),
        sa.Column("wanted_deployment", HASH),
        sa.Column("accepted_version", sa.Integer()),
        sa.Column("former_status", WORD),
        sa.Column("asked_by", NAME),
    )
    op.create_index("ix_filters_consumer", "filters", ["consumer"])


def _versions_and_approvals() -> None:
    op.create_table(
        "filter_versions",
        sa.Column("filter_id", NAME, primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        _needed("revision", HASH),
        _needed("document", sa.Text()),
        _needed("author", NAME),
        _needed("authors", sa.Text()),
        _needed("written_at", TIME),
        _needed("sql_hash", HASH),
        _needed("note", sa.Text()),
    )
    op.create_table(
        "approvals",
        sa.Column("id", HASH, primary_key=True),
        _needed("filter_id", NAME),
        _needed("version", sa.Integer()),
        _needed("bound", HASH),
        _needed("decision", WORD),
        _needed("by", NAME),
        _needed("comment", sa.Text()),
        _needed("at", TIME),
        _needed("expires_at", TIME),
        _needed("void", sa.Text()),
    )
    op.create_index("approvals_by_filter", "approvals", ["filter_id", "version"])


def _operations() -> None:
    op.create_table(
        "operations",
        sa.Column("id", HASH, primary_key=True),
        _needed("kind", WORD),
        _needed("filter_id", NAME),
        _needed("version", sa.Integer()),
        _needed("revision", HASH),
        _needed("target", sa.String(50)),
        _needed("state", WORD),
        _needed("by", NAME),
        _needed("at", TIME),
        _needed("deadline", TIME),
        sa.Column("ended_at", TIME),
        sa.Column("error", sa.Text()),
        _needed("statement_ids", sa.Text()),
        _needed("automatic", sa.Boolean()),
        _needed("paused_before", sa.Boolean()),
    )
    op.create_index("operations_by_filter", "operations", ["filter_id", "at"])
    running = sa.text("state = 'running'")
    op.create_index(
        "one_running_operation",
        "operations",
        ["filter_id"],
        unique=True,
        sqlite_where=running,
        postgresql_where=running,
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        _needed("at", TIME),
        _needed("actor", NAME),
        _needed("action", sa.String(50)),
        _needed("subject", NAME),
        _needed("detail", sa.Text()),
        _needed("previous", HASH),
        _needed("hash", HASH),
    )
    op.create_index("ix_audit_subject", "audit", ["subject"])
    op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        _needed("seq", sa.BigInteger()),
        _needed("hash", HASH),
    )


def _errands() -> None:
    op.create_table(
        "git_errands",
        sa.Column("id", ROW_ID, primary_key=True),
        _needed("filter_id", NAME),
        sa.Column("text", sa.Text()),
        _needed("author", NAME),
        _needed("message", sa.Text()),
        _needed("at", TIME),
        sa.Column("commit", HASH),
        _needed("trouble", sa.Text()),
    )
    op.create_index("ix_git_errands_commit", "git_errands", ["commit"])


def _keys_and_answers() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", HASH, primary_key=True),
        _needed("name", NAME),
        _needed("hash", NAME),
        _needed("roles", sa.Text()),
        _needed("created_at", TIME),
        sa.Column("expires_at", TIME),
        sa.Column("revoked_at", TIME),
        sa.Column("last_used_at", TIME),
    )
    op.create_table(
        "answers",
        sa.Column("actor", NAME, primary_key=True),
        sa.Column("key", NAME, primary_key=True),
        _needed("request", HASH),
        _needed("at", TIME),
        _needed("status", sa.Integer()),
        _needed("body", sa.Text()),
        _needed("headers", sa.Text()),
    )
    op.create_index("ix_answers_at", "answers", ["at"])
