-- Reconciliation of business: topic topic1 and topic topic2, judged by the decision table.
-- Compiled from rules/topic1.yml, revision 06320dfdf4e6, by Headgate 0.1.0.
--
--   line  26  the records of topic topic1
--   line  83  the records of topic topic2
--   line 129  messages of both sides, and the state of each key
--   line 214  the facts that rules and decision table test
--   line 252  the decision table
--   line 330  dq_results_business: every key with its verdict
--   line 388  how many rows each rule decided
--   line 399  dq_metrics_business: metrics of each window
--
-- Creates temporary views only, however often it is run. A job replaces the view of each topic or table
-- with the records of its batch. To change a rule, edit rules/topic1.yml and compile it again.
-- strict_json gives the declared fields of a record, other fields in _extra and the names of absent ones in
-- _missing, or a _reason_code where it has no row to give; 'drift' says what records with other fields
-- become. rule_verdict gives the first entry whose condition is true, with the names of all such entries
-- in `rules`, or NULL if there is none; a condition that is NULL does not match. Both are Spark functions
-- of Headgate, which the properties file brings along.
--   spark-sql --properties-file build/conf/spark-defaults.conf -i build/sql/rules/business/dq_generated.sql
-- opens a prompt for: SELECT * FROM dq_results_business; SELECT * FROM dq_metrics_business;

-- Every "now" of this file; a job sets it to the time of its batch.
DECLARE OR REPLACE VARIABLE batch_time TIMESTAMP DEFAULT current_timestamp();

-- All records of the topic.
CREATE OR REPLACE TEMPORARY VIEW topic1_onprem_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092', 'subscribe' 'topic1', 'includeHeaders' 'true',
  'startingOffsets' 'earliest', 'endingOffsets' 'latest', 'kafka.isolation.level' 'read_committed'
);

-- Each record, read strictly: its fields, or the reason why it cannot be a row; a job writes those
-- with a _reason_code to the dead letters. A tombstone has no fields: it deletes its key.
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
    topic AS kafka_topic, partition AS kafka_partition, offset AS kafka_offset,
    timestamp AS kafka_timestamp, key AS kafka_key, value AS kafka_value, headers AS kafka_headers,
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

-- The readable records that are no tombstones, for queries by hand.
CREATE OR REPLACE TEMPORARY VIEW topic1_onprem AS
SELECT
  * EXCEPT (_reason_code, _reason, _drift, _extra, _missing, kafka_key, kafka_value, kafka_headers),
  from_json(CAST(kafka_value AS STRING), 'partitionColumns ARRAY<STRUCT<type: STRING, value: STRING>>').partitionColumns AS partitionColumns
FROM topic1_onprem_read
WHERE _reason_code IS NULL AND kafka_value IS NOT NULL;

-- The rows with their key.
CREATE OR REPLACE TEMPORARY VIEW topic1_with_pk AS
SELECT * EXCEPT (partitionColumns)
FROM topic1_onprem;

-- All records of the topic.
CREATE OR REPLACE TEMPORARY VIEW topic2_cloud_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092', 'subscribe' 'topic2', 'includeHeaders' 'true',
  'startingOffsets' 'earliest', 'endingOffsets' 'latest', 'kafka.isolation.level' 'read_committed'
);

-- Each record, read strictly: its fields, or the reason why it cannot be a row; a job writes those
-- with a _reason_code to the dead letters. A tombstone has no fields: it deletes its key.
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
    topic AS kafka_topic, partition AS kafka_partition, offset AS kafka_offset,
    timestamp AS kafka_timestamp, key AS kafka_key, value AS kafka_value, headers AS kafka_headers,
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

-- The readable records that are no tombstones, for queries by hand.
CREATE OR REPLACE TEMPORARY VIEW topic2_cloud AS
SELECT
  * EXCEPT (_reason_code, _reason, _drift, _extra, _missing, kafka_key, kafka_value, kafka_headers)
FROM topic2_cloud_read
WHERE _reason_code IS NULL AND kafka_value IS NOT NULL;

-- The readable messages of both sides in one shape. version is the event time, or the record's
-- timestamp for a tombstone and where the event time is missing or out of range; read_at is always
-- the record's.
CREATE OR REPLACE TEMPORARY VIEW dq_messages_business AS
SELECT
  'onprem' AS side,
  IF(kafka_value IS NULL, CAST(kafka_key AS STRING), CAST(pk AS STRING)) AS pk,
  IF(kafka_value IS NULL, kafka_timestamp, IF(year(event_ts) BETWEEN 1 AND 9999, event_ts, kafka_timestamp)) AS version,
  kafka_partition AS partition, kafka_offset AS offset, hash_onprem AS hash, hash_version,
  IF(kafka_value IS NULL, 'DELETE', coalesce(action, 'UPSERT')) AS action,
  kafka_timestamp AS read_at,
  IF(kafka_value IS NULL, NULL,
    to_json(struct(event_id), map('timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX'))) AS row
FROM topic1_onprem_read
WHERE _reason_code IS NULL
UNION ALL
SELECT
  'cloud' AS side,
  IF(kafka_value IS NULL, CAST(kafka_key AS STRING), CAST(pk AS STRING)) AS pk,
  IF(kafka_value IS NULL, kafka_timestamp, IF(year(cloud_ts) BETWEEN 1 AND 9999, cloud_ts, kafka_timestamp)) AS version,
  kafka_partition AS partition, kafka_offset AS offset, hash_cloud AS hash, hash_version,
  IF(kafka_value IS NULL, 'DELETE', NULL) AS action,
  kafka_timestamp AS read_at,
  CAST(NULL AS STRING) AS row
FROM topic2_cloud_read
WHERE _reason_code IS NULL;

-- A timestamp in the future is capped at the batch's time, so that one clock that runs ahead does
-- not move the watermark of all. A streaming job replaces this view with one that has a watermark
-- on seen_at.
CREATE OR REPLACE TEMPORARY VIEW dq_timed_business AS
SELECT
  *,
  least(read_at, session.batch_time) AS seen_at
FROM dq_messages_business;

-- Each message as the state that its key would have if this were its only message. version_desc is
-- negated, so that a minimum finds the newest version.
CREATE OR REPLACE TEMPORARY VIEW dq_message_states_business AS
SELECT
  *,
  IF(side = 'onprem',
    struct(version, partition, offset, hash, hash_version, action, seen_at AS read_at, row), NULL) AS onprem,
  IF(side = 'onprem',
    struct(-unix_micros(version) AS version_desc, seen_at AS read_at, partition, offset, hash), NULL) AS onprem_first,
  IF(side = 'onprem', struct(partition, offset), NULL) AS onprem_end,
  IF(side = 'onprem', struct(version, xxhash64(hash, action <=> 'DELETE', hash_version) AS content), NULL) AS onprem_greatest,
  IF(side = 'onprem',
    struct(-unix_micros(version) AS version_desc, xxhash64(hash, action <=> 'DELETE', hash_version) AS content), NULL) AS onprem_least,
  IF(side = 'cloud',
    struct(version, partition, offset, hash, hash_version, action, seen_at AS read_at, row), NULL) AS cloud,
  IF(side = 'cloud',
    struct(-unix_micros(version) AS version_desc, seen_at AS read_at, partition, offset, hash), NULL) AS cloud_first,
  IF(side = 'cloud', struct(partition, offset), NULL) AS cloud_end,
  IF(side = 'cloud', struct(version, xxhash64(hash, action <=> 'DELETE', hash_version) AS content), NULL) AS cloud_greatest,
  IF(side = 'cloud',
    struct(-unix_micros(version) AS version_desc, xxhash64(hash, action <=> 'DELETE', hash_version) AS content), NULL) AS cloud_least
FROM dq_timed_business;

-- The state of each key. Per side: the newest version, when that version first arrived (_first),
-- the highest partition and offset (_end), and the content of the newest version, which differs
-- between _greatest and _least if that version came with two. Maxima and minima only, so the order
-- of arrival changes nothing. Here all records are known (whole) and no more will come (ended), so
-- every key is due; a job replaces this view with the states of its batch, whose keys may have to
-- wait.
CREATE OR REPLACE TEMPORARY VIEW dq_states_business AS
SELECT
  pk,
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
  TRUE AS whole,
  TRUE AS ended,
  session.batch_time AS judged_at,
  'batch' AS origin
FROM dq_message_states_business
GROUP BY pk;

-- The facts that rules and decision table test; t1 is onprem and t2 is cloud. A key is late if its
-- sides arrived more than the window of 10 minutes apart, and due 15 minutes (window and grace)
-- after the later arrival, or at the end of all input as here. A NULL hash is invalid on-prem; in
-- the cloud it says that there is no row. stale: the newest version is not in the last record;
-- conflict: it came with two contents.
CREATE OR REPLACE TEMPORARY VIEW dq_facts_business AS
SELECT
  *,
  IF(onprem IS NULL, NULL, struct(
    pk AS pk, from_json(onprem.row, 'event_id STRING').event_id AS event_id, onprem.action AS action, onprem.hash AS hash_onprem,
    onprem.hash_version AS hash_version, onprem.version AS event_ts
  )) AS t1,
  IF(cloud IS NULL, NULL, struct(
    pk AS pk, cloud.hash AS hash_cloud, cloud.hash_version AS hash_version, cloud.version AS cloud_ts
  )) AS t2,
  onprem IS NOT NULL AS onprem_seen,
  cloud IS NOT NULL AS cloud_seen,
  coalesce(onprem.action = 'DELETE', FALSE) AS onprem_deleted,
  coalesce(cloud.action = 'DELETE', FALSE) AS cloud_deleted,
  cloud IS NOT NULL AND NOT coalesce(cloud.action = 'DELETE', FALSE) AND cloud.hash IS NULL AS cloud_absent,
  onprem IS NOT NULL AND NOT coalesce(onprem.action = 'DELETE', FALSE) AND NOT coalesce(onprem.hash RLIKE '\\A[0-9a-f]{64}\\z', FALSE)
      AS onprem_invalid,
  NOT coalesce(cloud.action = 'DELETE', FALSE) AND NOT coalesce(cloud.hash RLIKE '\\A[0-9a-f]{64}\\z', TRUE) AS cloud_invalid,
  onprem.hash AS hash_onprem,
  cloud.hash AS hash_cloud,
  coalesce(onprem.hash_version <> cloud.hash_version, FALSE) AS version_skew,
  coalesce(unix_millis(cloud.version) < unix_millis(onprem.version), FALSE) AS cloud_older,
  coalesce(abs(onprem_first.read_at - cloud_first.read_at) > INTERVAL 600 SECONDS, FALSE) AS late,
  whole AND (ended OR judged_at >= greatest(onprem_first.read_at, cloud_first.read_at) + INTERVAL 900 SECONDS) AS due,
  coalesce(onprem.action = 'DELETE', FALSE) OR coalesce(abs(onprem_first.read_at - cloud_first.read_at) <= INTERVAL 900 SECONDS, FALSE)
      AS within_grace,
  coalesce(onprem_end <> struct(onprem.partition, onprem.offset), FALSE)
    OR coalesce(cloud_end <> struct(cloud.partition, cloud.offset), FALSE) AS stale,
  coalesce(onprem_greatest.content <> onprem_least.content, FALSE) OR coalesce(cloud_greatest.content <> cloud_least.content, FALSE)
      AS conflict,
  greatest(onprem_first.read_at, cloud_first.read_at) + INTERVAL 900 SECONDS AS deadline
FROM dq_states_business;

-- _open and _final: the first row of the decision table that matches, for a key that may still
-- wait for a side and for a key that is due. The numbers are those of the one table in the
-- documentation; rows that can decide both before and after the deadline stand in both lists.
CREATE OR REPLACE TEMPORARY VIEW dq_decided_business AS
SELECT
  *,
  rule_verdict() AS _rule,
  rule_verdict(
    -- name, status, severity, reason, and the condition on which the row matches
    '1', 'DELETE_EVENT', 'INFO', 'the row is deleted on both sides',
      onprem_deleted AND (cloud_deleted OR cloud_absent AND NOT cloud_older),
    '2', 'DELETE_PENDING', NULL, 'deleted on-prem; the cloud may follow until the deadline',
      onprem_deleted,
    '5', 'DELETE_PENDING', NULL, 'deleted in the cloud; on-prem may follow until the deadline',
      cloud_deleted AND NOT onprem_seen,
    '7', 'PENDING', NULL, 'deleted in the cloud, alive on-prem; either may follow until the deadline',
      cloud_deleted,
    '9', 'PENDING', NULL, 'on-prem may follow until the deadline', NOT onprem_seen,
    '10', 'PENDING', NULL, 'the cloud may follow until the deadline', NOT cloud_seen,
    '11', 'PENDING', NULL, 'the cloud was read before on-prem\'s newest version; it may be read again',
      cloud_older,
    '12', 'INVALID_HASH', 'ERROR', 'a hash is not 64 lower-case hexadecimal digits',
      onprem_invalid OR cloud_invalid,
    '13', 'MISSING_CLOUD', 'ERROR', 'the cloud was read and has no row, or no hash, for the key',
      cloud_absent,
    '16', 'VERSION_SKEW', 'ERROR', 'the sides hashed by different versions of the contract', version_skew,
    '17', 'PENDING', NULL, 'the hashes are equal; a job looks up whether the sides had met before',
      NOT whole AND late AND hash_onprem = hash_cloud,
    '18', 'LATE_MATCH', 'INFO', 'the hashes are equal; the sides came further apart than the window',
      hash_onprem = hash_cloud AND late,
    '19', 'MATCH', 'INFO', 'both sides have the row, and their hashes are equal', hash_onprem = hash_cloud,
    '20', 'PENDING', NULL, 'the hashes differ; the cloud is read once more before the deadline',
      hash_onprem <> hash_cloud
  ) AS _open,
  rule_verdict(
    -- name, status, severity, reason, and the condition on which the row matches
    '1', 'DELETE_EVENT', 'INFO', 'the row is deleted on both sides',
      onprem_deleted AND (cloud_deleted OR cloud_absent AND NOT cloud_older),
    '3', 'ZOMBIE', 'ERROR', 'deleted on-prem, and still alive in the cloud',
      onprem_deleted AND cloud_seen AND NOT cloud_absent,
    '4', 'DELETE_EVENT', 'INFO', 'deleted on-prem, and the cloud has no such row', onprem_deleted,
    '6', 'DELETE_EVENT', 'INFO', 'deleted in the cloud, and on-prem has no such row',
      cloud_deleted AND NOT onprem_seen,
    '8', 'ZOMBIE', 'ERROR', 'deleted in the cloud, and still alive on-prem', cloud_deleted,
    '12', 'INVALID_HASH', 'ERROR', 'a hash is not 64 lower-case hexadecimal digits',
      onprem_invalid OR cloud_invalid,
    '13', 'MISSING_CLOUD', 'ERROR', 'the cloud was read and has no row, or no hash, for the key',
      cloud_absent,
    '14', 'MISSING_CLOUD', 'ERROR', 'the cloud has said nothing of the key by its deadline',
      NOT cloud_seen,
    '15', 'MISSING_ONPREM', 'ERROR', 'on-prem has said nothing of the key by its deadline',
      NOT onprem_seen,
    '16', 'VERSION_SKEW', 'ERROR', 'the sides hashed by different versions of the contract', version_skew,
    '18', 'LATE_MATCH', 'INFO', 'the hashes are equal; the sides came further apart than the window',
      hash_onprem = hash_cloud AND late,
    '19', 'MATCH', 'INFO', 'both sides have the row, and their hashes are equal', hash_onprem = hash_cloud,
    '21', 'LATE_MISMATCH', 'ERROR', 'the hashes differ, and the sides came further apart than the window',
      hash_onprem <> hash_cloud AND late,
    '22', 'MISMATCH', 'ERROR', 'both sides have the row, and their hashes differ',
      hash_onprem <> hash_cloud
  ) AS _final
FROM dq_facts_business;

-- The verdict of a key: 1. one that is not due waits if its _open row is pending, which never
-- happens here; 2. any other gets the verdict of the decision table (_row). It was reached at _at:
-- when the later side arrived or, where a job would have waited for more (has_waited), at the
-- deadline.
CREATE OR REPLACE TEMPORARY VIEW dq_verdicts_business AS
SELECT
  * EXCEPT (_rule),
  IF(due, _final, _open) AS _row,
  IF(NOT due AND _open.status IN ('PENDING', 'DELETE_PENDING'), NULL, _rule) AS _rule,
  NOT due AND _open.status IN ('PENDING', 'DELETE_PENDING') AS is_pending,
  due AND _open.status IN ('PENDING', 'DELETE_PENDING') AS has_waited,
  IF(due AND _open.status IN ('PENDING', 'DELETE_PENDING') AND judged_at >= deadline, deadline, greatest(onprem_first.read_at,
      cloud_first.read_at)) AS _at
FROM dq_decided_business;

-- Every key with its verdict. event_time is when it was reached, verdict the status by the
-- decision table alone, provisional the status by the table of a waiting key if it were due now.
CREATE OR REPLACE TEMPORARY VIEW dq_results_business AS
SELECT
  pk, onprem.action AS action,
  coalesce(_rule.status, _row.status) AS dq_status,
  coalesce(_rule.reason, _row.reason) AS dq_reason,
  coalesce(_rule.severity, _row.severity) AS dq_severity,
  IF(is_pending, NULL, coalesce(_rule.rules, array(concat('verdict_', lower(_row.status))))) AS dq_rules,
  CASE
    WHEN dq_status IN ('MATCH', 'LATE_MATCH', 'DELETE_EVENT') THEN 'valid'
    WHEN dq_status IN ('MISSING_CLOUD', 'MISSING_ONPREM') THEN 'missing'
    WHEN dq_status IN ('PENDING', 'DELETE_PENDING') THEN 'pending'
    ELSE 'invalid'
  END AS rollup,
  decode(rollup, 'pending', 'pending', 'valid', 'clean', 'failed') AS dq_outcome,
  hash_onprem, hash_cloud, _at AS event_time,
  timestamp_seconds(unix_seconds(_at) - pmod(unix_seconds(_at), 10)) AS window_start,
  IF(
    rollup IN ('pending', 'valid'),
    NULL,
    to_json(named_struct('t1', t1, 't2', t2), map('timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX'))
  ) AS row,
  judged_at AS processing_time,
  IF(onprem IS NULL, 'topic2', 'topic1') AS kafka_topic,
  coalesce(onprem, cloud).partition AS kafka_partition,
  coalesce(onprem, cloud).offset AS kafka_offset,
  coalesce(onprem, cloud).read_at AS kafka_timestamp,
  sha2(concat_ws('\n', dq_status, coalesce(CAST(unix_micros(onprem.version) AS STRING), '-'), coalesce(CAST(unix_micros(cloud.version)
      AS STRING), '-'), 'business', pk), 256) AS id,
  _row.status AS verdict,
  IF(is_pending, _final.status, NULL) AS provisional,
  NOT is_pending AS settled,
  CASE
    WHEN is_pending THEN NULL
    WHEN NOT has_waited THEN 'records'
    WHEN judged_at >= deadline THEN 'deadline'
    ELSE 'end_of_input'
  END AS settled_by,
  IF(is_pending, NULL, within_grace) AS within_grace,
  late, stale, conflict,
  onprem.version AS onprem_version,
  cloud.version AS cloud_version,
  onprem_first.read_at AS onprem_read_at,
  cloud_first.read_at AS cloud_read_at,
  deadline, origin
FROM dq_verdicts_business;

-- Each key with both hashes and its status.
CREATE OR REPLACE TEMPORARY VIEW dq_hash_check AS
SELECT
  t1.event_id,
  pk,
  hash_onprem,
  hash_cloud,
  coalesce(_rule.status, _row.status) AS dq_status
FROM dq_verdicts_business;

-- Each settled key counts once, under the first rule that matches it or else under its verdict.
CREATE OR REPLACE TEMPORARY VIEW dq_counts_business AS
SELECT
  window_start,
  get(dq_rules, 0) AS name,
  dq_severity AS severity,
  count(*) AS n
FROM dq_results_business
WHERE settled
GROUP BY ALL;

-- The metrics of each window.
CREATE OR REPLACE TEMPORARY VIEW dq_metrics_business AS
SELECT
  window_start,
  'prod' AS env,
  'onprem' AS dc,
  'business_onprem' AS table_name,
  'topic1' AS topic_name,
  sum(IF(name IN ('verdict_match', 'verdict_late_match'), n, 0L)) AS `dq.cassandra.hash_match`,
  sum(IF(name = 'verdict_delete_event', n, 0L)) AS `dq.cassandra.delete_event`,
  sum(IF(name IN ('verdict_mismatch', 'verdict_late_mismatch'), n, 0L)) AS `dq.cassandra.hash_mismatch`,
  sum(IF(name = 'verdict_zombie', n, 0L)) AS `dq.cassandra.zombie`,
  sum(IF(name = 'verdict_version_skew', n, 0L)) AS `dq.cassandra.version_skew`,
  sum(IF(name = 'verdict_invalid_hash', n, 0L)) AS `dq.cassandra.invalid_hash`,
  sum(IF(name = 'verdict_missing_cloud', n, 0L)) AS `dq.cassandra.missing_cloud`,
  sum(IF(name = 'verdict_missing_onprem', n, 0L)) AS `dq.cassandra.missing_onprem`,
  sum(IF(severity = 'ERROR', n, 0L)) AS dq_error_total,
  sum(IF(severity = 'WARN', n, 0L)) AS dq_warn_total,
  sum(IF(severity = 'INFO', n, 0L)) AS dq_info_total
FROM dq_counts_business
GROUP BY window_start;
