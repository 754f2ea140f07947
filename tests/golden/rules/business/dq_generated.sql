-- Data quality of business: topic topic1 and topic topic2, judged by 0 rules.
-- Compiled from rules/topic1.yml, revision 988dc1aa3826, by Headgate 0.1.0.
-- Then: SELECT * FROM dq_results_business, SELECT * FROM dq_metrics_business.
-- Run alone, it reads everything there is, and appends to the tables.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/rules/business/dq_generated.sql

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
DEFAULT '988dc1aa38264273fbf63659354590bb96a2282e4f614ea5684a2320b7adb61b';

-- The tables; their columns do not depend on the rules, so that new rules change none.
-- step: table
CREATE NAMESPACE IF NOT EXISTS lake.dq;

CREATE TABLE IF NOT EXISTS lake.dq.states_business (
  pk STRING,
  window_start TIMESTAMP,
  onprem STRUCT<version: TIMESTAMP, partition: INT, offset: BIGINT, hash: STRING, hash_version: INT, action: STRING, read_at: TIMESTAMP,
      row: STRING>,
  onprem_first STRUCT<version: TIMESTAMP, read_at: TIMESTAMP, partition: INT, offset: BIGINT, hash: STRING>,
  onprem_least TIMESTAMP,
  onprem_end STRUCT<partition: INT, offset: BIGINT>,
  onprem_hashes STRUCT<greatest: BIGINT, least: BIGINT>,
  cloud STRUCT<version: TIMESTAMP, partition: INT, offset: BIGINT, hash: STRING, hash_version: INT, action: STRING, read_at: TIMESTAMP, row:
      STRING>,
  cloud_first STRUCT<version: TIMESTAMP, read_at: TIMESTAMP, partition: INT, offset: BIGINT, hash: STRING>,
  cloud_least TIMESTAMP,
  cloud_end STRUCT<partition: INT, offset: BIGINT>,
  cloud_hashes STRUCT<greatest: BIGINT, least: BIGINT>,
  records BIGINT,
  batch_time TIMESTAMP
)
USING iceberg
TBLPROPERTIES (
  'format-version' = '2',
  'write.format.default' = 'parquet',
  'write.parquet.compression-codec' = 'snappy',
  'write.wap.enabled' = 'true',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '50',
  'write.parquet.dict-size-bytes' = '16384'
);

CREATE TABLE IF NOT EXISTS lake.dq.results_business (
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
  kafka_timestamp TIMESTAMP,
  id STRING,
  verdict STRING,
  provisional STRING,
  rollup STRING,
  settled BOOLEAN,
  within_grace BOOLEAN,
  late BOOLEAN,
  stale BOOLEAN,
  conflict BOOLEAN,
  onprem_version TIMESTAMP,
  cloud_version TIMESTAMP,
  onprem_read_at TIMESTAMP,
  cloud_read_at TIMESTAMP,
  deadline TIMESTAMP,
  origin STRING
)
USING iceberg
TBLPROPERTIES (
  'format-version' = '2',
  'write.format.default' = 'parquet',
  'write.parquet.compression-codec' = 'snappy',
  'write.wap.enabled' = 'true',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '50',
  'write.parquet.dict-size-bytes' = '16384'
);

CREATE TABLE IF NOT EXISTS lake.dq.partials_business (
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
CREATE OR REPLACE TEMPORARY VIEW topic1_onprem_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092',
  'kafka.isolation.level' 'read_committed',
  'subscribe' 'topic1',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest',
  'includeHeaders' 'true'
);

-- Each record, read strictly: its fields, or the reason why it cannot be a row. A tombstone has no
-- fields: it is the delete of its key.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW topic1_onprem_read AS
SELECT
  * EXCEPT (record),
  record.* EXCEPT (_reason_code, _key),
  record._key AS pk,
  CASE
    WHEN kafka_value IS NULL AND (kafka_key IS NULL OR NOT is_valid_utf8(CAST(kafka_key AS STRING)))
      THEN 'dq_missing_pk'
    WHEN kafka_value IS NULL THEN NULL
    WHEN record._reason_code IS NOT NULL THEN record._reason_code
    WHEN record._key IS NULL THEN 'dq_missing_pk'
    WHEN record.action NOT IN ('CREATE', 'UPDATE', 'UPSERT', 'DELETE')
      THEN 'dq_unknown_action'
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
      'event_id STRING,
       action STRING,
       hash_onprem STRING,
       hash_version INT,
       event_ts TIMESTAMP',
      map(
        'drift', 'keep',
        'timestampFormat', 'yyyy-MM-dd[\'T\'][\' \']HH:mm:ss[.SSSSSS][XXX]',
        'key', 'partitionColumns[type=\'PK\'].value'
      )
    ) AS record
  FROM topic1_onprem_source
);

-- The rows that the rules see.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW topic1_onprem AS
SELECT
  pk,
  event_id,
  action,
  hash_onprem,
  hash_version,
  event_ts,
  from_json(CAST(kafka_value AS STRING), 'partitionColumns ARRAY<STRUCT<type: STRING, value: STRING>>').partitionColumns
      AS partitionColumns,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM topic1_onprem_read
WHERE _reason_code IS NULL AND kafka_value IS NOT NULL;

-- The rows with their key.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW topic1_with_pk AS
SELECT * EXCEPT (partitionColumns)
FROM topic1_onprem;

-- The engine binds this view to the records of one batch.
-- step: source
CREATE OR REPLACE TEMPORARY VIEW topic2_cloud_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092',
  'kafka.isolation.level' 'read_committed',
  'subscribe' 'topic2',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest',
  'includeHeaders' 'true'
);

-- Each record, read strictly: its fields, or the reason why it cannot be a row. A tombstone has no
-- fields: it is the delete of its key.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW topic2_cloud_read AS
SELECT
  * EXCEPT (record),
  record.* EXCEPT (_reason_code),
  CASE
    WHEN kafka_value IS NULL AND (kafka_key IS NULL OR NOT is_valid_utf8(CAST(kafka_key AS STRING)))
      THEN 'dq_missing_pk'
    WHEN kafka_value IS NULL THEN NULL
    WHEN record._reason_code IS NOT NULL THEN record._reason_code
    WHEN record.pk IS NULL THEN 'dq_missing_pk'
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
      'pk STRING,
       hash_cloud STRING,
       hash_version INT,
       cloud_ts TIMESTAMP',
      map(
        'drift', 'keep',
        'timestampFormat', 'yyyy-MM-dd[\'T\'][\' \']HH:mm:ss[.SSSSSS][XXX]'
      )
    ) AS record
  FROM topic2_cloud_source
);

-- The rows that the rules see.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW topic2_cloud AS
SELECT
  pk,
  hash_cloud,
  hash_version,
  cloud_ts,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM topic2_cloud_read
WHERE _reason_code IS NULL AND kafka_value IS NOT NULL;

-- The messages of both sides in one shape. The version is the event time, of a tombstone the
-- record's; the time of reading is always the record's.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_messages_business AS
SELECT
  'onprem' AS side,
  IF(kafka_value IS NULL, CAST(kafka_key AS STRING), CAST(pk AS STRING)) AS pk,
  IF(kafka_value IS NULL, kafka_timestamp, coalesce(IF(event_ts BETWEEN TIMESTAMP_LTZ '0001-01-01 00:00:00Z'
      AND TIMESTAMP_LTZ '9999-12-31 23:59:59.999999Z', event_ts, NULL), kafka_timestamp)) AS version,
  kafka_partition AS partition,
  kafka_offset AS offset,
  hash_onprem AS hash,
  hash_version AS hash_version,
  IF(kafka_value IS NULL, 'DELETE', coalesce(action, 'UPSERT')) AS action,
  kafka_timestamp AS read_at,
  IF(
    kafka_value IS NULL,
    NULL,
    to_json(named_struct('event_id', event_id), map('timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX'))
  ) AS row
FROM topic1_onprem_read
WHERE _reason_code IS NULL
UNION ALL
SELECT
  'cloud' AS side,
  IF(kafka_value IS NULL, CAST(kafka_key AS STRING), CAST(pk AS STRING)) AS pk,
  IF(kafka_value IS NULL, kafka_timestamp, coalesce(IF(cloud_ts BETWEEN TIMESTAMP_LTZ '0001-01-01 00:00:00Z'
      AND TIMESTAMP_LTZ '9999-12-31 23:59:59.999999Z', cloud_ts, NULL), kafka_timestamp)) AS version,
  kafka_partition AS partition,
  kafka_offset AS offset,
  hash_cloud AS hash,
  hash_version AS hash_version,
  IF(kafka_value IS NULL, 'DELETE', CAST(NULL AS STRING)) AS action,
  kafka_timestamp AS read_at,
  CAST(NULL AS STRING) AS row
FROM topic2_cloud_read
WHERE _reason_code IS NULL;

-- When a message counts as read: a clock that runs ahead must not carry the others with it. The
-- engine binds this view with a watermark on seen_at.
-- step: timed view
CREATE OR REPLACE TEMPORARY VIEW dq_messages_business_timed AS
SELECT
  *,
  least(read_at, get(array(session.batch_time), shiftright(octet_length(pk), 31))) AS seen_at
FROM dq_messages_business;

-- The state of each key in each window of the horizon, of maxima and minima only: no order of the
-- messages can change it. The same text is the aggregation of the streaming query. Times and
-- places are numbers while they are compared, and what belongs together is brought together first:
-- so it is sorted once less.
-- step: states view
CREATE OR REPLACE TEMPORARY VIEW dq_batch_states_business AS
SELECT
  pk,
  window_start,
  IF(
    _onprem IS NULL,
    NULL,
    named_struct(
      'version', timestamp_micros(_onprem.version),
      'partition', CAST(shiftright(_onprem.place, 44) AS INT),
      'offset', _onprem.place & 17592186044415L,
      'hash', _onprem.hash,
      'hash_version', _onprem.hash_version,
      'action', _onprem.action,
      'read_at', timestamp_micros(_onprem.micros),
      'row', _onprem.row
    )
  ) AS onprem,
  IF(
    _onprem_first IS NULL,
    NULL,
    named_struct(
      'version', timestamp_micros(_onprem_first.version),
      'read_at', timestamp_micros(-_onprem_first.arrival),
      'partition', CAST(shiftright(-_onprem_first.place, 44) AS INT),
      'offset', -_onprem_first.place & 17592186044415L,
      'hash', _onprem_first.hash
    )
  ) AS onprem_first,
  timestamp_micros(_onprem_least) AS onprem_least,
  IF(
    _onprem_end IS NULL,
    NULL,
    named_struct(
      'partition', CAST(shiftright(_onprem_end, 44) AS INT),
      'offset', _onprem_end & 17592186044415L
    )
  ) AS onprem_end,
  IF(
    _onprem_greatest IS NULL,
    NULL,
    named_struct('greatest', _onprem_greatest.hash, 'least', ~_onprem_lowest.hash)
  ) AS onprem_hashes,
  IF(
    _cloud IS NULL,
    NULL,
    named_struct(
      'version', timestamp_micros(_cloud.version),
      'partition', CAST(shiftright(_cloud.place, 44) AS INT),
      'offset', _cloud.place & 17592186044415L,
      'hash', _cloud.hash,
      'hash_version', _cloud.hash_version,
      'action', _cloud.action,
      'read_at', timestamp_micros(_cloud.micros),
      'row', _cloud.row
    )
  ) AS cloud,
  IF(
    _cloud_first IS NULL,
    NULL,
    named_struct(
      'version', timestamp_micros(_cloud_first.version),
      'read_at', timestamp_micros(-_cloud_first.arrival),
      'partition', CAST(shiftright(-_cloud_first.place, 44) AS INT),
      'offset', -_cloud_first.place & 17592186044415L,
      'hash', _cloud_first.hash
    )
  ) AS cloud_first,
  timestamp_micros(_cloud_least) AS cloud_least,
  IF(
    _cloud_end IS NULL,
    NULL,
    named_struct(
      'partition', CAST(shiftright(_cloud_end, 44) AS INT),
      'offset', _cloud_end & 17592186044415L
    )
  ) AS cloud_end,
  IF(
    _cloud_greatest IS NULL,
    NULL,
    named_struct('greatest', _cloud_greatest.hash, 'least', ~_cloud_lowest.hash)
  ) AS cloud_hashes,
  records
FROM (
  SELECT
    pk,
    window.start AS window_start,
    max(CASE WHEN side = 'onprem' THEN struct(version, place, hash, hash_version, action, micros, row) END) AS _onprem,
    max(CASE WHEN side = 'onprem' THEN struct(version, -micros AS arrival, -place AS place, hash) END) AS _onprem_first,
    min(CASE WHEN side = 'onprem' THEN micros END) AS _onprem_least,
    max(CASE WHEN side = 'onprem' THEN place END) AS _onprem_end,
    max(CASE WHEN side = 'onprem' THEN struct(version, xxhash64(hash, action <=> 'DELETE', hash_version) AS hash) END) AS _onprem_greatest,
    max(CASE WHEN side = 'onprem' THEN struct(version, ~xxhash64(hash, action <=> 'DELETE', hash_version) AS hash) END) AS _onprem_lowest,
    max(CASE WHEN side = 'cloud' THEN struct(version, place, hash, hash_version, action, micros, row) END) AS _cloud,
    max(CASE WHEN side = 'cloud' THEN struct(version, -micros AS arrival, -place AS place, hash) END) AS _cloud_first,
    min(CASE WHEN side = 'cloud' THEN micros END) AS _cloud_least,
    max(CASE WHEN side = 'cloud' THEN place END) AS _cloud_end,
    max(CASE WHEN side = 'cloud' THEN struct(version, xxhash64(hash, action <=> 'DELETE', hash_version) AS hash) END) AS _cloud_greatest,
    max(CASE WHEN side = 'cloud' THEN struct(version, ~xxhash64(hash, action <=> 'DELETE', hash_version) AS hash) END) AS _cloud_lowest,
    count(*) AS records
  FROM (
    SELECT
      /*+ REPARTITION(pk, window) */
      pk,
      side,
      unix_micros(version) AS version,
      shiftleft(CAST(partition AS BIGINT), 44) + offset AS place,
      hash,
      hash_version,
      action,
      unix_micros(seen_at) AS micros,
      row,
      window(seen_at, '3600 seconds') AS window
    FROM dq_messages_business_timed
  )
  GROUP BY pk, window
);

-- What is judged: here all there is of each key. The engine binds the states of a batch, of which
-- the rest may stand in another window (whole is false there), or those that a sweep has merged.
-- step: bound states
CREATE OR REPLACE TEMPORARY VIEW dq_states_business AS
SELECT
  *,
  TRUE AS whole,
  TRUE AS changed,
  get(array(session.batch_time), shiftright(octet_length(pk), 31)) AS judged_at,
  'batch' AS origin
FROM (
  SELECT
    pk,
    window_start,
    onprem,
    IF(
      _onprem_first IS NULL,
      NULL,
      named_struct(
        'version', _onprem_first.version,
        'read_at', timestamp_micros(-_onprem_first._micros),
        'partition', -_onprem_first._partition,
        'offset', -_onprem_first._offset,
        'hash', _onprem_first.hash
      )
    ) AS onprem_first,
    onprem_least,
    onprem_end,
    IF(
      _onprem_greatest IS NULL,
      NULL,
      named_struct('greatest', _onprem_greatest.hash, 'least', ~_onprem_lowest.hash)
    ) AS onprem_hashes,
    cloud,
    IF(
      _cloud_first IS NULL,
      NULL,
      named_struct(
        'version', _cloud_first.version,
        'read_at', timestamp_micros(-_cloud_first._micros),
        'partition', -_cloud_first._partition,
        'offset', -_cloud_first._offset,
        'hash', _cloud_first.hash
      )
    ) AS cloud_first,
    cloud_least,
    cloud_end,
    IF(
      _cloud_greatest IS NULL,
      NULL,
      named_struct('greatest', _cloud_greatest.hash, 'least', ~_cloud_lowest.hash)
    ) AS cloud_hashes,
    records
  FROM (
    SELECT
      pk,
      max(window_start) AS window_start,
      max(onprem) AS onprem,
      max(struct(onprem_first.version, -unix_micros(onprem_first.read_at) AS _micros, -onprem_first.partition AS _partition,
          -onprem_first.offset AS _offset, onprem_first.hash)) FILTER (WHERE onprem_first IS NOT NULL) AS _onprem_first,
      min(onprem_least) AS onprem_least,
      max(onprem_end) AS onprem_end,
      max(IF(onprem IS NULL, NULL, struct(onprem.version, coalesce(
        onprem_hashes.greatest,
        greatest(
          xxhash64(onprem.hash, onprem.action <=> 'DELETE', onprem.hash_version),
          xxhash64(onprem_first.hash, onprem.action <=> 'DELETE', onprem.hash_version)
        )
      ) AS hash))) AS _onprem_greatest,
      max(IF(onprem IS NULL, NULL, struct(onprem.version, ~coalesce(
        onprem_hashes.least,
        least(
          xxhash64(onprem.hash, onprem.action <=> 'DELETE', onprem.hash_version),
          xxhash64(onprem_first.hash, onprem.action <=> 'DELETE', onprem.hash_version)
        )
      ) AS hash))) AS _onprem_lowest,
      max(cloud) AS cloud,
      max(struct(cloud_first.version, -unix_micros(cloud_first.read_at) AS _micros, -cloud_first.partition AS _partition,
          -cloud_first.offset AS _offset, cloud_first.hash)) FILTER (WHERE cloud_first IS NOT NULL) AS _cloud_first,
      min(cloud_least) AS cloud_least,
      max(cloud_end) AS cloud_end,
      max(IF(cloud IS NULL, NULL, struct(cloud.version, coalesce(
        cloud_hashes.greatest,
        greatest(
          xxhash64(cloud.hash, cloud.action <=> 'DELETE', cloud.hash_version),
          xxhash64(cloud_first.hash, cloud.action <=> 'DELETE', cloud.hash_version)
        )
      ) AS hash))) AS _cloud_greatest,
      max(IF(cloud IS NULL, NULL, struct(cloud.version, ~coalesce(
        cloud_hashes.least,
        least(
          xxhash64(cloud.hash, cloud.action <=> 'DELETE', cloud.hash_version),
          xxhash64(cloud_first.hash, cloud.action <=> 'DELETE', cloud.hash_version)
        )
      ) AS hash))) AS _cloud_lowest,
      max(records) AS records
    FROM dq_batch_states_business
    GROUP BY pk
  )
);

-- The rules in the order that decides: the first that matches gives a row its status.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_rules_business AS
SELECT *
FROM VALUES
  (1, 'verdict_match', 'MATCH', 'hash_match', 'INFO', 'keep', 'both sides have the row, and their hashes are equal'),
  (2, 'verdict_late_match', 'LATE_MATCH', 'hash_match', 'INFO', 'keep',
      'the hashes are equal; the sides came further apart than the window'),
  (3, 'verdict_delete_event', 'DELETE_EVENT', 'delete_event', 'INFO', 'keep', 'the row is deleted, and no side still has it'),
  (4, 'verdict_mismatch', 'MISMATCH', 'hash_mismatch', 'ERROR', 'keep', 'both sides have the row, and their hashes differ'),
  (5, 'verdict_late_mismatch', 'LATE_MISMATCH', 'hash_mismatch', 'ERROR', 'keep',
      'the hashes differ, and the sides came further apart than the window'),
  (6, 'verdict_zombie', 'ZOMBIE', 'zombie', 'ERROR', 'keep', 'the row is deleted on one side and alive on the other'),
  (7, 'verdict_version_skew', 'VERSION_SKEW', 'version_skew', 'ERROR', 'keep', 'the sides hashed by different versions of the contract'),
  (8, 'verdict_invalid_hash', 'INVALID_HASH', 'invalid_hash', 'ERROR', 'keep', 'a hash is not 64 lower-case hexadecimal digits'),
  (9, 'verdict_missing_cloud', 'MISSING_CLOUD', 'missing_cloud', 'ERROR', 'keep', 'the cloud has no row, or no hash, for the key'),
  (10, 'verdict_missing_onprem', 'MISSING_ONPREM', 'missing_onprem', 'ERROR', 'keep', 'on-prem has no row for the key')
AS rules (place, name, status, metric, severity, on_fail, reason);

-- The verdict on each state: its facts, the first row of the decision table that holds, and on
-- what is settled the rules of this table. _open is the row while the key waits, _final the row
-- once it is due.
-- step: verdict view
CREATE OR REPLACE TEMPORARY VIEW dq_verdicts_business AS
SELECT
  pk,
  onprem.action AS action,
  coalesce(_verdict.status, _row.status) AS dq_status,
  coalesce(_verdict.reason, _row.reason) AS dq_reason,
  coalesce(_verdict.severity, _row.severity) AS dq_severity,
  coalesce(_verdict.rules, IF(_row.rollup = 'pending', NULL, array(concat('verdict_', lower(_row.status))))) AS dq_rules,
  CASE WHEN _rollup = 'pending' THEN 'pending' WHEN _rollup = 'valid' THEN 'clean' ELSE 'failed' END AS dq_outcome,
  hash_onprem,
  hash_cloud,
  _at AS event_time,
  timestamp_seconds(unix_seconds(_at) - pmod(unix_seconds(_at), 10)) AS window_start,
  IF(
    _rollup IN ('pending', 'valid'),
    NULL,
    to_json(named_struct('t1', t1, 't2', t2), map('timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX'))
  ) AS row,
  session.batch_revision AS revision,
  judged_at AS processing_time,
  IF(onprem IS NULL, 'topic2', 'topic1') AS kafka_topic,
  IF(onprem IS NULL, cloud.partition, onprem.partition) AS kafka_partition,
  IF(onprem IS NULL, cloud.offset, onprem.offset) AS kafka_offset,
  IF(onprem IS NULL, cloud.read_at, onprem.read_at) AS kafka_timestamp,
  sha2(
    concat_ws(
      '\n',
      coalesce(_verdict.status, _row.status),
      coalesce(CAST(unix_micros(onprem.version) AS STRING), '-'),
      coalesce(CAST(unix_micros(cloud.version) AS STRING), '-'),
      'business',
      pk
    ),
    256
  ) AS id,
  _row.status AS verdict,
  IF(_row.rollup = 'pending', _final_status, NULL) AS provisional,
  _rollup AS rollup,
  _row.rollup <> 'pending' AS settled,
  IF(_row.rollup = 'pending', NULL, within_grace) AS within_grace,
  late,
  stale,
  conflict,
  onprem.version AS onprem_version,
  cloud.version AS cloud_version,
  onprem_first.read_at AS onprem_read_at,
  cloud_first.read_at AS cloud_read_at,
  deadline,
  origin,
  t1,
  t2,
  changed
FROM (
  SELECT
    *,
    rule_verdict() AS _verdict,
    _row.rollup AS _rollup
  FROM (
    SELECT
      *,
      IF(
        onprem IS NULL,
        NULL,
        named_struct(
          'pk', pk,
          'event_id', from_json(onprem.row, 'event_id STRING').event_id,
          'action', onprem.action,
          'hash_onprem', onprem.hash,
          'hash_version', onprem.hash_version,
          'event_ts', onprem.version
        )
      ) AS t1,
      IF(
        cloud IS NULL,
        NULL,
        named_struct(
          'pk', pk,
          'hash_cloud', cloud.hash,
          'hash_version', cloud.hash_version,
          'cloud_ts', cloud.version
        )
      ) AS t2
    FROM (
      SELECT
        * EXCEPT (_rows),
        get(_rows, IF(due, _final, _open)) AS _row,
        IF(due AND get(_rows, _open).rollup = 'pending', deadline, greatest(onprem_first.read_at, cloud_first.read_at)) AS _at,
        get(_rows, _final).status AS _final_status
      FROM (
        SELECT
          *,
          array(
            NULL,
            named_struct('status', 'DELETE_EVENT', 'severity', 'INFO', 'rollup', 'valid', 'reason', 'the row is deleted on both sides'),
            named_struct('status', 'DELETE_PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                'deleted on-prem; the cloud may follow until the deadline'),
            named_struct('status', 'ZOMBIE', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                'deleted on-prem, and still alive in the cloud'),
            named_struct('status', 'DELETE_EVENT', 'severity', 'INFO', 'rollup', 'valid', 'reason',
                'deleted on-prem, and the cloud has no such row'),
            named_struct('status', 'DELETE_PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                'deleted in the cloud; on-prem may follow until the deadline'),
            named_struct('status', 'DELETE_EVENT', 'severity', 'INFO', 'rollup', 'valid', 'reason',
                'deleted in the cloud, and on-prem has no such row'),
            named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                'deleted in the cloud, alive on-prem; either may follow until the deadline'),
            named_struct('status', 'ZOMBIE', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                'deleted in the cloud, and still alive on-prem'),
            named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                'on-prem may follow until the deadline'),
            named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                'the cloud may follow until the deadline'),
            named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                'the cloud was read before on-prem\'s newest version; it may be read again'),
            named_struct('status', 'INVALID_HASH', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                'a hash is not 64 lower-case hexadecimal digits'),
            named_struct('status', 'MISSING_CLOUD', 'severity', 'ERROR', 'rollup', 'missing', 'reason',
                'the cloud was read and has no row, or no hash, for the key'),
            named_struct('status', 'MISSING_CLOUD', 'severity', 'ERROR', 'rollup', 'missing', 'reason',
                'the cloud has said nothing of the key by its deadline'),
            named_struct('status', 'MISSING_ONPREM', 'severity', 'ERROR', 'rollup', 'missing', 'reason',
                'on-prem has said nothing of the key by its deadline'),
            named_struct('status', 'VERSION_SKEW', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                'the sides hashed by different versions of the contract'),
            named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                'the hashes are equal; whether the sides had met before is looked up'),
            named_struct('status', 'LATE_MATCH', 'severity', 'INFO', 'rollup', 'valid', 'reason',
                'the hashes are equal; the sides came further apart than the window'),
            named_struct('status', 'MATCH', 'severity', 'INFO', 'rollup', 'valid', 'reason',
                'both sides have the row, and their hashes are equal'),
            named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                'the hashes differ; the cloud is read once more before the deadline'),
            named_struct('status', 'LATE_MISMATCH', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                'the hashes differ, and the sides came further apart than the window'),
            named_struct('status', 'MISMATCH', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                'both sides have the row, and their hashes differ')
          ) AS _rows
        FROM (
          SELECT
            *,
            CASE
              WHEN onprem_deleted AND (cloud_deleted OR cloud_absent AND NOT cloud_older) THEN 1
              WHEN onprem_deleted THEN 2
              WHEN cloud_deleted AND NOT onprem_seen THEN 5
              WHEN cloud_deleted THEN 7
              WHEN NOT onprem_seen THEN 9
              WHEN NOT cloud_seen THEN 10
              WHEN cloud_older THEN 11
              WHEN onprem_invalid OR cloud_invalid THEN 12
              WHEN cloud_absent THEN 13
              WHEN version_skew THEN 16
              WHEN NOT whole AND late AND hash_onprem = hash_cloud THEN 17
              WHEN hash_onprem = hash_cloud AND late THEN 18
              WHEN hash_onprem = hash_cloud THEN 19
              WHEN hash_onprem <> hash_cloud THEN 20
            END AS _open,
            CASE
              WHEN onprem_deleted AND (cloud_deleted OR cloud_absent AND NOT cloud_older) THEN 1
              WHEN onprem_deleted AND cloud_seen AND NOT cloud_absent THEN 3
              WHEN onprem_deleted THEN 4
              WHEN cloud_deleted AND NOT onprem_seen THEN 6
              WHEN cloud_deleted THEN 8
              WHEN onprem_invalid OR cloud_invalid THEN 12
              WHEN cloud_absent THEN 13
              WHEN NOT cloud_seen THEN 14
              WHEN NOT onprem_seen THEN 15
              WHEN version_skew THEN 16
              WHEN hash_onprem = hash_cloud AND late THEN 18
              WHEN hash_onprem = hash_cloud THEN 19
              WHEN hash_onprem <> hash_cloud AND late THEN 21
              WHEN hash_onprem <> hash_cloud THEN 22
            END AS _final
          FROM (
            SELECT
              *,
              onprem IS NOT NULL AS onprem_seen,
              cloud IS NOT NULL AS cloud_seen,
              coalesce(onprem.action = 'DELETE', FALSE) AS onprem_deleted,
              coalesce(cloud.action = 'DELETE', FALSE) AS cloud_deleted,
              cloud IS NOT NULL AND NOT coalesce(cloud.action = 'DELETE', FALSE) AND cloud.hash IS NULL AS cloud_absent,
              onprem IS NOT NULL AND NOT coalesce(onprem.action = 'DELETE', FALSE) AND NOT coalesce(onprem.hash RLIKE '\\A[0-9a-f]{64}\\z',
                  FALSE) AS onprem_invalid,
              NOT coalesce(cloud.action = 'DELETE', FALSE) AND NOT coalesce(cloud.hash RLIKE '\\A[0-9a-f]{64}\\z', TRUE) AS cloud_invalid,
              onprem.hash AS hash_onprem,
              cloud.hash AS hash_cloud,
              coalesce(onprem.hash_version <> cloud.hash_version, FALSE) AS version_skew,
              coalesce(
                date_trunc('MILLISECOND', cloud.version) < date_trunc('MILLISECOND', onprem.version),
                FALSE
              ) AS cloud_older,
              coalesce(
                greatest(onprem_first.read_at, cloud_first.read_at)
                  > least(onprem_first.read_at, cloud_first.read_at) + INTERVAL 600 SECONDS
                  AND onprem IS NOT NULL AND cloud IS NOT NULL,
                FALSE
              ) AS late,
              whole AND judged_at >= greatest(onprem_first.read_at, cloud_first.read_at) + INTERVAL 900 SECONDS AS due,
              coalesce(onprem.action = 'DELETE', FALSE) OR coalesce(
                greatest(onprem_first.read_at, cloud_first.read_at)
                  <= least(onprem_first.read_at, cloud_first.read_at) + INTERVAL 900 SECONDS
                  AND onprem IS NOT NULL AND cloud IS NOT NULL,
                FALSE
              ) AS within_grace,
              coalesce(onprem_end.offset <> onprem.offset OR onprem_end.partition <> onprem.partition, FALSE)
                OR coalesce(cloud_end.offset <> cloud.offset OR cloud_end.partition <> cloud.partition, FALSE) AS stale,
              coalesce(onprem_hashes.greatest <> onprem_hashes.least, FALSE) OR coalesce(cloud_hashes.greatest <> cloud_hashes.least, FALSE)
                  AS conflict,
              greatest(onprem_first.read_at, cloud_first.read_at) + INTERVAL 900 SECONDS AS deadline
            FROM dq_states_business
          )
        )
      )
    )
  )
);

-- Every key with its verdict; what waits is not counted.
-- step: verdict view
CREATE OR REPLACE TEMPORARY VIEW dq_results_business AS
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
  kafka_timestamp,
  id,
  verdict,
  provisional,
  rollup,
  settled,
  within_grace,
  late,
  stale,
  conflict,
  onprem_version,
  cloud_version,
  onprem_read_at,
  cloud_read_at,
  deadline,
  origin
FROM dq_verdicts_business;

-- Each key with both hashes and its status.
-- step: verdict view
CREATE OR REPLACE TEMPORARY VIEW dq_hash_check AS
SELECT
  t1.event_id,
  pk,
  hash_onprem,
  hash_cloud,
  dq_status
FROM dq_verdicts_business;

-- Metrics of each window: a row counts for the rule that gave its status, once, so that clean rows
-- and metrics add up to all rows.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_metrics_business AS
SELECT
  window_start,
  'prod' AS env,
  'onprem' AS dc,
  'business_onprem' AS table_name,
  'topic1' AS topic_name,
  sum(IF(metric = 'hash_match', n, 0L)) AS `dq.cassandra.hash_match`,
  sum(IF(metric = 'delete_event', n, 0L)) AS `dq.cassandra.delete_event`,
  sum(IF(metric = 'hash_mismatch', n, 0L)) AS `dq.cassandra.hash_mismatch`,
  sum(IF(metric = 'zombie', n, 0L)) AS `dq.cassandra.zombie`,
  sum(IF(metric = 'version_skew', n, 0L)) AS `dq.cassandra.version_skew`,
  sum(IF(metric = 'invalid_hash', n, 0L)) AS `dq.cassandra.invalid_hash`,
  sum(IF(metric = 'missing_cloud', n, 0L)) AS `dq.cassandra.missing_cloud`,
  sum(IF(metric = 'missing_onprem', n, 0L)) AS `dq.cassandra.missing_onprem`,
  sum(IF(severity = 'ERROR', n, 0L)) AS dq_error_total,
  sum(IF(severity = 'WARN', n, 0L)) AS dq_warn_total,
  sum(IF(severity = 'INFO', n, 0L)) AS dq_info_total
FROM (
  SELECT
    window_start,
    get(dq_rules, 0) AS name,
    count(*) AS n
  FROM dq_results_business
  WHERE settled
  GROUP BY window_start, get(dq_rules, 0)
) counted
LEFT JOIN dq_rules_business ON dq_rules_business.name = counted.name
GROUP BY window_start;

-- Each window as the JSON record that goes to the topic of metrics; no column is left out.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_metrics_sink_business AS
SELECT to_json(struct(*)) AS value
FROM dq_metrics_business;

-- The states are only ever added to: a key's state is the merge of all its rows.
-- step: states
INSERT INTO lake.dq.states_business BY NAME
SELECT
  pk,
  window_start,
  onprem,
  onprem_first,
  onprem_least,
  onprem_end,
  onprem_hashes,
  cloud,
  cloud_first,
  cloud_least,
  cloud_end,
  cloud_hashes,
  records,
  get(array(session.batch_time), shiftright(octet_length(pk), 31)) AS batch_time
FROM dq_batch_states_business;

-- Every change of a verdict is kept: it is the audit of the pair.
-- step: accept
INSERT INTO lake.dq.results_business BY NAME
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
  kafka_timestamp,
  id,
  verdict,
  provisional,
  rollup,
  settled,
  within_grace,
  late,
  stale,
  conflict,
  onprem_version,
  cloud_version,
  onprem_read_at,
  cloud_read_at,
  deadline,
  origin
FROM dq_verdicts_business
WHERE changed;

-- The results to be counted; the engine binds this view to those that it has staged.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_committed_business AS
SELECT *
FROM dq_verdicts_business
WHERE changed;

-- What the results add to each window: its rows, and for each rule the rows whose status it gave
-- (n) and those on which it held (held).
-- step: partial view
CREATE OR REPLACE TEMPORARY VIEW dq_partials_business AS
SELECT
  window_start,
  'prod' AS env,
  'onprem' AS dc,
  'business_onprem' AS table_name,
  'topic1' AS topic_name,
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
  FROM dq_committed_business
  LATERAL VIEW posexplode(concat(array(CAST(NULL AS STRING)), coalesce(dq_rules, array()))) held AS place, rule
  WHERE settled
  GROUP BY window_start, rule
)
LEFT JOIN dq_rules_business ON dq_rules_business.name = rule;

-- The sums of a window are those of its partials: nothing is read back and changed.
-- step: partials
INSERT INTO lake.dq.partials_business BY NAME
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
FROM dq_partials_business;

-- What became of every record: each has one outcome.
-- step: outcomes
SELECT
  side,
  outcome,
  reason,
  count(*) AS n
FROM (
  SELECT
    'onprem' AS side,
    CASE WHEN _reason_code IS NOT NULL THEN 'refused' WHEN kafka_value IS NULL THEN 'tombstone' ELSE 'accepted' END AS outcome,
    _reason_code AS reason
  FROM topic1_onprem_read
  UNION ALL
  SELECT
    'cloud' AS side,
    CASE WHEN _reason_code IS NOT NULL THEN 'refused' WHEN kafka_value IS NULL THEN 'tombstone' ELSE 'accepted' END AS outcome,
    _reason_code AS reason
  FROM topic2_cloud_read
)
GROUP BY side, outcome, reason;

-- A duplicate is the same key, version and hash at another offset; whether an earlier batch had
-- it, the table of states knows.
-- step: counts
SELECT
  side,
  sum(n) AS messages,
  sum(IF(deleted, n, 0L)) AS deletes,
  sum(n - 1) AS duplicates
FROM (
  SELECT
    side,
    action <=> 'DELETE' AS deleted,
    count(*) AS n
  FROM dq_messages_business
  GROUP BY side, pk, version, hash, action <=> 'DELETE'
)
GROUP BY side;

-- What can take no part, with the original bytes.
-- step: refuse
INSERT INTO lake.headgate.dead_letters BY NAME
SELECT
  'reconcile-business' AS job,
  session.batch_revision AS revision,
  _reason_code AS reason_code,
  CASE
    WHEN _reason_code = 'dq_missing_pk' THEN 'the record has no key'
    WHEN _reason_code = 'dq_unknown_action' THEN 'the action is none of those there are'
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
FROM topic1_onprem_read
WHERE _reason_code IS NOT NULL
UNION ALL
SELECT
  'reconcile-business' AS job,
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
FROM topic2_cloud_read
WHERE _reason_code IS NOT NULL;

-- Every key with its verdict at this moment.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_results_business AS
SELECT * EXCEPT (changed)
FROM (
  SELECT
    pk,
    onprem.action AS action,
    coalesce(_verdict.status, _row.status) AS dq_status,
    coalesce(_verdict.reason, _row.reason) AS dq_reason,
    coalesce(_verdict.severity, _row.severity) AS dq_severity,
    coalesce(_verdict.rules, IF(_row.rollup = 'pending', NULL, array(concat('verdict_', lower(_row.status))))) AS dq_rules,
    CASE WHEN _rollup = 'pending' THEN 'pending' WHEN _rollup = 'valid' THEN 'clean' ELSE 'failed' END AS dq_outcome,
    hash_onprem,
    hash_cloud,
    _at AS event_time,
    timestamp_seconds(unix_seconds(_at) - pmod(unix_seconds(_at), 10)) AS window_start,
    IF(
      _rollup IN ('pending', 'valid'),
      NULL,
      to_json(named_struct('t1', t1, 't2', t2), map('timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX'))
    ) AS row,
    CAST(NULL AS STRING) AS revision,
    current_timestamp() AS processing_time,
    IF(onprem IS NULL, 'topic2', 'topic1') AS kafka_topic,
    IF(onprem IS NULL, cloud.partition, onprem.partition) AS kafka_partition,
    IF(onprem IS NULL, cloud.offset, onprem.offset) AS kafka_offset,
    IF(onprem IS NULL, cloud.read_at, onprem.read_at) AS kafka_timestamp,
    sha2(
      concat_ws(
        '\n',
        coalesce(_verdict.status, _row.status),
        coalesce(CAST(unix_micros(onprem.version) AS STRING), '-'),
        coalesce(CAST(unix_micros(cloud.version) AS STRING), '-'),
        'business',
        pk
      ),
      256
    ) AS id,
    _row.status AS verdict,
    IF(_row.rollup = 'pending', _final_status, NULL) AS provisional,
    _rollup AS rollup,
    _row.rollup <> 'pending' AS settled,
    IF(_row.rollup = 'pending', NULL, within_grace) AS within_grace,
    late,
    stale,
    conflict,
    onprem.version AS onprem_version,
    cloud.version AS cloud_version,
    onprem_first.read_at AS onprem_read_at,
    cloud_first.read_at AS cloud_read_at,
    deadline,
    origin,
    t1,
    t2,
    changed
  FROM (
    SELECT
      *,
      rule_verdict() AS _verdict,
      _row.rollup AS _rollup
    FROM (
      SELECT
        *,
        IF(
          onprem IS NULL,
          NULL,
          named_struct(
            'pk', pk,
            'event_id', from_json(onprem.row, 'event_id STRING').event_id,
            'action', onprem.action,
            'hash_onprem', onprem.hash,
            'hash_version', onprem.hash_version,
            'event_ts', onprem.version
          )
        ) AS t1,
        IF(
          cloud IS NULL,
          NULL,
          named_struct(
            'pk', pk,
            'hash_cloud', cloud.hash,
            'hash_version', cloud.hash_version,
            'cloud_ts', cloud.version
          )
        ) AS t2
      FROM (
        SELECT
          * EXCEPT (_rows),
          get(_rows, IF(due, _final, _open)) AS _row,
          IF(due AND get(_rows, _open).rollup = 'pending', deadline, greatest(onprem_first.read_at, cloud_first.read_at)) AS _at,
          get(_rows, _final).status AS _final_status
        FROM (
          SELECT
            *,
            array(
              NULL,
              named_struct('status', 'DELETE_EVENT', 'severity', 'INFO', 'rollup', 'valid', 'reason', 'the row is deleted on both sides'),
              named_struct('status', 'DELETE_PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                  'deleted on-prem; the cloud may follow until the deadline'),
              named_struct('status', 'ZOMBIE', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                  'deleted on-prem, and still alive in the cloud'),
              named_struct('status', 'DELETE_EVENT', 'severity', 'INFO', 'rollup', 'valid', 'reason',
                  'deleted on-prem, and the cloud has no such row'),
              named_struct('status', 'DELETE_PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                  'deleted in the cloud; on-prem may follow until the deadline'),
              named_struct('status', 'DELETE_EVENT', 'severity', 'INFO', 'rollup', 'valid', 'reason',
                  'deleted in the cloud, and on-prem has no such row'),
              named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                  'deleted in the cloud, alive on-prem; either may follow until the deadline'),
              named_struct('status', 'ZOMBIE', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                  'deleted in the cloud, and still alive on-prem'),
              named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                  'on-prem may follow until the deadline'),
              named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                  'the cloud may follow until the deadline'),
              named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                  'the cloud was read before on-prem\'s newest version; it may be read again'),
              named_struct('status', 'INVALID_HASH', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                  'a hash is not 64 lower-case hexadecimal digits'),
              named_struct('status', 'MISSING_CLOUD', 'severity', 'ERROR', 'rollup', 'missing', 'reason',
                  'the cloud was read and has no row, or no hash, for the key'),
              named_struct('status', 'MISSING_CLOUD', 'severity', 'ERROR', 'rollup', 'missing', 'reason',
                  'the cloud has said nothing of the key by its deadline'),
              named_struct('status', 'MISSING_ONPREM', 'severity', 'ERROR', 'rollup', 'missing', 'reason',
                  'on-prem has said nothing of the key by its deadline'),
              named_struct('status', 'VERSION_SKEW', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                  'the sides hashed by different versions of the contract'),
              named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                  'the hashes are equal; whether the sides had met before is looked up'),
              named_struct('status', 'LATE_MATCH', 'severity', 'INFO', 'rollup', 'valid', 'reason',
                  'the hashes are equal; the sides came further apart than the window'),
              named_struct('status', 'MATCH', 'severity', 'INFO', 'rollup', 'valid', 'reason',
                  'both sides have the row, and their hashes are equal'),
              named_struct('status', 'PENDING', 'severity', CAST(NULL AS STRING), 'rollup', 'pending', 'reason',
                  'the hashes differ; the cloud is read once more before the deadline'),
              named_struct('status', 'LATE_MISMATCH', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                  'the hashes differ, and the sides came further apart than the window'),
              named_struct('status', 'MISMATCH', 'severity', 'ERROR', 'rollup', 'invalid', 'reason',
                  'both sides have the row, and their hashes differ')
            ) AS _rows
          FROM (
            SELECT
              *,
              CASE
                WHEN onprem_deleted AND (cloud_deleted OR cloud_absent AND NOT cloud_older) THEN 1
                WHEN onprem_deleted THEN 2
                WHEN cloud_deleted AND NOT onprem_seen THEN 5
                WHEN cloud_deleted THEN 7
                WHEN NOT onprem_seen THEN 9
                WHEN NOT cloud_seen THEN 10
                WHEN cloud_older THEN 11
                WHEN onprem_invalid OR cloud_invalid THEN 12
                WHEN cloud_absent THEN 13
                WHEN version_skew THEN 16
                WHEN NOT whole AND late AND hash_onprem = hash_cloud THEN 17
                WHEN hash_onprem = hash_cloud AND late THEN 18
                WHEN hash_onprem = hash_cloud THEN 19
                WHEN hash_onprem <> hash_cloud THEN 20
              END AS _open,
              CASE
                WHEN onprem_deleted AND (cloud_deleted OR cloud_absent AND NOT cloud_older) THEN 1
                WHEN onprem_deleted AND cloud_seen AND NOT cloud_absent THEN 3
                WHEN onprem_deleted THEN 4
                WHEN cloud_deleted AND NOT onprem_seen THEN 6
                WHEN cloud_deleted THEN 8
                WHEN onprem_invalid OR cloud_invalid THEN 12
                WHEN cloud_absent THEN 13
                WHEN NOT cloud_seen THEN 14
                WHEN NOT onprem_seen THEN 15
                WHEN version_skew THEN 16
                WHEN hash_onprem = hash_cloud AND late THEN 18
                WHEN hash_onprem = hash_cloud THEN 19
                WHEN hash_onprem <> hash_cloud AND late THEN 21
                WHEN hash_onprem <> hash_cloud THEN 22
              END AS _final
            FROM (
              SELECT
                *,
                onprem IS NOT NULL AS onprem_seen,
                cloud IS NOT NULL AS cloud_seen,
                coalesce(onprem.action = 'DELETE', FALSE) AS onprem_deleted,
                coalesce(cloud.action = 'DELETE', FALSE) AS cloud_deleted,
                cloud IS NOT NULL AND NOT coalesce(cloud.action = 'DELETE', FALSE) AND cloud.hash IS NULL AS cloud_absent,
                onprem IS NOT NULL AND NOT coalesce(onprem.action = 'DELETE', FALSE) AND NOT coalesce(onprem.hash RLIKE
                    '\\A[0-9a-f]{64}\\z', FALSE) AS onprem_invalid,
                NOT coalesce(cloud.action = 'DELETE', FALSE) AND NOT coalesce(cloud.hash RLIKE '\\A[0-9a-f]{64}\\z', TRUE) AS cloud_invalid,
                onprem.hash AS hash_onprem,
                cloud.hash AS hash_cloud,
                coalesce(onprem.hash_version <> cloud.hash_version, FALSE) AS version_skew,
                coalesce(
                  date_trunc('MILLISECOND', cloud.version) < date_trunc('MILLISECOND', onprem.version),
                  FALSE
                ) AS cloud_older,
                coalesce(
                  greatest(onprem_first.read_at, cloud_first.read_at)
                    > least(onprem_first.read_at, cloud_first.read_at) + INTERVAL 600 SECONDS
                    AND onprem IS NOT NULL AND cloud IS NOT NULL,
                  FALSE
                ) AS late,
                whole AND current_timestamp() >= greatest(onprem_first.read_at, cloud_first.read_at) + INTERVAL 900 SECONDS AS due,
                coalesce(onprem.action = 'DELETE', FALSE) OR coalesce(
                  greatest(onprem_first.read_at, cloud_first.read_at)
                    <= least(onprem_first.read_at, cloud_first.read_at) + INTERVAL 900 SECONDS
                    AND onprem IS NOT NULL AND cloud IS NOT NULL,
                  FALSE
                ) AS within_grace,
                coalesce(onprem_end.offset <> onprem.offset OR onprem_end.partition <> onprem.partition, FALSE)
                  OR coalesce(cloud_end.offset <> cloud.offset OR cloud_end.partition <> cloud.partition, FALSE) AS stale,
                coalesce(onprem_hashes.greatest <> onprem_hashes.least, FALSE) OR coalesce(cloud_hashes.greatest <> cloud_hashes.least,
                    FALSE) AS conflict,
                greatest(onprem_first.read_at, cloud_first.read_at) + INTERVAL 900 SECONDS AS deadline
              FROM (
                SELECT
                  *,
                  TRUE AS whole,
                  TRUE AS changed,
                  'now' AS origin
                FROM (
                  SELECT
                    pk,
                    window_start,
                    onprem,
                    IF(
                      _onprem_first IS NULL,
                      NULL,
                      named_struct(
                        'version', _onprem_first.version,
                        'read_at', timestamp_micros(-_onprem_first._micros),
                        'partition', -_onprem_first._partition,
                        'offset', -_onprem_first._offset,
                        'hash', _onprem_first.hash
                      )
                    ) AS onprem_first,
                    onprem_least,
                    onprem_end,
                    IF(
                      _onprem_greatest IS NULL,
                      NULL,
                      named_struct('greatest', _onprem_greatest.hash, 'least', ~_onprem_lowest.hash)
                    ) AS onprem_hashes,
                    cloud,
                    IF(
                      _cloud_first IS NULL,
                      NULL,
                      named_struct(
                        'version', _cloud_first.version,
                        'read_at', timestamp_micros(-_cloud_first._micros),
                        'partition', -_cloud_first._partition,
                        'offset', -_cloud_first._offset,
                        'hash', _cloud_first.hash
                      )
                    ) AS cloud_first,
                    cloud_least,
                    cloud_end,
                    IF(
                      _cloud_greatest IS NULL,
                      NULL,
                      named_struct('greatest', _cloud_greatest.hash, 'least', ~_cloud_lowest.hash)
                    ) AS cloud_hashes,
                    records
                  FROM (
                    SELECT
                      pk,
                      max(window_start) AS window_start,
                      max(onprem) AS onprem,
                      max(struct(onprem_first.version, -unix_micros(onprem_first.read_at) AS _micros, -onprem_first.partition AS _partition,
                          -onprem_first.offset AS _offset, onprem_first.hash)) FILTER (WHERE onprem_first IS NOT NULL) AS _onprem_first,
                      min(onprem_least) AS onprem_least,
                      max(onprem_end) AS onprem_end,
                      max(IF(onprem IS NULL, NULL, struct(onprem.version, coalesce(
                        onprem_hashes.greatest,
                        greatest(
                          xxhash64(onprem.hash, onprem.action <=> 'DELETE', onprem.hash_version),
                          xxhash64(onprem_first.hash, onprem.action <=> 'DELETE', onprem.hash_version)
                        )
                      ) AS hash))) AS _onprem_greatest,
                      max(IF(onprem IS NULL, NULL, struct(onprem.version, ~coalesce(
                        onprem_hashes.least,
                        least(
                          xxhash64(onprem.hash, onprem.action <=> 'DELETE', onprem.hash_version),
                          xxhash64(onprem_first.hash, onprem.action <=> 'DELETE', onprem.hash_version)
                        )
                      ) AS hash))) AS _onprem_lowest,
                      max(cloud) AS cloud,
                      max(struct(cloud_first.version, -unix_micros(cloud_first.read_at) AS _micros, -cloud_first.partition AS _partition,
                          -cloud_first.offset AS _offset, cloud_first.hash)) FILTER (WHERE cloud_first IS NOT NULL) AS _cloud_first,
                      min(cloud_least) AS cloud_least,
                      max(cloud_end) AS cloud_end,
                      max(IF(cloud IS NULL, NULL, struct(cloud.version, coalesce(
                        cloud_hashes.greatest,
                        greatest(
                          xxhash64(cloud.hash, cloud.action <=> 'DELETE', cloud.hash_version),
                          xxhash64(cloud_first.hash, cloud.action <=> 'DELETE', cloud.hash_version)
                        )
                      ) AS hash))) AS _cloud_greatest,
                      max(IF(cloud IS NULL, NULL, struct(cloud.version, ~coalesce(
                        cloud_hashes.least,
                        least(
                          xxhash64(cloud.hash, cloud.action <=> 'DELETE', cloud.hash_version),
                          xxhash64(cloud_first.hash, cloud.action <=> 'DELETE', cloud.hash_version)
                        )
                      ) AS hash))) AS _cloud_lowest,
                      max(records) AS records
                    FROM lake.dq.states_business
                    GROUP BY pk
                  )
                )
              )
            )
          )
        )
      )
    )
  )
);

-- Every change of a verdict, each once.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_audit_business AS
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
  kafka_timestamp,
  id,
  verdict,
  provisional,
  rollup,
  settled,
  within_grace,
  late,
  stale,
  conflict,
  onprem_version,
  cloud_version,
  onprem_read_at,
  cloud_read_at,
  deadline,
  origin
FROM (
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
    kafka_timestamp,
    id,
    verdict,
    provisional,
    rollup,
    settled,
    within_grace,
    late,
    stale,
    conflict,
    onprem_version,
    cloud_version,
    onprem_read_at,
    cloud_read_at,
    deadline,
    origin,
    lag(id) OVER (PARTITION BY pk ORDER BY processing_time, onprem_version, cloud_version, settled) AS _before
  FROM lake.dq.results_business
)
WHERE NOT id <=> _before;

-- How many keys have which status.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_status_business AS
SELECT
  dq_status,
  rollup,
  count(*) AS cnt
FROM spark_catalog.default.dq_results_business
GROUP BY dq_status, rollup;

-- The changes in each window.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_metrics_business AS
SELECT
  window_start,
  env,
  dc,
  table_name,
  topic_name,
  sum(IF(metric = 'hash_match', n, 0L)) AS `dq.cassandra.hash_match`,
  sum(IF(metric = 'delete_event', n, 0L)) AS `dq.cassandra.delete_event`,
  sum(IF(metric = 'hash_mismatch', n, 0L)) AS `dq.cassandra.hash_mismatch`,
  sum(IF(metric = 'zombie', n, 0L)) AS `dq.cassandra.zombie`,
  sum(IF(metric = 'version_skew', n, 0L)) AS `dq.cassandra.version_skew`,
  sum(IF(metric = 'invalid_hash', n, 0L)) AS `dq.cassandra.invalid_hash`,
  sum(IF(metric = 'missing_cloud', n, 0L)) AS `dq.cassandra.missing_cloud`,
  sum(IF(metric = 'missing_onprem', n, 0L)) AS `dq.cassandra.missing_onprem`,
  sum(IF(severity = 'ERROR', n, 0L)) AS dq_error_total,
  sum(IF(severity = 'WARN', n, 0L)) AS dq_warn_total,
  sum(IF(severity = 'INFO', n, 0L)) AS dq_info_total
FROM lake.dq.partials_business
WHERE kind IN ('rows', 'rule')
GROUP BY window_start, env, dc, table_name, topic_name;

-- Each key with both hashes and its status.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_hash_check AS
SELECT
  t1.event_id,
  pk,
  hash_onprem,
  hash_cloud,
  dq_status
FROM spark_catalog.default.dq_results_business;
