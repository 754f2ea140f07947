"""A filter deployed to Confluent's Flink over HTTP, with the variables of the documents (a fake answers)."""

from __future__ import annotations

from pathlib import Path

from tests.support.api_server import FILTER, run_api
from tests.support.fake_confluent import ENVIRONMENT, KEY, ORGANIZATION, SECRET, fake_confluent

ID, TOPIC = FILTER["id"], FILTER["outputTopic"]


def test_a_filter_is_deployed_to_the_pool_and_cluster_that_the_settings_name(
    tmp_path: Path,
) -> None:
    with (
        fake_confluent() as fake,
        run_api(
            tmp_path,
            confluent_flink_api_endpoint=fake.endpoint,
            confluent_organization_id=ORGANIZATION,
            confluent_environment_id=ENVIRONMENT,
            confluent_flink_compute_pool_id="lfcp-of-mine",
            confluent_kafka_cluster_id="lkc-of-mine",
            confluent_cloud_api_key=KEY,
            confluent_cloud_api_secret=SECRET,
        ) as api,
        api.client("ann") as ann,
        api.client("bob") as bob,
        api.client("dan") as dan,
    ):
        bob.approve(ID, ann.create(FILTER).revision)
        done = dan.wait(dan.deploy(ID, "confluent").operation, 120)
        assert (done.state, done.error) == ("succeeded", None)
        found = dan.get(ID)
        assert (found.status, found.target) == ("deployed", "confluent")
        assert found.flink_statement_ids == [f"{TOPIC}-sink", f"{TOPIC}-insert"]
        for name in found.flink_statement_ids:
            written = str(fake.statements[name].body)
            assert "lfcp-of-mine" in written
            assert "lkc-of-mine" in written
            assert SECRET not in written
        assert dan.status(ID).flink_statement_ids == found.flink_statement_ids
