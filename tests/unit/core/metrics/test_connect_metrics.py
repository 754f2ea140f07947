"""What Connect counts is passed on under our names, by connector, and only that."""

from __future__ import annotations

from headgate.core.metrics import names
from headgate.core.metrics.connect import PASSED_ON, ConnectWatch, passed_on, together
from headgate.core.metrics.prometheus import exposition
from headgate.core.metrics.readings import Family

TEXT = """# HELP headgate_connect_hashrow_errors_total x
# TYPE headgate_connect_hashrow_errors_total counter
headgate_connect_hashrow_errors_total{connector="cloud",} 3.0
headgate_connect_hashrow_missing_fields_total{connector="cloud",} 2.0
headgate_connect_hashrow_dead_letters_total{connector="cloud",} 3.0
headgate_connect_cassandrapoll_dead_letters_total{connector="cloud"} 1.0
headgate_connect_hashrow_hashed_total{connector="cloud",} 900.0
headgate_connect_hashrow_schema_drift_total{connector="cloud",} NaN
kafka_connect_connector_task_status{connector="cloud",task="0",} 1.0
"""


def test_the_counters_of_our_plugins_get_our_names() -> None:
    found = {family.metric.name: dict(family.samples) for family in passed_on(TEXT)}
    assert found == {
        "dq_smt_errors_total": {("cloud",): 3.0},
        "dq_smt_missing_fields_total": {("cloud",): 2.0},
        "dq_dlq_records_total": {("cloud",): 4.0},
    }


def test_a_metric_of_both_stands_on_the_page_once() -> None:
    own = (Family(names.DEAD_LETTERS, ((("bronze-x",), 1.0),)),)
    page = exposition(together(own, passed_on(TEXT)))
    assert page.count("# TYPE dq_dlq_records_total") == 1
    assert 'dq_dlq_records_total{job="bronze-x"} 1\n' in page
    assert 'dq_dlq_records_total{connector="cloud"} 4\n' in page


def test_a_connector_is_no_table_and_no_job() -> None:
    every = "\n".join(f'{name}{{connector="cloud"}} 1.0' for name in PASSED_ON)
    page = exposition(passed_on(every))
    assert page.count('{connector="cloud"}') == len(set(PASSED_ON.values()))
    assert "table=" not in page
    assert "job=" not in page


def test_a_worker_that_is_away_takes_its_counters_with_it() -> None:
    answers = iter([TEXT, OSError("away")])

    def read(url: str, timeout: float) -> str:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    watch = ConnectWatch("http://worker/metrics", 1.0, read)
    watch.look()
    assert len(watch.families) == 3
    watch.look()
    assert watch.families == ()
