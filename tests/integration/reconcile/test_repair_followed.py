"""A repair seen through: what Spark says of the keys that were sent becomes valid, Connect polling beside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from bench.faults.reconcile.keys import WITHOUT_LATENESS, make_table
from bench.faults.reconcile.rig import JOB, TABLE, PairRig, Times, open_pair_rig
from bench.faults.rig import run_command, start_command, wait_for_end

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
    with open_pair_rig(settings, tmp_path / "rig", TIMES, with_connect=True) as made:
        make_table(made.home)
        run_command(made.home, "topics", "create", "--table", TABLE)
        made.engine.start()
        made.home = made.client_settings()
        run_command(made.home, "job", "start", JOB)
        run_command(made.home, "connect", "deploy", TABLE)
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
    run_command(rig.home, "feed", "pairs", "--keys", str(KEYS), "--phase", "first")
    keys = [key for key in read_keys(rig.home.home / "data" / "pairs") if key.expected.status]
    # Later waves never come here: what waits for them is missing in the cloud, or old there.
    assert wait_until(
        lambda: len(found := statuses(rig)) == len(keys) and "waiting" not in found.values(),
        SECONDS,
        LOOK,
    )
    before = statuses(rig)
    run_command(rig.home, "reconcile", "repair", TABLE, "--yes")
    roles = {key.pk: key.role for key in keys}
    never = {pk for pk, role in roles.items() if role in (NEVER, DELETED_LATER)}
    broken = {
        pk for pk, status in before.items() if WITHOUT_LATENESS.get(status, status) in REPAIRED
    }

    def followed(after: Mapping[str, str]) -> bool:
        return all(is_repaired(before[pk], after[pk]) for pk in broken - never)

    assert wait_until(lambda: followed(statuses(rig)), SECONDS, LOOK), told(before, statuses(rig))
    print(told(before, statuses(rig)))
    assert {roles[pk] for pk in broken} >= {"real", "trim", "missing_cloud", "zombie_cloud"}
    # What is left cannot be mended from here: the next repair sends it again, and names it.
    words = ("-o", "json", "reconcile", "repair", TABLE, "--yes", "--wait", "5")
    done = wait_for_end(start_command(rig.home, "repair", *words))
    report, _ = json.JSONDecoder().raw_decode(done.log[done.log.index("{") :])
    assert done.exit_code == 5, done.log
    assert {*report["followed"]["wrong"]} == never


def is_repaired(before: str, after: str) -> bool:
    return WITHOUT_LATENESS.get(after, after) == REPAIRED[WITHOUT_LATENESS.get(before, before)]


def told(before: Mapping[str, str], after: Mapping[str, str]) -> Counter[str]:
    return Counter(f"{before[pk]} -> {after[pk]}" for pk in before)
