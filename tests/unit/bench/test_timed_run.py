"""A timed run of the whole path has a home of its own under any profile."""

from __future__ import annotations

from pathlib import Path

from bench.timed_run import own_environment

from headgate.config.settings import load_settings


def test_a_timed_run_writes_nothing_where_the_profile_points(project: Path) -> None:
    (project / ".env").write_text("WAREHOUSE=precious\nOPS_STORE_URL=sqlite:///precious.db\n")
    home = project / ".headgate" / "benchmark"

    settings = load_settings(project, own_environment(home, {}))

    assert settings.warehouse == str(home / "warehouse")
    assert settings.ops_store_url == f"sqlite:///{home}/ops.db"
