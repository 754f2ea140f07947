"""A repair seen through: what Spark says of the keys that were sent becomes valid, Connect polling beside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from bench.faults.reconcile.keys import PLAIN, make_table
from bench.faults.reconcile.rig import JOB, TABLE, PairRig, Times, pair_rig
from bench.faults.reconcile.scenario import CLOUD_TABLE
from bench.faults.rig import ended

from headgate.config.settings import load_settings
from headgate.demo.reconcile.planting import read_keys
from headgate.errors import UnavailableError
from headgate.local.process import wait_until
from headgate.reconcile.results import current_verdicts

KEYS, SECONDS, LOOK = 400, 400.0, 3.0
TIMES = Times(window=12, grace=4)
# On-prem said a wrong hash of a row that is equal: sending the row again cannot change that.
NEVER = "conflict_wrong"
# The plant says that these were deleted in the cloud after on-prem's version: the newer one stays.
DELETED_LATER = "zombie_onprem"
REPAIRED = {"MISMATCH": "MATCH", "MISSING_CLOUD": "MATCH", "ZOMBIE": "DELETE_EVENT"}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[PairRig]:
    settings = load_settings(environ={"HEADGATE_HOME": str(tmp_path), "SPARK_MASTER": "local[2]"})
    with pair_rig(settings, tmp_path / "rig", TIMES, with_connect=True) as made:
        made.home.home.mkdir(parents=True, exist_ok=True)
        make_table(made.home, CLOUD_TABLE)
        made.command("topics", "create", "--table", TABLE)
        made.start_engine()
        made.home = made.running_engine()
        made.command("job", "start", JOB)
        made.command("connect", "deploy", TABLE)
        made.start_hasher(TIMES.settled_after / 2)
        yield made


def statuses(rig: PairRig) -> Mapping[str, str]:
    try:
        found = current_verdicts(rig.home, TABLE)
    except UnavailableError:
        return {}
    return {each.pk: each.status if each.settled else "waiting" for each in found}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_keys_that_are_sent_again_become_valid_and_the_others_are_named(rig: PairRig) -> None:
    rig.command("feed", "pairs", "--keys", str(KEYS), "--phase", "first")
    keys = [key for key in read_keys(rig.home.home / "data" / "pairs") if key.expected.status]
    # Later waves never come here: what waits for them is missing in the cloud, or old there.
    assert wait_until(
        lambda: len(found := statuses(rig)) == len(keys) and "waiting" not in found.values(),
        SECONDS,
        LOOK,
    )
    before = statuses(rig)
    rig.command("reconcile", "repair", TABLE, "--yes")
    roles = {key.pk: key.role for key in keys}
    never = {pk for pk, role in roles.items() if role in (NEVER, DELETED_LATER)}
    broken = {pk for pk, status in before.items() if PLAIN.get(status, status) in REPAIRED}

    def followed(after: Mapping[str, str]) -> bool:
        return all(is_repaired(before[pk], after[pk]) for pk in broken - never)

    assert wait_until(lambda: followed(statuses(rig)), SECONDS, LOOK), told(before, statuses(rig))
    print(told(before, statuses(rig)))
    assert {roles[pk] for pk in broken} >= {"real", "trim", "missing_cloud", "zombie_cloud"}
    # What is left cannot be mended from here: the next repair sends it again, and names it.
    words = ("-o", "json", "reconcile", "repair", TABLE, "--yes", "--wait", "5")
    done = ended(rig.begin("repair", *words))
    report, _ = json.JSONDecoder().raw_decode(done.log[done.log.index("{") :])
    assert done.exit_code == 5, done.log
    assert {*report["followed"]["wrong"]} == never


def is_repaired(before: str, after: str) -> bool:
    return PLAIN.get(after, after) == REPAIRED[PLAIN.get(before, before)]


def told(before: Mapping[str, str], after: Mapping[str, str]) -> Counter[str]:
    return Counter(f"{before[pk]} -> {after[pk]}" for pk in before)
