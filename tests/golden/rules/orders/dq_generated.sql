-- Data quality of orders: topic onprem.orders.events and topic cloud.orders.hash, judged by 5 rules.
-- Compiled from rules.yaml, revision e34d8970befa, by Headgate 0.1.0.
-- Then: SELECT * FROM dq_results_orders, SELECT * FROM dq_metrics_orders.
-- Run alone, it reads everything there is, and appends to the tables.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/rules/orders/dq_generated.sql

-- Every "now" of this file; the engine sets it to the time of the batch.
-- step: clock
DECLARE OR REPLACE VARIABLE batch_time TIMESTAMP DEFAULT current_timestamp();

-- Where the records come from, as JSON; the engine sets it.
DECLARE OR REPLACE VARIABLE batch_range STRING DEFAULT NULL;

-- Windows that end by then are closed: what still counts into them is late. The engine sets it.
DECLARE OR REPLACE VARIABLE closed_before TIMESTAMP DEFAULT NULL;

-- The revision that judges; the engine sets it to that of the batch.
-- step: revision
DECLARE OR REPLACE VARIABLE batch_revision STRING
DEFAULT 'e34d8970befafa09c9988028a1e3559ca7877e648d19c320dc77b05f9860b6c2';

-- The tables; their columns do not depend on the rules, so that new rules change none.
-- step: table
CREATE NAMESPACE IF NOT EXISTS lake.dq;

CREATE TABLE IF NOT EXISTS lake.dq.results_orders (
  pk STRING,
  action STRING,
  dq_status STRING,
  dq_reason STRING,
  dq_severity STRING,
  dq_rules ARRAY<STRING>,
  dq_outcome STRING,
  hash_onprem STRING,
  hash_cloud STRING,
  event_time TIMESTAMP,
  window_start TIMESTAMP,
  row STRING,
  revision STRING,
  processing_time TIMESTAMP,
  kafka_topic STRING,
  kafka_partition INT,
  kafka_offset BIGINT,
  kafka_timestamp TIMESTAMP
)
USING iceberg
TBLPROPERTIES (
  'format-version' = '2',
  'write.format.default' = 'parquet',
  'write.parquet.compression-codec' = 'snappy',
  'write.wap.enabled' = 'true',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '50'
);

CREATE TABLE IF NOT EXISTS lake.dq.partials_orders (
  window_start TIMESTAMP,
  env STRING,
  dc STRING,
  table_name STRING,
  topic_name STRING,
  kind STRING,
  name STRING,
  metric STRING,
  severity STRING,
  grp STRING,
  n BIGINT,
  held BIGINT,
  total DOUBLE,
  nulls BIGINT,
  sketch BINARY,
  newest TIMESTAMP,
  late BOOLEAN,
  revision STRING,
  range STRING,
  batch_time TIMESTAMP
)
USING iceberg
TBLPROPERTIES (
  'format-version' = '2',
  'write.format.default' = 'parquet',
  'write.parquet.compression-codec' = 'snappy',
  'write.wap.enabled' = 'true',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '50'
);

CREATE NAMESPACE IF NOT EXISTS lake.headgate;

CREATE TABLE IF NOT EXISTS lake.headgate.dead_letters (
  job STRING,
  revision STRING,
  reason_code STRING,
  reason STRING,
  kafka_topic STRING,
  kafka_partition INT,
  kafka_offset BIGINT,
  kafka_timestamp TIMESTAMP,
  kafka_key BINARY,
  kafka_value BINARY,
  kafka_headers ARRAY<STRUCT<key: STRING, value: BINARY>>,
  refused_at TIMESTAMP
)
USING iceberg
TBLPROPERTIES (
  'format-version' = '2',
  'write.format.default' = 'parquet',
  'write.parquet.compression-codec' = 'snappy',
  'write.wap.enabled' = 'true',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '50'
);

-- The engine binds this view to the records of one batch.
-- step: source
CREATE OR REPLACE TEMPORARY VIEW onprem_orders_events_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092',
  'kafka.isolation.level' 'read_committed',
  'subscribe' 'onprem.orders.events',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest',
  'includeHeaders' 'true'
);

-- Each record, read strictly: its fields, or the reason why it cannot be a row. A tombstone has no
-- fields: it is counted, not judged.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW onprem_orders_events_read AS
SELECT
  * EXCEPT (record),
  record.* EXCEPT (_reason_code),
  CASE
    WHEN record._reason_code IS NOT NULL THEN record._reason_code
    WHEN record.order_id IS NULL THEN 'dq_missing_pk'
  END AS _reason_code
FROM (
  SELECT
    topic AS kafka_topic,
    partition AS kafka_partition,
    offset AS kafka_offset,
    timestamp AS kafka_timestamp,
    key AS kafka_key,
    value AS kafka_value,
    headers AS kafka_headers,
    strict_json(
      value,
      'order_id STRING,
       action STRING,
       hash_onprem STRING,
       ts TIMESTAMP',
      map(
        'drift', 'keep',
        'timestampFormat', 'yyyy-MM-dd[\'T\'][\' \']HH:mm:ss[.SSSSSS][XXX]'
      )
    ) AS record
  FROM onprem_orders_events_source
  WHERE value IS NOT NULL
);

-- The rows that the rules see.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW onprem_orders_events AS
SELECT
  order_id,
  action,
  hash_onprem,
  ts,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM onprem_orders_events_read
WHERE _reason_code IS NULL;

-- The engine binds this view to the records of one batch.
-- step: source
CREATE OR REPLACE TEMPORARY VIEW cloud_orders_hash_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092',
  'kafka.isolation.level' 'read_committed',
  'subscribe' 'cloud.orders.hash',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest',
  'includeHeaders' 'true'
);

-- Each record, read strictly: its fields, or the reason why it cannot be a row. A tombstone has no
-- fields: it is counted, not judged.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW cloud_orders_hash_read AS
SELECT
  * EXCEPT (record),
  record.* EXCEPT (_reason_code),
  CASE
    WHEN record._reason_code IS NOT NULL THEN record._reason_code
    WHEN record.order_id IS NULL THEN 'dq_missing_pk'
  END AS _reason_code
FROM (
  SELECT
    topic AS kafka_topic,
    partition AS kafka_partition,
    offset AS kafka_offset,
    timestamp AS kafka_timestamp,
    key AS kafka_key,
    value AS kafka_value,
    headers AS kafka_headers,
    strict_json(
      value,
      'order_id STRING,
       hash_cloud STRING,
       ts TIMESTAMP',
      map(
        'drift', 'keep',
        'timestampFormat', 'yyyy-MM-dd[\'T\'][\' \']HH:mm:ss[.SSSSSS][XXX]'
      )
    ) AS record
  FROM cloud_orders_hash_source
  WHERE value IS NOT NULL
);

-- The rows that the rules see.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW cloud_orders_hash AS
SELECT
  order_id,
  hash_cloud,
  ts,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM cloud_orders_hash_read
WHERE _reason_code IS NULL;

-- The rules in the order that decides: the first that matches gives a row its status.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_rules_orders AS
SELECT *
FROM VALUES
  (1, 'delete_event', 'DELETE_EVENT', 'delete_count', 'INFO', 'keep', 'the row was deleted on-prem'),
  (2, 'missing_onprem', 'MISSING_ONPREM', 'missing_onprem', 'WARN', 'keep', 'the cloud has a row that is not on-prem'),
  (3, 'missing_cloud', 'MISSING_CLOUD', 'missing_cloud', 'ERROR', 'keep', 'the cloud has no row, or no hash, for the key'),
  (4, 'invalid_hash', 'INVALID_HASH', 'invalid_hash', 'ERROR', 'keep', 'a hash is not 64 lower-case hexadecimal digits'),
  (5, 'hash_mismatch', 'MISMATCH', 'hash_mismatch', 'ERROR', 'keep', 'both sides have the row, and their hashes differ'),
  (6, 'verdict_delete_event', 'DELETE_EVENT', 'delete_count', 'INFO', 'keep', 'the row is deleted, and no side still has it'),
  (7, 'verdict_invalid_hash', 'INVALID_HASH', 'invalid_hash', 'ERROR', 'keep', 'a hash is not 64 lower-case hexadecimal digits'),
  (8, 'verdict_missing_cloud', 'MISSING_CLOUD', 'missing_cloud', 'ERROR', 'keep', 'the cloud has no row, or no hash, for the key'),
  (9, 'verdict_missing_onprem', 'MISSING_ONPREM', 'missing_onprem', 'ERROR', 'keep', 'on-prem has no row, or no hash, for the key'),
  (10, 'verdict_mismatch', 'MISMATCH', 'hash_mismatch', 'ERROR', 'keep', 'both sides have the row, and their hashes differ')
AS rules (place, name, status, metric, severity, on_fail, reason);

-- The newest row of each key.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW onprem_orders_events_newest AS
SELECT * EXCEPT (_nth)
FROM (
  SELECT
    *,
    row_number() OVER (PARTITION BY order_id ORDER BY coalesce(IF(ts BETWEEN TIMESTAMP_LTZ '0001-01-01 00:00:00Z'
        AND TIMESTAMP_LTZ '9999-12-31 23:59:59.999999Z', ts, NULL), kafka_timestamp) DESC, kafka_partition DESC, kafka_offset DESC) AS _nth
  FROM onprem_orders_events
)
WHERE _nth = 1;

-- The newest row of each key.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW cloud_orders_hash_newest AS
SELECT * EXCEPT (_nth)
FROM (
  SELECT
    *,
    row_number() OVER (PARTITION BY order_id ORDER BY coalesce(IF(ts BETWEEN TIMESTAMP_LTZ '0001-01-01 00:00:00Z'
        AND TIMESTAMP_LTZ '9999-12-31 23:59:59.999999Z', ts, NULL), kafka_timestamp) DESC, kafka_partition DESC, kafka_offset DESC) AS _nth
  FROM cloud_orders_hash
)
WHERE _nth = 1;

-- Pairs of the newest rows of a key, each with the verdict of the rules that match it. A pair that
-- no rule matches has the verdict of its hashes.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_judged_orders AS
SELECT
  * EXCEPT (_by_rules),
  coalesce(
    _by_rules,
    CASE
      WHEN _action = 'DELETE' THEN named_struct(
        'status', 'DELETE_EVENT', 'reason', 'the row is deleted, and no side still has it',
        'severity', 'INFO', 'rules', array('verdict_delete_event')
      )
      WHEN NOT _hash_onprem RLIKE '\\A[0-9a-f]{64}\\z' OR NOT _hash_cloud RLIKE '\\A[0-9a-f]{64}\\z' THEN named_struct(
        'status', 'INVALID_HASH', 'reason', 'a hash is not 64 lower-case hexadecimal digits',
        'severity', 'ERROR', 'rules', array('verdict_invalid_hash')
      )
      WHEN _hash_cloud IS NULL THEN named_struct(
        'status', 'MISSING_CLOUD', 'reason', 'the cloud has no row, or no hash, for the key',
        'severity', 'ERROR', 'rules', array('verdict_missing_cloud')
      )
      WHEN _hash_onprem IS NULL THEN named_struct(
        'status', 'MISSING_ONPREM', 'reason', 'on-prem has no row, or no hash, for the key',
        'severity', 'ERROR', 'rules', array('verdict_missing_onprem')
      )
      WHEN _hash_onprem <> _hash_cloud THEN named_struct(
        'status', 'MISMATCH', 'reason', 'both sides have the row, and their hashes differ',
        'severity', 'ERROR', 'rules', array('verdict_mismatch')
      )
    END
  ) AS _verdict
FROM (
  SELECT
    CAST(coalesce(t1.order_id, t2.order_id) AS STRING) AS _pk,
    IF(t1.order_id IS NULL, NULL, coalesce(CAST(t1.action AS STRING), 'UPSERT')) AS _action,
    t1.hash_onprem AS _hash_onprem,
    t2.hash_cloud AS _hash_cloud,
    IF(t1.order_id IS NULL, coalesce(IF(t2.ts BETWEEN TIMESTAMP_LTZ '0001-01-01 00:00:00Z' AND TIMESTAMP_LTZ '9999-12-31 23:59:59.999999Z',
        t2.ts, NULL), t2.kafka_timestamp), coalesce(IF(t1.ts BETWEEN TIMESTAMP_LTZ '0001-01-01 00:00:00Z'
        AND TIMESTAMP_LTZ '9999-12-31 23:59:59.999999Z', t1.ts, NULL), t1.kafka_timestamp)) AS _at,
    IF(t1.order_id IS NULL, t2.kafka_topic, t1.kafka_topic) AS kafka_topic,
    IF(t1.order_id IS NULL, t2.kafka_partition, t1.kafka_partition) AS kafka_partition,
    IF(t1.order_id IS NULL, t2.kafka_offset, t1.kafka_offset) AS kafka_offset,
    IF(t1.order_id IS NULL, t2.kafka_timestamp, t1.kafka_timestamp) AS kafka_timestamp,
    struct(t1.order_id AS order_id, t1.action AS action, t1.hash_onprem AS hash_onprem, t1.ts AS ts) AS _t1,
    struct(t2.order_id AS order_id, t2.hash_cloud AS hash_cloud, t2.ts AS ts) AS _t2,
    rule_verdict(
      -- name, status, severity, reason, and the condition on which the rule matches
      'delete_event', 'DELETE_EVENT', 'INFO', 'the row was deleted on-prem',
        t1.action = 'DELETE',
      'missing_onprem', 'MISSING_ONPREM', 'WARN', 'the cloud has a row that is not on-prem',
        t1.order_id IS NULL,
      'missing_cloud', 'MISSING_CLOUD', 'ERROR', 'the cloud has no row, or no hash, for the key',
        t1.order_id IS NOT NULL AND t2.hash_cloud IS NULL,
      'invalid_hash', 'INVALID_HASH', 'ERROR', 'a hash is not 64 lower-case hexadecimal digits',
        NOT regexp_like(t1.hash_onprem, '^[0-9a-f]{64}\\z')
        OR NOT regexp_like(t2.hash_cloud, '^[0-9a-f]{64}\\z'),
      'hash_mismatch', 'MISMATCH', 'ERROR', 'both sides have the row, and their hashes differ',
        t1.hash_onprem <> t2.hash_cloud
    ) AS _by_rules
  FROM onprem_orders_events_newest AS t1
  FULL OUTER JOIN cloud_orders_hash_newest AS t2
    ON t1.order_id = t2.order_id
);

-- Row results. A row without a verdict is MATCH; the others are kept as text.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_results_orders AS
SELECT
  _pk AS pk,
  _action AS action,
  coalesce(_verdict.status, 'MATCH') AS dq_status,
  coalesce(_verdict.reason, 'OK') AS dq_reason,
  _verdict.severity AS dq_severity,
  _verdict.rules AS dq_rules,
  IF(_verdict IS NULL, 'clean', 'failed') AS dq_outcome,
  _hash_onprem AS hash_onprem,
  _hash_cloud AS hash_cloud,
  _at AS event_time,
  timestamp_seconds(unix_seconds(_at) - pmod(unix_seconds(_at), 10)) AS window_start,
  IF(
    _verdict IS NULL,
    NULL,
    to_json(
      named_struct(
        't1', named_struct(
          'order_id', _t1.order_id,
          'action', _t1.action,
          'hash_onprem', _t1.hash_onprem,
          'ts', _t1.ts
        ),
        't2', named_struct('order_id', _t2.order_id, 'hash_cloud', _t2.hash_cloud, 'ts', _t2.ts)
      ),
      map('timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX')
    )
  ) AS row,
  session.batch_revision AS revision,
  session.batch_time AS processing_time,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM dq_judged_orders;

-- Metrics of each window: a row counts for the rule that gave its status, once, so that clean rows
-- and metrics add up to all rows.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_metrics_orders AS
SELECT
  window_start,
  'prod' AS env,
  'onprem' AS dc,
  'orders_onprem' AS table_name,
  'onprem.orders.events' AS topic_name,
  sum(IF(metric = 'delete_count', n, 0L)) AS `dq.cassandra.delete_count`,
  sum(IF(metric = 'missing_onprem', n, 0L)) AS `dq.cassandra.missing_onprem`,
  sum(IF(metric = 'missing_cloud', n, 0L)) AS `dq.cassandra.missing_cloud`,
  sum(IF(metric = 'invalid_hash', n, 0L)) AS `dq.cassandra.invalid_hash`,
  sum(IF(metric = 'hash_mismatch', n, 0L)) AS `dq.cassandra.hash_mismatch`,
  sum(IF(severity = 'ERROR', n, 0L)) AS dq_error_total,
  sum(IF(severity = 'WARN', n, 0L)) AS dq_warn_total,
  sum(IF(severity = 'INFO', n, 0L)) AS dq_info_total
FROM (
  SELECT
    window_start,
    get(dq_rules, 0) AS name,
    count(*) AS n
  FROM dq_results_orders
  GROUP BY window_start, get(dq_rules, 0)
) counted
LEFT JOIN dq_rules_orders ON dq_rules_orders.name = counted.name
GROUP BY window_start;

-- Each window as the JSON record that goes to the topic of metrics; no column is left out.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_metrics_sink_orders AS
SELECT to_json(struct(*)) AS value
FROM dq_metrics_orders;

-- Every judged row, clean or not, is kept with its result.
-- step: accept
INSERT INTO lake.dq.results_orders BY NAME
SELECT *
FROM dq_results_orders;

-- The results to be counted; the engine binds this view to those that it has staged.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_committed_orders AS
SELECT *
FROM dq_results_orders;

-- What the results add to each window: its rows, and for each rule the rows whose status it gave
-- (n) and those on which it held (held).
-- step: partial view
CREATE OR REPLACE TEMPORARY VIEW dq_partials_orders AS
SELECT
  window_start,
  'prod' AS env,
  'onprem' AS dc,
  'orders_onprem' AS table_name,
  'onprem.orders.events' AS topic_name,
  IF(rule IS NULL, 'rows', 'rule') AS kind,
  coalesce(rule, 'rows') AS name,
  metric,
  severity,
  CAST(NULL AS STRING) AS grp,
  n,
  held,
  CAST(NULL AS DOUBLE) AS total,
  CAST(NULL AS BIGINT) AS nulls,
  CAST(NULL AS BINARY) AS sketch,
  newest,
  coalesce(timestamp_seconds(unix_seconds(window_start) + 10) <= session.closed_before, FALSE) AS late,
  session.batch_revision AS revision,
  session.batch_range AS range,
  session.batch_time AS batch_time
FROM (
  SELECT
    window_start,
    rule,
    count_if(place <= 1) AS n,
    count(*) AS held,
    max(event_time) AS newest
  FROM dq_committed_orders
  LATERAL VIEW posexplode(concat(array(CAST(NULL AS STRING)), coalesce(dq_rules, array()))) held AS place, rule
  GROUP BY window_start, rule
)
LEFT JOIN dq_rules_orders ON dq_rules_orders.name = rule;

-- The sums of a window are those of its partials: nothing is read back and changed.
-- step: partials
INSERT INTO lake.dq.partials_orders BY NAME
SELECT
  window_start,
  env,
  dc,
  table_name,
  topic_name,
  kind,
  name,
  metric,
  severity,
  grp,
  n,
  held,
  total,
  nulls,
  sketch,
  newest,
  late,
  revision,
  range,
  batch_time
FROM dq_partials_orders;

-- What became of every record: each has one outcome.
-- step: outcomes
SELECT
  outcome,
  sum(n) AS n
FROM (
  SELECT 'refused' AS outcome, count(*) AS n FROM onprem_orders_events_read WHERE _reason_code IS NOT NULL
  UNION ALL
  SELECT 'tombstone' AS outcome, count(*) AS n FROM onprem_orders_events_source WHERE value IS NULL
  UNION ALL
  SELECT 'newest' AS outcome, count(*) AS n FROM onprem_orders_events_newest
  UNION ALL
  SELECT 'superseded' AS outcome, count(*) - (SELECT count(*) FROM onprem_orders_events_newest) AS n FROM onprem_orders_events
  UNION ALL
  SELECT 'refused' AS outcome, count(*) AS n FROM cloud_orders_hash_read WHERE _reason_code IS NOT NULL
  UNION ALL
  SELECT 'tombstone' AS outcome, count(*) AS n FROM cloud_orders_hash_source WHERE value IS NULL
  UNION ALL
  SELECT 'newest' AS outcome, count(*) AS n FROM cloud_orders_hash_newest
  UNION ALL
  SELECT 'superseded' AS outcome, count(*) - (SELECT count(*) FROM cloud_orders_hash_newest) AS n FROM cloud_orders_hash
  UNION ALL
  SELECT 'dead_letter' AS outcome, count(*) AS n FROM dq_committed_orders WHERE dq_outcome = 'dead_letter'
  UNION ALL
  SELECT 'newest' AS outcome, -count(*) AS n FROM dq_committed_orders WHERE dq_outcome = 'dead_letter'
)
GROUP BY outcome;

-- What could not be judged, and what a rule refuses, with the original bytes.
-- step: refuse
INSERT INTO lake.headgate.dead_letters BY NAME
SELECT
  'quality-orders' AS job,
  session.batch_revision AS revision,
  _reason_code AS reason_code,
  CASE
    WHEN _reason_code = 'dq_missing_pk' THEN 'the record has no key'
    ELSE _reason
  END AS reason,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp,
  kafka_key,
  kafka_value,
  kafka_headers,
  session.batch_time AS refused_at
FROM onprem_orders_events_read
WHERE _reason_code IS NOT NULL
UNION ALL
SELECT
  'quality-orders' AS job,
  session.batch_revision AS revision,
  _reason_code AS reason_code,
  CASE
    WHEN _reason_code = 'dq_missing_pk' THEN 'the record has no key'
    ELSE _reason
  END AS reason,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp,
  kafka_key,
  kafka_value,
  kafka_headers,
  session.batch_time AS refused_at
FROM cloud_orders_hash_read
WHERE _reason_code IS NOT NULL;

-- All results there are.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_results_orders AS
SELECT
  pk,
  action,
  dq_status,
  dq_reason,
  dq_severity,
  dq_rules,
  dq_outcome,
  hash_onprem,
  hash_cloud,
  event_time,
  window_start,
  row,
  revision,
  processing_time,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM lake.dq.results_orders;

-- The metrics of all windows: the sums of their partials.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_metrics_orders AS
SELECT
  window_start,
  env,
  dc,
  table_name,
  topic_name,
  sum(IF(metric = 'delete_count', n, 0L)) AS `dq.cassandra.delete_count`,
  sum(IF(metric = 'missing_onprem', n, 0L)) AS `dq.cassandra.missing_onprem`,
  sum(IF(metric = 'missing_cloud', n, 0L)) AS `dq.cassandra.missing_cloud`,
  sum(IF(metric = 'invalid_hash', n, 0L)) AS `dq.cassandra.invalid_hash`,
  sum(IF(metric = 'hash_mismatch', n, 0L)) AS `dq.cassandra.hash_mismatch`,
  sum(IF(severity = 'ERROR', n, 0L)) AS dq_error_total,
  sum(IF(severity = 'WARN', n, 0L)) AS dq_warn_total,
  sum(IF(severity = 'INFO', n, 0L)) AS dq_info_total
FROM lake.dq.partials_orders
WHERE kind IN ('rows', 'rule')
GROUP BY window_start, env, dc, table_name, topic_name;
