-- Data quality of taxi: topic taxi.raw_trips, judged by 23 rules.
-- Compiled from rules/taxi.yml, revision 53456a5070d6, by Headgate 0.1.0.
-- Then: SELECT * FROM dq_results_taxi, SELECT * FROM dq_metrics_taxi.
-- Run alone, it reads everything there is, and appends to the tables.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/rules/taxi/dq_generated.sql

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
DEFAULT '53456a5070d64067732117de43aeb0a3404e180f45b4508b0650f5dbef63ad52';

-- The tables; their columns do not depend on the rules, so that new rules change none.
-- step: table
CREATE NAMESPACE IF NOT EXISTS lake.dq;

CREATE TABLE IF NOT EXISTS lake.dq.results_taxi (
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

CREATE TABLE IF NOT EXISTS lake.dq.partials_taxi (
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

CREATE TABLE IF NOT EXISTS lake.dq.keys_taxi (
  rule STRING,
  key STRING,
  event_time TIMESTAMP,
  kafka_partition INT,
  kafka_offset BIGINT,
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
CREATE OR REPLACE TEMPORARY VIEW taxi_trips_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092',
  'kafka.isolation.level' 'read_committed',
  'subscribe' 'taxi.raw_trips',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest',
  'includeHeaders' 'true'
);

-- Each record, read strictly: its fields, or the reason why it cannot be a row. A tombstone has no
-- fields: it is counted, not judged.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW taxi_trips_read AS
SELECT
  * EXCEPT (record),
  record.* EXCEPT (_reason_code),
  CASE
    WHEN record._reason_code IS NOT NULL THEN record._reason_code
    WHEN record.PULocationID IS NULL THEN 'dq_missing_pk'
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
      'VendorID BIGINT,
       tpep_pickup_datetime TIMESTAMP,
       tpep_dropoff_datetime TIMESTAMP,
       passenger_count DOUBLE,
       trip_distance DOUBLE,
       RatecodeID DOUBLE,
       store_and_fwd_flag STRING,
       PULocationID BIGINT,
       DOLocationID BIGINT,
       payment_type BIGINT,
       fare_amount DOUBLE,
       extra DOUBLE,
       mta_tax DOUBLE,
       tip_amount DOUBLE,
       tolls_amount DOUBLE,
       improvement_surcharge DOUBLE,
       total_amount DOUBLE,
       congestion_surcharge DOUBLE,
       Airport_fee DOUBLE',
      map(
        'drift', 'keep',
        'timestampFormat', 'yyyy-MM-dd[\'T\'][\' \']HH:mm:ss[.SSSSSS][XXX]',
        'masked', 'DOLocationID'
      )
    ) AS record
  FROM taxi_trips_source
  WHERE value IS NOT NULL
);

-- The rows that the rules see.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW taxi_trips AS
SELECT
  VendorID,
  tpep_pickup_datetime,
  tpep_dropoff_datetime,
  passenger_count,
  trip_distance,
  RatecodeID,
  store_and_fwd_flag,
  PULocationID,
  DOLocationID,
  payment_type,
  fare_amount,
  extra,
  mta_tax,
  tip_amount,
  tolls_amount,
  improvement_surcharge,
  total_amount,
  congestion_surcharge,
  Airport_fee,
  _extra,
  _missing,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM taxi_trips_read
WHERE _reason_code IS NULL;

-- The rules in the order that decides: the first that matches gives a row its status.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_rules_taxi AS
SELECT *
FROM VALUES
  (1, 'no_time', 'NO_TIME', 'no_time', 'ERROR', 'dead_letter', 'pickup or dropoff time is missing'),
  (2, 'no_vendor', 'INVALID', 'no_vendor', 'ERROR', 'keep', 'nobody says who sent the row'),
  (3, 'ends_before_it_begins', 'BAD_TIMES', 'bad_times', 'ERROR', 'keep', 'the dropoff is before the pickup'),
  (4, 'other_month', 'OTHER_MONTH', 'other_month', 'ERROR', 'keep', 'the pickup is not in January 2024'),
  (5, 'refund', 'REFUND', 'refund', 'WARN', 'keep', 'the total is negative, a refund or a cancelled trip'),
  (6, 'fare_above_total', 'BAD_AMOUNT', 'bad_amount', 'ERROR', 'keep', 'the fare alone is more than the total'),
  (7, 'no_distance', 'BAD_DISTANCE', 'bad_distance', 'ERROR', 'keep', 'the distance is negative, or beyond what a taxi drives'),
  (8, 'duplicate', 'DUPLICATE', 'duplicate', 'WARN', 'keep', 'the same trip came before'),
  (9, 'unknown_vendor', 'QUARANTINE', 'unknown_vendor', 'WARN', 'keep', 'the vendor is none of those that send rows'),
  (10, 'unknown_rate_code', 'QUARANTINE', 'unknown_rate_code', 'WARN', 'keep', 'the rate code is none of those in use'),
  (11, 'unknown_payment', 'QUARANTINE', 'unknown_payment', 'WARN', 'keep', 'the payment type is none of those in use'),
  (12, 'pickup_zone', 'QUARANTINE', 'pickup_zone', 'WARN', 'keep', 'the pickup is in no taxi zone'),
  (13, 'dropoff_zone', 'QUARANTINE', 'dropoff_zone', 'WARN', 'keep', 'the dropoff is in no taxi zone'),
  (14, 'passengers', 'QUARANTINE', 'passengers', 'WARN', 'keep', 'more passengers than a taxi holds'),
  (15, 'flag', 'QUARANTINE', 'flag', 'WARN', 'keep', 'the store-and-forward flag is neither Y nor N'),
  (16, 'too_long', 'TOO_LONG', 'too_long', 'WARN', 'keep', 'the trip took more than twelve hours'),
  (17, 'too_fast', 'TOO_FAST', 'too_fast', 'WARN', 'keep', 'faster than 100 miles an hour'),
  (18, 'not_there_yet', 'FROM_THE_FUTURE', 'from_the_future', 'WARN', 'keep', 'the pickup is later than the batch'),
  (19, 'nobody_in_it', 'NO_PASSENGER', 'no_passenger', 'INFO', 'keep', 'the driver entered no passenger'),
  (20, 'tip_in_cash', 'INFO', 'tip_in_cash', 'INFO', 'keep', 'a tip is recorded for a trip not paid by card'),
  (21, 'zone_outside', 'INFO', 'zone_outside', 'INFO', 'keep', 'the dropoff is outside the city or unknown'),
  (22, 'airport_fee', 'INFO', 'airport_fee', 'INFO', 'keep', 'the airport fee is none of those in force'),
  (23, 'fields_missing', 'INFO', 'fields_missing', 'INFO', 'keep', 'the message lacks a field')
AS rules (place, name, status, metric, severity, on_fail, reason);

-- The keys that must not come twice, exactly as their values are; with a NULL there is no key.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_keyed_taxi AS
SELECT
  *,
  coalesce(IF(tpep_pickup_datetime BETWEEN TIMESTAMP_LTZ '0001-01-01 00:00:00Z' AND TIMESTAMP_LTZ '9999-12-31 23:59:59.999999Z',
      tpep_pickup_datetime, NULL), kafka_timestamp) AS _at,
  IF(
    VendorID IS NULL OR tpep_pickup_datetime IS NULL OR tpep_dropoff_datetime IS NULL OR PULocationID IS NULL OR DOLocationID IS NULL
        OR fare_amount IS NULL OR total_amount IS NULL,
    NULL,
    sha2(to_json(named_struct(
      'VendorID', VendorID,
      'tpep_pickup_datetime', tpep_pickup_datetime,
      'tpep_dropoff_datetime', tpep_dropoff_datetime,
      'PULocationID', PULocationID,
      'DOLocationID', DOLocationID,
      'fare_amount', fare_amount,
      'total_amount', total_amount
    ), map('timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX')), 256)
  ) AS _key_7
FROM taxi_trips;

-- Whether the key was met before: by a row before it, or within the horizon in an earlier batch.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_rows_taxi AS
SELECT
  here.* EXCEPT (_apart, _stretch, _near, _side, _before, _below, _above),
  _key_7 IS NOT NULL
    AND (
      _before > 0
      OR coalesce(try_subtract(unix_micros(_at), _below) <= 86400000000L, FALSE)
      OR coalesce(try_subtract(_above, unix_micros(_at)) <= 86400000000L, FALSE)
      OR _seen_7.times[_stretch] IS NOT NULL
      OR coalesce(try_subtract(unix_micros(_at), _seen_7.times[_stretch - 1].last) <= 86400000000L, FALSE)
      OR coalesce(try_subtract(_seen_7.times[_stretch + 1].first, unix_micros(_at)) <= 86400000000L, FALSE)
    ) AS _again_7
FROM (
  SELECT
    *,
    count_if(_side = 0) OVER earlier AS _before,
    max(IF(_side = -1, unix_micros(_at), NULL)) OVER earlier AS _below,
    min(IF(_side = 1, unix_micros(_at), NULL)) OVER earlier AS _above
  FROM (
    SELECT
      *,
      coalesce(try_subtract(unix_micros(_at), lag(unix_micros(_at)) OVER near) <= 86400000000L, FALSE)
      OR coalesce(try_subtract(lead(unix_micros(_at)) OVER near, unix_micros(_at)) <= 86400000000L, FALSE) AS _near
    FROM (
      SELECT
        *,
        coalesce(_key_7, CAST(kafka_offset AS STRING)) AS _apart,
        try_subtract(unix_micros(_at), pmod(unix_micros(_at), 86400000000L)) DIV 86400000000L AS _stretch
      FROM dq_keyed_taxi
    )
    WINDOW near AS (PARTITION BY _apart ORDER BY _at)
  )
  LATERAL VIEW explode(IF(_near, array(-1, 0, 1), array(0))) sides AS _side
  WINDOW earlier AS (
    PARTITION BY _apart, _stretch - _side
    ORDER BY kafka_partition, kafka_offset
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
) here
LEFT JOIN (
  SELECT
    key,
    map_from_entries(collect_list(struct(stretch, times))) AS times
  FROM (
    SELECT
      key,
      try_subtract(micros, pmod(micros, 86400000000L)) DIV 86400000000L AS stretch,
      struct(min(micros) AS first, max(micros) AS last) AS times
    FROM (
      SELECT
        key,
        unix_micros(event_time) AS micros
      FROM lake.dq.keys_taxi
      WHERE rule = 'duplicate' AND batch_time <> session.batch_time
    )
    GROUP BY key, try_subtract(micros, pmod(micros, 86400000000L)) DIV 86400000000L
  )
  GROUP BY key
) _seen_7
  ON _seen_7.key = here._apart
WHERE _side = 0;

-- The rows, each with the verdict of the rules that match it, or NULL.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_judged_taxi AS
SELECT
  *,
  rule_verdict(
    -- name, status, severity, reason, and the condition on which the rule matches
    'no_time', 'NO_TIME', 'ERROR', 'pickup or dropoff time is missing',
      tpep_pickup_datetime IS NULL OR tpep_dropoff_datetime IS NULL,
    'no_vendor', 'INVALID', 'ERROR', 'nobody says who sent the row',
      VendorID IS NULL,
    'ends_before_it_begins', 'BAD_TIMES', 'ERROR', 'the dropoff is before the pickup',
      NOT (tpep_dropoff_datetime >= tpep_pickup_datetime),
    'other_month', 'OTHER_MONTH', 'ERROR', 'the pickup is not in January 2024',
      tpep_pickup_datetime < TIMESTAMP_LTZ '2024-01-01 00:00:00Z'
      OR tpep_pickup_datetime > TIMESTAMP_LTZ '2024-01-31 23:59:59.999999Z',
    'refund', 'REFUND', 'WARN', 'the total is negative, a refund or a cancelled trip',
      total_amount < 0,
    'fare_above_total', 'BAD_AMOUNT', 'ERROR', 'the fare alone is more than the total',
      total_amount >= 0 AND fare_amount > total_amount + 0.01,
    'no_distance', 'BAD_DISTANCE', 'ERROR', 'the distance is negative, or beyond what a taxi drives',
      trip_distance < 0 OR trip_distance > 500 OR trip_distance IS NULL,
    'duplicate', 'DUPLICATE', 'WARN', 'the same trip came before',
      _again_7,
    'unknown_vendor', 'QUARANTINE', 'WARN', 'the vendor is none of those that send rows',
      VendorID NOT IN (1, 2, 6),
    'unknown_rate_code', 'QUARANTINE', 'WARN', 'the rate code is none of those in use',
      RatecodeID NOT IN (1, 2, 3, 4, 5, 6, 99),
    'unknown_payment', 'QUARANTINE', 'WARN', 'the payment type is none of those in use',
      payment_type NOT IN (0, 1, 2, 3, 4, 5, 6) OR payment_type IS NULL,
    'pickup_zone', 'QUARANTINE', 'WARN', 'the pickup is in no taxi zone',
      PULocationID < 1 OR PULocationID > 265,
    'dropoff_zone', 'QUARANTINE', 'WARN', 'the dropoff is in no taxi zone',
      DOLocationID < 1 OR DOLocationID > 265 OR DOLocationID IS NULL,
    'passengers', 'QUARANTINE', 'WARN', 'more passengers than a taxi holds',
      passenger_count < 0 OR passenger_count > 9,
    'flag', 'QUARANTINE', 'WARN', 'the store-and-forward flag is neither Y nor N',
      NOT regexp_like(store_and_fwd_flag, '^[NY]\\z'),
    'too_long', 'TOO_LONG', 'WARN', 'the trip took more than twelve hours',
      try_subtract(unix_timestamp(tpep_dropoff_datetime), unix_timestamp(tpep_pickup_datetime)) > 43200,
    'too_fast', 'TOO_FAST', 'WARN', 'faster than 100 miles an hour',
      try_subtract(unix_timestamp(tpep_dropoff_datetime), unix_timestamp(tpep_pickup_datetime)) > 0
      AND try_divide(trip_distance * 3600, try_subtract(unix_timestamp(tpep_dropoff_datetime), unix_timestamp(tpep_pickup_datetime))) > 100,
    'not_there_yet', 'FROM_THE_FUTURE', 'WARN', 'the pickup is later than the batch',
      tpep_pickup_datetime > session.batch_time,
    'nobody_in_it', 'NO_PASSENGER', 'INFO', 'the driver entered no passenger',
      passenger_count = 0,
    'tip_in_cash', 'INFO', 'INFO', 'a tip is recorded for a trip not paid by card',
      tip_amount > 0 AND payment_type <> 1,
    'zone_outside', 'INFO', 'INFO', 'the dropoff is outside the city or unknown',
      DOLocationID IN (264, 265),
    'airport_fee', 'INFO', 'INFO', 'the airport fee is none of those in force',
      Airport_fee NOT IN (0, 1.25, 1.75),
    'fields_missing', 'INFO', 'INFO', 'the message lacks a field',
      _missing IS NOT NULL
  ) AS _verdict
FROM dq_rows_taxi;

-- Row results. A row without a verdict is VALID; the others are kept as text.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_results_taxi AS
SELECT
  CAST(PULocationID AS STRING) AS pk,
  CAST(NULL AS STRING) AS action,
  coalesce(_verdict.status, 'VALID') AS dq_status,
  coalesce(_verdict.reason, 'OK') AS dq_reason,
  _verdict.severity AS dq_severity,
  _verdict.rules AS dq_rules,
  CASE
    WHEN _verdict IS NULL THEN 'clean'
    WHEN arrays_overlap(_verdict.rules, array('no_time')) THEN 'dead_letter'
    ELSE 'failed'
  END AS dq_outcome,
  CAST(NULL AS STRING) AS hash_onprem,
  CAST(NULL AS STRING) AS hash_cloud,
  _at AS event_time,
  timestamp_seconds(unix_seconds(_at) - pmod(unix_seconds(_at), 86400)) AS window_start,
  IF(
    _verdict IS NULL,
    NULL,
    to_json(
      named_struct(
        'VendorID', VendorID,
        'tpep_pickup_datetime', tpep_pickup_datetime,
        'tpep_dropoff_datetime', tpep_dropoff_datetime,
        'passenger_count', passenger_count,
        'trip_distance', trip_distance,
        'RatecodeID', RatecodeID,
        'store_and_fwd_flag', store_and_fwd_flag,
        'PULocationID', PULocationID,
        'DOLocationID', '***',
        'payment_type', payment_type,
        'fare_amount', fare_amount,
        'extra', extra,
        'mta_tax', mta_tax,
        'tip_amount', tip_amount,
        'tolls_amount', tolls_amount,
        'improvement_surcharge', improvement_surcharge,
        'total_amount', total_amount,
        'congestion_surcharge', congestion_surcharge,
        'Airport_fee', Airport_fee
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
FROM dq_judged_taxi;

-- Metrics of each window: a row counts for the rule that gave its status, once, so that clean rows
-- and metrics add up to all rows.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_metrics_taxi AS
SELECT
  window_start,
  'local' AS env,
  'local' AS dc,
  'taxi_onprem' AS table_name,
  'taxi.raw_trips' AS topic_name,
  sum(IF(metric = 'no_time', n, 0L)) AS `dq.taxi.no_time`,
  sum(IF(metric = 'no_vendor', n, 0L)) AS `dq.taxi.no_vendor`,
  sum(IF(metric = 'bad_times', n, 0L)) AS `dq.taxi.bad_times`,
  sum(IF(metric = 'other_month', n, 0L)) AS `dq.taxi.other_month`,
  sum(IF(metric = 'refund', n, 0L)) AS `dq.taxi.refund`,
  sum(IF(metric = 'bad_amount', n, 0L)) AS `dq.taxi.bad_amount`,
  sum(IF(metric = 'bad_distance', n, 0L)) AS `dq.taxi.bad_distance`,
  sum(IF(metric = 'duplicate', n, 0L)) AS `dq.taxi.duplicate`,
  sum(IF(metric = 'unknown_vendor', n, 0L)) AS `dq.taxi.unknown_vendor`,
  sum(IF(metric = 'unknown_rate_code', n, 0L)) AS `dq.taxi.unknown_rate_code`,
  sum(IF(metric = 'unknown_payment', n, 0L)) AS `dq.taxi.unknown_payment`,
  sum(IF(metric = 'pickup_zone', n, 0L)) AS `dq.taxi.pickup_zone`,
  sum(IF(metric = 'dropoff_zone', n, 0L)) AS `dq.taxi.dropoff_zone`,
  sum(IF(metric = 'passengers', n, 0L)) AS `dq.taxi.passengers`,
  sum(IF(metric = 'flag', n, 0L)) AS `dq.taxi.flag`,
  sum(IF(metric = 'too_long', n, 0L)) AS `dq.taxi.too_long`,
  sum(IF(metric = 'too_fast', n, 0L)) AS `dq.taxi.too_fast`,
  sum(IF(metric = 'from_the_future', n, 0L)) AS `dq.taxi.from_the_future`,
  sum(IF(metric = 'no_passenger', n, 0L)) AS `dq.taxi.no_passenger`,
  sum(IF(metric = 'tip_in_cash', n, 0L)) AS `dq.taxi.tip_in_cash`,
  sum(IF(metric = 'zone_outside', n, 0L)) AS `dq.taxi.zone_outside`,
  sum(IF(metric = 'airport_fee', n, 0L)) AS `dq.taxi.airport_fee`,
  sum(IF(metric = 'fields_missing', n, 0L)) AS `dq.taxi.fields_missing`,
  sum(IF(severity = 'ERROR', n, 0L)) AS dq_error_total,
  sum(IF(severity = 'WARN', n, 0L)) AS dq_warn_total,
  sum(IF(severity = 'INFO', n, 0L)) AS dq_info_total
FROM (
  SELECT
    window_start,
    get(dq_rules, 0) AS name,
    count(*) AS n
  FROM dq_results_taxi
  GROUP BY window_start, get(dq_rules, 0)
) counted
LEFT JOIN dq_rules_taxi ON dq_rules_taxi.name = counted.name
GROUP BY window_start;

-- Each window as the JSON record that goes to the topic of metrics; no column is left out.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_metrics_sink_taxi AS
SELECT to_json(struct(*)) AS value
FROM dq_metrics_taxi;

-- What these rows add to the measures of each window; one row for each measure and group.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_aggregate_partials_taxi AS
SELECT
  window_start,
  'local' AS env,
  'local' AS dc,
  'taxi_onprem' AS table_name,
  'taxi.raw_trips' AS topic_name,
  'aggregate' AS kind,
  name,
  metric,
  severity,
  grp,
  n,
  CAST(NULL AS BIGINT) AS held,
  total,
  nulls,
  sketch,
  newest,
  coalesce(timestamp_seconds(unix_seconds(window_start) + 86400) <= session.closed_before, FALSE) AS late,
  session.batch_revision AS revision,
  session.batch_range AS range,
  session.batch_time AS batch_time
FROM (
  SELECT
    window_start,
    CAST(NULL AS STRING) AS grp,
    count(*) AS n,
    max(_at) AS newest,
    array(
      named_struct(
        'name', 'trips_a_day',
        'metric', 'row_count()',
        'severity', 'WARN',
        'total', CAST(NULL AS DOUBLE),
        'nulls', CAST(NULL AS BIGINT),
        'sketch', CAST(NULL AS BINARY)
      ),
      named_struct(
        'name', 'passengers_not_entered',
        'metric', 'null_rate(passenger_count)',
        'severity', 'WARN',
        'total', CAST(NULL AS DOUBLE),
        'nulls', count_if(passenger_count IS NULL),
        'sketch', CAST(NULL AS BINARY)
      ),
      named_struct(
        'name', 'zones_seen',
        'metric', 'distinct_count(PULocationID BIGINT)',
        'severity', 'INFO',
        'total', CAST(NULL AS DOUBLE),
        'nulls', CAST(NULL AS BIGINT),
        'sketch', theta_sketch_agg(IF(PULocationID IS NULL, NULL, xxhash64(PULocationID)), 12)
      ),
      named_struct(
        'name', 'revenue',
        'metric', 'sum(total_amount)',
        'severity', 'ERROR',
        'total', sum(CAST(total_amount AS DOUBLE)),
        'nulls', CAST(NULL AS BIGINT),
        'sketch', CAST(NULL AS BINARY)
      ),
      named_struct(
        'name', 'usual_distance',
        'metric', 'quantile(trip_distance)',
        'severity', 'WARN',
        'total', CAST(NULL AS DOUBLE),
        'nulls', CAST(NULL AS BIGINT),
        'sketch', kll_sketch_agg_double(CAST(trip_distance AS DOUBLE), 800)
      ),
      named_struct(
        'name', 'newest_trip',
        'metric', 'freshness(tpep_pickup_datetime)',
        'severity', 'INFO',
        'total', CAST(max(unix_micros(tpep_pickup_datetime)) AS DOUBLE) / 1000000,
        'nulls', CAST(NULL AS BIGINT),
        'sketch', CAST(NULL AS BINARY)
      )
    ) AS _measures
  FROM (
    SELECT
      *,
      coalesce(IF(tpep_pickup_datetime BETWEEN TIMESTAMP_LTZ '0001-01-01 00:00:00Z' AND TIMESTAMP_LTZ '9999-12-31 23:59:59.999999Z',
          tpep_pickup_datetime, NULL), kafka_timestamp) AS _at,
      timestamp_seconds(unix_seconds(_at) - pmod(unix_seconds(_at), 86400)) AS window_start
    FROM taxi_trips
  )
  GROUP BY window_start
)
LATERAL VIEW inline(_measures) measure AS name, metric, severity, total, nulls, sketch
UNION ALL
SELECT
  window_start,
  'local' AS env,
  'local' AS dc,
  'taxi_onprem' AS table_name,
  'taxi.raw_trips' AS topic_name,
  'aggregate' AS kind,
  name,
  metric,
  severity,
  grp,
  n,
  CAST(NULL AS BIGINT) AS held,
  total,
  nulls,
  sketch,
  newest,
  coalesce(timestamp_seconds(unix_seconds(window_start) + 86400) <= session.closed_before, FALSE) AS late,
  session.batch_revision AS revision,
  session.batch_range AS range,
  session.batch_time AS batch_time
FROM (
  SELECT
    window_start,
    to_json(
      named_struct('VendorID', VendorID),
      map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX')
    ) AS grp,
    count(*) AS n,
    max(_at) AS newest,
    array(
      named_struct(
        'name', 'trips_of_a_vendor',
        'metric', 'row_count() by VendorID',
        'severity', 'INFO',
        'total', CAST(NULL AS DOUBLE),
        'nulls', CAST(NULL AS BIGINT),
        'sketch', CAST(NULL AS BINARY)
      )
    ) AS _measures
  FROM (
    SELECT
      *,
      coalesce(IF(tpep_pickup_datetime BETWEEN TIMESTAMP_LTZ '0001-01-01 00:00:00Z' AND TIMESTAMP_LTZ '9999-12-31 23:59:59.999999Z',
          tpep_pickup_datetime, NULL), kafka_timestamp) AS _at,
      timestamp_seconds(unix_seconds(_at) - pmod(unix_seconds(_at), 86400)) AS window_start
    FROM taxi_trips
  )
  GROUP BY window_start, VendorID
)
LATERAL VIEW inline(_measures) measure AS name, metric, severity, total, nulls, sketch;

-- The measures held against their limits, one row for each verdict.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_aggregates_taxi AS
SELECT
  window_start,
  env,
  dc,
  table_name,
  topic_name,
  name,
  measure,
  grp,
  value,
  min,
  max,
  CASE WHEN value IS NULL THEN 'UNKNOWN' WHEN failed THEN 'INVALID' ELSE 'VALID' END AS status,
  severity,
  failed,
  late
FROM (
  SELECT
    *,
    coalesce(value < min, FALSE) OR coalesce(value > max, FALSE) AS failed
  FROM (
    SELECT
      window_start,
      env,
      dc,
      table_name,
      topic_name,
      name,
      measure,
      grp,
      severity,
      min,
      max,
      CASE
        WHEN measure = 'row_count' THEN CAST(sum(n) AS DOUBLE)
        WHEN measure = 'null_rate' THEN sum(nulls) / CAST(sum(n) AS DOUBLE)
        WHEN measure = 'distinct_count'
          THEN CAST(theta_sketch_estimate(theta_union_agg(sketch, 12) FILTER (WHERE measure = 'distinct_count')) AS DOUBLE)
        WHEN measure = 'sum' THEN coalesce(sum(total), 0D)
        WHEN measure = 'freshness'
          THEN CAST(max(unix_micros(batch_time)) AS DOUBLE) / 1000000 - max(total)
        WHEN name = 'usual_distance'
          THEN IF(kll_sketch_get_n_double(kll_merge_agg_double(sketch, 800) FILTER (WHERE name = 'usual_distance')) > 0,
              kll_sketch_get_quantile_double(kll_merge_agg_double(sketch, 800) FILTER (WHERE name = 'usual_distance'), 0.95D), NULL)
      END AS value,
      bool_or(late) AS late
    FROM (
      SELECT
        window_start,
        env,
          dc,
          table_name,
          topic_name,
        limits.*,
        grp,
        n,
        total,
        nulls,
        sketch,
        late,
        batch_time
      FROM dq_aggregate_partials_taxi AS partial
      JOIN (
        SELECT *
        FROM VALUES
          ('trips_a_day', 'row_count()', 'row_count', 'WARN', 10.0D, CAST(NULL AS DOUBLE)),
          ('trips_of_a_vendor', 'row_count() by VendorID', 'row_count', 'INFO', 5.0D, CAST(NULL AS DOUBLE)),
          ('passengers_not_entered', 'null_rate(passenger_count)', 'null_rate', 'WARN', CAST(NULL AS DOUBLE), 0.1D),
          ('zones_seen', 'distinct_count(PULocationID BIGINT)', 'distinct_count', 'INFO', 5.0D, CAST(NULL AS DOUBLE)),
          ('revenue', 'sum(total_amount)', 'sum', 'ERROR', 0.0D, CAST(NULL AS DOUBLE)),
          ('usual_distance', 'quantile(trip_distance)', 'quantile', 'WARN', CAST(NULL AS DOUBLE), 30.0D),
          ('newest_trip', 'freshness(tpep_pickup_datetime)', 'freshness', 'INFO', CAST(NULL AS DOUBLE), 315360000.0D)
        AS limits (name, measured, measure, severity, min, max)
      ) limits ON limits.name = partial.name AND limits.measured = partial.metric
      WHERE kind = 'aggregate'
    )
    GROUP BY window_start, env, dc, table_name, topic_name, name, measure, grp, severity, min, max
  )
);

-- Every judged row, clean or not, is kept with its result.
-- step: accept
INSERT INTO lake.dq.results_taxi BY NAME
SELECT *
FROM dq_results_taxi;

-- The results to be counted; the engine binds this view to those that it has staged.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_committed_taxi AS
SELECT *
FROM dq_results_taxi;

-- What the results add to each window: its rows, and for each rule the rows whose status it gave
-- (n) and those on which it held (held).
-- step: partial view
CREATE OR REPLACE TEMPORARY VIEW dq_partials_taxi AS
SELECT
  window_start,
  'local' AS env,
  'local' AS dc,
  'taxi_onprem' AS table_name,
  'taxi.raw_trips' AS topic_name,
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
  coalesce(timestamp_seconds(unix_seconds(window_start) + 86400) <= session.closed_before, FALSE) AS late,
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
  FROM dq_committed_taxi
  LATERAL VIEW posexplode(concat(array(CAST(NULL AS STRING)), coalesce(dq_rules, array()))) held AS place, rule
  GROUP BY window_start, rule
)
LEFT JOIN dq_rules_taxi ON dq_rules_taxi.name = rule;

-- The sums of a window are those of its partials: nothing is read back and changed.
-- step: partials
INSERT INTO lake.dq.partials_taxi BY NAME
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
FROM dq_partials_taxi
UNION ALL
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
FROM dq_aggregate_partials_taxi;

-- Remember the keys, for the batches to come.
-- step: keys
INSERT INTO lake.dq.keys_taxi BY NAME
SELECT
  rule,
  key,
  _at AS event_time,
  kafka_partition,
  kafka_offset,
  session.batch_time AS batch_time
FROM dq_keyed_taxi
LATERAL VIEW inline(array(named_struct('rule', 'duplicate', 'key', _key_7))) keys AS rule, key
WHERE key IS NOT NULL;

-- What could not be judged, and what a rule refuses, with the original bytes.
-- step: refuse
INSERT INTO lake.headgate.dead_letters BY NAME
SELECT
  'quality-taxi' AS job,
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
FROM taxi_trips_read
WHERE _reason_code IS NOT NULL
UNION ALL
SELECT
  'quality-taxi' AS job,
  session.batch_revision AS revision,
  concat('dq_', get(dq_rules, 0)) AS reason_code,
  dq_reason AS reason,
  record.kafka_topic,
  record.kafka_partition,
  record.kafka_offset,
  record.kafka_timestamp,
  record.kafka_key,
  record.kafka_value,
  record.kafka_headers,
  session.batch_time AS refused_at
FROM taxi_trips_read AS record
JOIN (
  SELECT
    dq_rules,
    dq_reason,
    kafka_topic,
    kafka_partition,
    kafka_offset
  FROM dq_committed_taxi
  WHERE dq_outcome = 'dead_letter'
) dead
  ON record.kafka_topic = dead.kafka_topic
  AND record.kafka_partition = dead.kafka_partition
  AND record.kafka_offset = dead.kafka_offset;

-- All results there are.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_results_taxi AS
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
FROM lake.dq.results_taxi;

-- The metrics of all windows: the sums of their partials.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_metrics_taxi AS
SELECT
  window_start,
  env,
  dc,
  table_name,
  topic_name,
  sum(IF(metric = 'no_time', n, 0L)) AS `dq.taxi.no_time`,
  sum(IF(metric = 'no_vendor', n, 0L)) AS `dq.taxi.no_vendor`,
  sum(IF(metric = 'bad_times', n, 0L)) AS `dq.taxi.bad_times`,
  sum(IF(metric = 'other_month', n, 0L)) AS `dq.taxi.other_month`,
  sum(IF(metric = 'refund', n, 0L)) AS `dq.taxi.refund`,
  sum(IF(metric = 'bad_amount', n, 0L)) AS `dq.taxi.bad_amount`,
  sum(IF(metric = 'bad_distance', n, 0L)) AS `dq.taxi.bad_distance`,
  sum(IF(metric = 'duplicate', n, 0L)) AS `dq.taxi.duplicate`,
  sum(IF(metric = 'unknown_vendor', n, 0L)) AS `dq.taxi.unknown_vendor`,
  sum(IF(metric = 'unknown_rate_code', n, 0L)) AS `dq.taxi.unknown_rate_code`,
  sum(IF(metric = 'unknown_payment', n, 0L)) AS `dq.taxi.unknown_payment`,
  sum(IF(metric = 'pickup_zone', n, 0L)) AS `dq.taxi.pickup_zone`,
  sum(IF(metric = 'dropoff_zone', n, 0L)) AS `dq.taxi.dropoff_zone`,
  sum(IF(metric = 'passengers', n, 0L)) AS `dq.taxi.passengers`,
  sum(IF(metric = 'flag', n, 0L)) AS `dq.taxi.flag`,
  sum(IF(metric = 'too_long', n, 0L)) AS `dq.taxi.too_long`,
  sum(IF(metric = 'too_fast', n, 0L)) AS `dq.taxi.too_fast`,
  sum(IF(metric = 'from_the_future', n, 0L)) AS `dq.taxi.from_the_future`,
  sum(IF(metric = 'no_passenger', n, 0L)) AS `dq.taxi.no_passenger`,
  sum(IF(metric = 'tip_in_cash', n, 0L)) AS `dq.taxi.tip_in_cash`,
  sum(IF(metric = 'zone_outside', n, 0L)) AS `dq.taxi.zone_outside`,
  sum(IF(metric = 'airport_fee', n, 0L)) AS `dq.taxi.airport_fee`,
  sum(IF(metric = 'fields_missing', n, 0L)) AS `dq.taxi.fields_missing`,
  sum(IF(severity = 'ERROR', n, 0L)) AS dq_error_total,
  sum(IF(severity = 'WARN', n, 0L)) AS dq_warn_total,
  sum(IF(severity = 'INFO', n, 0L)) AS dq_info_total
FROM lake.dq.partials_taxi
WHERE kind IN ('rows', 'rule')
GROUP BY window_start, env, dc, table_name, topic_name;

-- The verdicts over all windows.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_aggregates_taxi AS
SELECT
  window_start,
  env,
  dc,
  table_name,
  topic_name,
  name,
  measure,
  grp,
  value,
  min,
  max,
  CASE WHEN value IS NULL THEN 'UNKNOWN' WHEN failed THEN 'INVALID' ELSE 'VALID' END AS status,
  severity,
  failed,
  late
FROM (
  SELECT
    *,
    coalesce(value < min, FALSE) OR coalesce(value > max, FALSE) AS failed
  FROM (
    SELECT
      window_start,
      env,
      dc,
      table_name,
      topic_name,
      name,
      measure,
      grp,
      severity,
      min,
      max,
      CASE
        WHEN measure = 'row_count' THEN CAST(sum(n) AS DOUBLE)
        WHEN measure = 'null_rate' THEN sum(nulls) / CAST(sum(n) AS DOUBLE)
        WHEN measure = 'distinct_count'
          THEN CAST(theta_sketch_estimate(theta_union_agg(sketch, 12) FILTER (WHERE measure = 'distinct_count')) AS DOUBLE)
        WHEN measure = 'sum' THEN coalesce(sum(total), 0D)
        WHEN measure = 'freshness'
          THEN CAST(max(unix_micros(batch_time)) AS DOUBLE) / 1000000 - max(total)
        WHEN name = 'usual_distance'
          THEN IF(kll_sketch_get_n_double(kll_merge_agg_double(sketch, 800) FILTER (WHERE name = 'usual_distance')) > 0,
              kll_sketch_get_quantile_double(kll_merge_agg_double(sketch, 800) FILTER (WHERE name = 'usual_distance'), 0.95D), NULL)
      END AS value,
      bool_or(late) AS late
    FROM (
      SELECT
        window_start,
        env,
          dc,
          table_name,
          topic_name,
        limits.*,
        grp,
        n,
        total,
        nulls,
        sketch,
        late,
        batch_time
      FROM lake.dq.partials_taxi AS partial
      JOIN (
        SELECT *
        FROM VALUES
          ('trips_a_day', 'row_count()', 'row_count', 'WARN', 10.0D, CAST(NULL AS DOUBLE)),
          ('trips_of_a_vendor', 'row_count() by VendorID', 'row_count', 'INFO', 5.0D, CAST(NULL AS DOUBLE)),
          ('passengers_not_entered', 'null_rate(passenger_count)', 'null_rate', 'WARN', CAST(NULL AS DOUBLE), 0.1D),
          ('zones_seen', 'distinct_count(PULocationID BIGINT)', 'distinct_count', 'INFO', 5.0D, CAST(NULL AS DOUBLE)),
          ('revenue', 'sum(total_amount)', 'sum', 'ERROR', 0.0D, CAST(NULL AS DOUBLE)),
          ('usual_distance', 'quantile(trip_distance)', 'quantile', 'WARN', CAST(NULL AS DOUBLE), 30.0D),
          ('newest_trip', 'freshness(tpep_pickup_datetime)', 'freshness', 'INFO', CAST(NULL AS DOUBLE), 315360000.0D)
        AS limits (name, measured, measure, severity, min, max)
      ) limits ON limits.name = partial.name AND limits.measured = partial.metric
      WHERE kind = 'aggregate'
    )
    GROUP BY window_start, env, dc, table_name, topic_name, name, measure, grp, severity, min, max
  )
);
