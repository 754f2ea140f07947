"""The files for Prometheus, Grafana and Datadog name only what is there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from headgate.core.metrics.names import BY_NAME, prometheus
from headgate.local.observability import COMPOSE_FILE, PROMETHEUS_FILE, TARGET
from headgate.reconcile.cli.hasher import METRICS_PORT
from headgate.reconcile.decision_table import statuses

ROOT = Path(__file__).parents[3]
HASHER = f"localhost:{METRICS_PORT}"
DASHBOARD = json.loads((ROOT / "infra/grafana/dashboards/pipeline.json").read_text("utf-8"))
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"]}
EXPRESSIONS = [t["expr"] for panel in DASHBOARD["panels"] for t in panel["targets"]]


def read(path: Path | str) -> Any:
    return YAML(typ="safe").load((ROOT / path).read_text("utf-8"))


def coloured(title: str) -> list[tuple[str, float | None]]:
    steps = PANELS[title]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    return [(step["color"], step["value"]) for step in steps]


def test_the_dashboard_asks_only_for_metrics_of_the_table() -> None:
    asked = {name for e in EXPRESSIONS for name in re.findall(r"\b(?:dq|headgate)_[a-z_]+", e)}
    assert asked
    assert asked <= set(BY_NAME)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_label_of_the_dashboard_is_one_of_its_metric(expression: str) -> None:
    metrics = re.findall(r"\b(?:dq|headgate)_[a-z_]+", expression)
    used = re.findall(r"by \(([^)]*)\)", expression) + re.findall(r"\{(\w+)=", expression)
    labels = {label.strip() for words in used for label in words.split(",")}
    assert all(labels <= set(BY_NAME[name].labels) for name in metrics)


def test_the_eight_documented_panels_are_there_with_their_colours() -> None:
    green, red = ("green", None), ("red", None)
    assert coloured("Running jobs") == coloured("Executors") == [red, ("green", 1)]
    assert coloured("Last batch duration") == [green, ("yellow", 5), ("red", 30)]
    assert coloured("Failed batches") == [green, ("red", 1)]
    assert coloured("JVM heap usage") == [green, ("yellow", 70), ("red", 90)]
    series = {"Records in and out per second", "Batch duration history", "Cores"}
    assert {PANELS[title]["type"] for title in series} == {"timeseries"}
    assert all(len(PANELS[title]["targets"]) == 2 for title in series)


def test_no_two_panels_share_a_number_or_a_place() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_prometheus_scrapes_engine_and_hasher_on_their_documented_ports() -> None:
    found = read(PROMETHEUS_FILE)
    (scrape,) = found["scrape_configs"]
    assert found["global"]["scrape_interval"] == "15s"
    assert scrape["static_configs"] == [{"targets": [TARGET, HASHER]}]
    assert scrape["honor_labels"], "`job` is a label of ours"


def test_the_agent_scrapes_both_as_well() -> None:
    found = read("infra/datadog/openmetrics.yaml")["instances"]
    places = [instance["openmetrics_endpoint"] for instance in found]
    assert places == [f"http://{place}/metrics" for place in (TARGET, HASHER)]
    assert all(instance["metrics"] == [".+"] for instance in found)


def test_grafana_finds_its_data_source_and_its_home_screen_in_files() -> None:
    services = read(COMPOSE_FILE)["services"]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    (provider,) = read("infra/grafana/provisioning/dashboards/dashboards.yml")["providers"]
    assert home == f"{provider['options']['path']}/pipeline.json"
    (source,) = read("infra/grafana/provisioning/datasources/prometheus.yml")["datasources"]
    used = {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]}
    assert used == {source["uid"]}
    assert all(service["profiles"] == ["obs"] for service in services.values())
    folders = [v.split(":")[0] for v in services["grafana"]["volumes"]]
    assert all((ROOT / "infra" / folder).is_dir() for folder in folders)


def test_no_password_stands_in_the_overlay() -> None:
    text = (ROOT / COMPOSE_FILE).read_text("utf-8")
    assert "${GRAFANA_ADMIN_PASSWORD:?}" in text
    assert "admin" not in re.sub(r"GRAFANA_ADMIN_\w+|ADMIN_\w+", "", text)


def test_the_agent_listens_to_both_metrics_topics() -> None:
    found = read("infra/datadog/kafka_consumer.yaml")
    assert found["kafka_consumer"]["topics"] == ["dq-metrics", "dq.metrics"]
    (instance,) = found["instances"]
    listed = {topic for topics in instance["consumer_groups"].values() for topic in topics}
    assert {"dq-metrics", "dq.metrics"} <= listed


def test_every_monitor_watches_a_metric_that_is_there() -> None:
    monitors = json.loads((ROOT / "infra/datadog/monitors.json").read_text("utf-8"))
    verdicts = {prometheus(status.metric) for status in statuses().values() if status.metric}
    known = {*BY_NAME, *verdicts}
    assert any("dq_hash_mismatch" in m["query"] and m["query"].endswith("> 0") for m in monitors)
    for monitor in monitors:
        name, labels = re.findall(r":headgate\.(\w+).*?\{\*\}(?: by \{(\w+)\})?", monitor["query"])[
            0
        ]
        assert name in known or f"{name}_total" in known, name
        assert labels in ("", "table", "job")
        assert "thresholds" in monitor["options"]
