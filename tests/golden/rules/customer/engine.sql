-- What the job of customer does with the views of dq_generated.sql; it makes the tables itself.
-- Compiled from rules.yaml, revision ca9cb45ddd88, by Headgate 0.1.0.

-- Of the batch: the revision that judges it, its offsets as JSON, and up to when windows are closed.
-- step: clock
DECLARE OR REPLACE VARIABLE batch_revision STRING;
DECLARE OR REPLACE VARIABLE batch_range STRING;
DECLARE OR REPLACE VARIABLE closed_before TIMESTAMP;

-- The states of the streaming query, one for each key and window of 3,600 seconds: when a window
-- has ended, Spark drops its states. The table below keeps them.
-- step: states view
CREATE OR REPLACE TEMPORARY VIEW dq_window_states_customer AS
SELECT
  pk,
  window.start AS window_start,
  max(onprem) AS onprem,
  min(onprem_first) AS onprem_first,
  max(onprem_end) AS onprem_end,
  max(onprem_greatest) AS onprem_greatest,
  min(onprem_least) AS onprem_least,
  max(cloud) AS cloud,
  min(cloud_first) AS cloud_first,
  max(cloud_end) AS cloud_end,
  max(cloud_greatest) AS cloud_greatest,
  min(cloud_least) AS cloud_least,
  count(*) AS records
FROM dq_message_states_customer
GROUP BY pk, window;

-- States are only ever added: the state of a key is the merge of all its rows. The job replaces
-- this view with the states of the batch and the batch's time.
-- step: states
INSERT INTO lake.dq.states_customer BY NAME
SELECT *
FROM dq_window_states_customer;

-- Every change of a verdict is kept: it is the audit of the pair. The job replaces this view with
-- the results that are a change.
-- step: accept
INSERT INTO lake.dq.results_customer BY NAME
SELECT
  pk, action, dq_status, dq_reason, dq_severity, dq_rules, dq_outcome, hash_onprem, hash_cloud, event_time, window_start, row,
  processing_time, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, id, verdict, provisional, rollup, settled,
  settled_by, within_grace, late, stale, conflict, onprem_version, cloud_version, onprem_read_at, cloud_read_at, deadline, origin,
  session.batch_revision AS revision
FROM dq_changes_customer;

-- What the committed results add to each window: its rows, and for each rule the rows whose status
-- it gave (n) and those that it matched (matched).
-- step: partial view
CREATE OR REPLACE TEMPORARY VIEW dq_partials_customer AS
SELECT
  window_start, IF(rule IS NULL, 'rows', 'rule') AS kind, coalesce(rule, 'rows') AS name, metric, severity,
  string(NULL) AS grp, n, matched, double(NULL) AS total, bigint(NULL) AS nulls, binary(NULL) AS sketch, newest
FROM (
  SELECT window_start, rule, count_if(place <= 1) AS n, count(*) AS matched, max(event_time) AS newest
  FROM dq_committed_customer
  LATERAL VIEW posexplode(concat(array(string(NULL)), coalesce(dq_rules, array()))) found AS place, rule
  WHERE settled
  GROUP BY window_start, rule
) counted
LEFT JOIN VALUES
  ('delete_event', 'delete_count', 'INFO'), ('missing_onprem', 'missing_onprem', 'WARN'),
  ('missing_cloud', 'missing_cloud', 'ERROR'), ('invalid_hash', 'invalid_hash', 'ERROR'),
  ('hash_mismatch', 'hash_mismatch', 'ERROR'), ('verdict_match', 'hash_match', 'INFO'),
  ('verdict_late_match', 'hash_match', 'INFO'), ('verdict_delete_event', 'delete_event', 'INFO'),
  ('verdict_mismatch', 'hash_mismatch', 'ERROR'), ('verdict_late_mismatch', 'hash_mismatch', 'ERROR'),
  ('verdict_zombie', 'zombie', 'ERROR'), ('verdict_version_skew', 'version_skew', 'ERROR'),
  ('verdict_invalid_hash', 'invalid_hash', 'ERROR'), ('verdict_missing_cloud', 'missing_cloud', 'ERROR'),
  ('verdict_missing_onprem', 'missing_onprem', 'ERROR')
AS known (name, metric, severity) ON known.name = rule;

-- The sums of a window are those of its partials.
-- step: partials
INSERT INTO lake.dq.partials_customer BY NAME
SELECT
  *, 'prod' AS env, 'onprem' AS dc, 'customer_onprem' AS table_name, 'onprem.customer.events' AS topic_name,
  coalesce(timestamp_seconds(unix_seconds(window_start) + 10) <= session.closed_before, FALSE) AS late,
  session.batch_revision AS revision, session.batch_range AS range, session.batch_time AS batch_time
FROM (SELECT * FROM dq_partials_customer);

-- What became of every record: each has one outcome.
-- step: outcomes
SELECT
  side,
  CASE
    WHEN _reason_code IS NOT NULL THEN 'refused'
    WHEN kafka_value IS NULL THEN 'tombstone'
    ELSE 'accepted'
  END AS outcome,
  _reason_code AS reason,
  count(*) AS n
FROM (
  SELECT 'onprem' AS side, kafka_value, _reason_code FROM onprem_customer_events_read
  UNION ALL
  SELECT 'cloud' AS side, kafka_value, _reason_code FROM cloud_customer_hash_read
)
GROUP BY ALL;

-- A duplicate is the same key, version and hash at another offset; whether an earlier batch had
-- it, the table of states knows.
-- step: counts
SELECT
  side, sum(n) AS messages, sum(IF(is_delete, n, 0L)) AS deletes, sum(n - 1) AS duplicates
FROM (
  SELECT side, action <=> 'DELETE' AS is_delete, count(*) AS n
  FROM dq_messages_customer
  GROUP BY side, pk, version, hash, action <=> 'DELETE'
)
GROUP BY side;

-- What could not be read, or a rule refuses: the original bytes, and why.
-- step: refuse
INSERT INTO lake.headgate.dead_letters BY NAME
SELECT
  'reconcile-customer' AS job, session.batch_revision AS revision, _reason_code AS reason_code,
  decode(_reason_code, 'dq_missing_pk', 'the record has no key', 'dq_unknown_action', 'the action is none of those there are', _reason)
      AS reason,
  kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, kafka_key, kafka_value, kafka_headers,
  session.batch_time AS refused_at
FROM onprem_customer_events_read
WHERE _reason_code IS NOT NULL
UNION ALL
SELECT
  'reconcile-customer' AS job, session.batch_revision AS revision, _reason_code AS reason_code,
  decode(_reason_code, 'dq_missing_pk', 'the record has no key', _reason) AS reason, kafka_topic, kafka_partition, kafka_offset,
  kafka_timestamp, kafka_key, kafka_value, kafka_headers, session.batch_time AS refused_at
FROM cloud_customer_hash_read
WHERE _reason_code IS NOT NULL;
