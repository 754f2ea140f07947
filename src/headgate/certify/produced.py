"""The lines of the account that hold the ledger against the topic."""

from __future__ import annotations

from headgate.certify.account_evidence import Evidence, Sums
from headgate.core.accounting.facts import Line, Verdict, line
from headgate.core.accounting.topic import BatchCount, OnTopic, differing, on_topic
from headgate.core.sql.compile_fragments import job_name
from headgate.plurals import count_of

MOST_TOLD = 5


def produced(evidence: Evidence) -> int:
    """Records ever put on the topic, by the broker when it answers, else by the ledger."""
    return _on_topic(evidence).produced


def produced_line(evidence: Evidence, total: Sums) -> Line:
    found, parts = _on_topic(evidence), total.accepted + total.refused + total.tombstones
    under_way = max(0, found.after) if evidence.streaming and evidence.confirmed else 0
    found = OnTopic(found.produced - under_way, found.before, found.after - under_way)
    words = (
        f"produced {found.produced:,} = bronze {total.accepted:,}"
        f" + dead letters {total.refused:,} + tombstones {total.tombstones:,}"
    )
    if found.produced != parts:
        return line("produced", False, words, _unread(evidence, found, found.produced - parts))
    note = f"{under_way:,} more wait on the topic" if under_way else _why_alone(evidence)
    return Line("produced", Verdict.WARN if note else Verdict.PASS, words, note)


def _on_topic(evidence: Evidence) -> OnTopic:
    if evidence.on_broker is None:
        return OnTopic(sum(row.read for row in evidence.bronze_ledger))
    return on_topic(evidence.bronze_ledger, evidence.on_broker, evidence.recount)


def _unread(evidence: Evidence, found: OnTopic, rest: int) -> str:
    """Why more or fewer records were produced than have an outcome."""
    after = f"{found.after:,} records on the topic are not yet processed"
    if evidence.on_broker and not evidence.confirmed:
        job = job_name("bronze", evidence.dataset)
        after += f": it was made again (headgate job repair {job})"
    reasons = (
        (found.before > 0, f"{found.before:,} records before the first batch have not been read"),
        (found.after > 0, after),
        (found.after < 0, f"the topic ends {-found.after:,} offsets before the last batch does"),
    )
    told = [words for holds, words in reasons if holds]
    return "; ".join(told) or f"{rest:+,} not accounted for"


def _why_alone(evidence: Evidence) -> str:
    """Why the broker cannot confirm what the ledger says; nothing when it can."""
    if evidence.confirmed:
        return ""
    again = f"the topic {evidence.topic} was made again"
    return f"by the ledger alone: {again if evidence.on_broker else evidence.why_no_broker}"


def counted_lines(evidence: Evidence) -> tuple[Line, ...]:
    """The topic's records, counted anew; the produced line says when there is no topic to count."""
    topic, found = evidence.confirmed, evidence.recount
    if topic is None or not evidence.bronze_ledger:
        return ()
    if found.why_not:
        words = "records and gaps were not counted again on the topic"
        return (Line("counted", Verdict.WARN, words, found.why_not),)
    left = (
        f", {count_of(found.left, 'batch', 'batches')} no longer whole there" if found.left else ""
    )
    words = f"{found.counted:,} records counted on the topic = ledger {found.read:,}{left}"
    wrong = differing(found, topic)
    if not wrong and found.counted < found.read:
        words = words.replace(" = ", " ≤ ")
        detail = "the topic is compacted: the others may have been removed since"
        return (Line("counted", Verdict.WARN, words, detail),)
    return (line("counted", not wrong, words, "; ".join(map(_told, wrong[:MOST_TOLD]))),)


def _told(batch: BatchCount) -> str:
    row = batch.batch
    return f"run {row.run} batch {row.batch_id}: {batch.counted:,} counted, {row.read:,} read"


def topic_lines(evidence: Evidence) -> tuple[Line, ...]:
    """The account is of the topic that was read; another one may be meant by now."""
    if evidence.declared_topic in ("", evidence.topic):
        return ()
    words = f"the account is of the topic {evidence.topic}"
    detail = f"declared is {evidence.declared_topic}, of which nothing was read since"
    return (Line("topic", Verdict.WARN, words, detail),)


def expired_lines(evidence: Evidence, total: Sums) -> tuple[Line, ...]:
    """What nobody has read and nobody will: it is named in every certificate from then on."""
    if not total.expired:
        return ()
    words = f"{count_of(total.expired, 'record')} expired on the topic before they were read"
    told = "; ".join(gap.sentence for gap in evidence.gaps)
    return (Line("expired", Verdict.WARN, words, told),)


def gaps_line(evidence: Evidence, total: Sums) -> Line:
    if not total.gaps:
        return Line("gaps", Verdict.PASS, "no offset is without a record")
    verb = "is" if total.gaps == 1 else "are"
    words = f"{count_of(total.gaps, 'offset')} {verb} without a record"
    topic = evidence.on_broker
    if topic and topic.compacted:
        return Line("gaps", Verdict.PASS, f"{words}: the topic is compacted")
    if topic and topic.transactions:
        return Line("gaps", Verdict.PASS, f"{words}: its broker has had transactions")
    unknown = "the topic is not compacted, and its broker knows of no transaction"
    return Line("gaps", Verdict.WARN, words, unknown if topic else evidence.why_no_broker)
