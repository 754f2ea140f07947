-- Data quality of taxi: topic taxi.raw_trips, judged by 23 rules.
-- Compiled from rules/taxi.yml, revision 00db54ec1a91, by Headgate 0.1.0.
--
--   line  23  the rows of topic taxi.raw_trips
--   line  83  the rules (23)
--   line 225  dq_results_taxi: every row with its result
--   line 259  how many rows each rule decided
--   line 269  dq_metrics_taxi: metrics of each window
--
-- Creates temporary views only, however often it is run. A job replaces the view of each topic or table
-- with the records of its batch. To change a rule, edit rules/taxi.yml and compile it again.
-- strict_json gives the declared fields of a record, other fields in _extra and the names of absent ones in
-- _missing, or a _reason_code where it has no row to give; 'drift' says what records with other fields
-- become. rule_verdict gives the first entry whose condition is true, with the names of all such entries
-- in `rules`, or NULL if there is none; a condition that is NULL does not match. Both are Spark functions
-- of Headgate, which the properties file brings along.
--   spark-sql --properties-file build/conf/spark-defaults.conf -i build/sql/rules/taxi/dq_generated.sql
-- opens a prompt for: SELECT * FROM dq_results_taxi; SELECT * FROM dq_metrics_taxi;

-- Every "now" of this file; a job sets it to the time of its batch.
DECLARE OR REPLACE VARIABLE batch_time TIMESTAMP DEFAULT current_timestamp();

-- All records of the topic.
CREATE OR REPLACE TEMPORARY VIEW taxi_trips_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092', 'subscribe' 'taxi.raw_trips', 'includeHeaders' 'true',
  'startingOffsets' 'earliest', 'endingOffsets' 'latest', 'kafka.isolation.level' 'read_committed'
);

-- Each record, read strictly: its fields, or the reason why it cannot be a row; a job writes those
-- with a _reason_code to the dead letters. A tombstone has no fields: it is counted, not judged.
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
    topic AS kafka_topic, partition AS kafka_partition, offset AS kafka_offset,
    timestamp AS kafka_timestamp, key AS kafka_key, value AS kafka_value, headers AS kafka_headers,
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
CREATE OR REPLACE TEMPORARY VIEW taxi_trips AS
SELECT
  * EXCEPT (_reason_code, _reason, _drift, kafka_key, kafka_value, kafka_headers)
FROM taxi_trips_read
WHERE _reason_code IS NULL;

-- Keys of earlier batches: none here. A job binds this view to its table of keys.
CREATE OR REPLACE TEMPORARY VIEW dq_known_keys_taxi AS
SELECT CAST(NULL AS STRING) AS rule, CAST(NULL AS STRING) AS key, CAST(NULL AS TIMESTAMP) AS event_time
WHERE FALSE;

-- The keys that must not come twice, exactly as their values are; with a NULL there is no key.
CREATE OR REPLACE TEMPORARY VIEW dq_keyed_taxi AS
SELECT
  *,
  IF(year(tpep_pickup_datetime) BETWEEN 1 AND 9999, tpep_pickup_datetime, kafka_timestamp) AS _at,
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
      FROM dq_known_keys_taxi
      WHERE rule = 'duplicate'
    )
    GROUP BY key, try_subtract(micros, pmod(micros, 86400000000L)) DIV 86400000000L
  )
  GROUP BY key
) _seen_7
  ON _seen_7.key = here._apart
WHERE _side = 0;

-- The rules, in the order that decides: the first that matches gives the row its status, and all
-- that match are listed. Where none matches, _verdict is NULL.
CREATE OR REPLACE TEMPORARY VIEW dq_judged_taxi AS
SELECT
  *,
  rule_verdict(
    -- name, status, severity, reason, and the condition on which the rule matches
    'no_time', 'NO_TIME', 'ERROR', 'pickup or dropoff time is missing',
      tpep_pickup_datetime IS NULL OR tpep_dropoff_datetime IS NULL,
    'no_vendor', 'INVALID', 'ERROR', 'nobody says who sent the row', VendorID IS NULL,
    'ends_before_it_begins', 'BAD_TIMES', 'ERROR', 'the dropoff is before the pickup',
      NOT (tpep_dropoff_datetime >= tpep_pickup_datetime),
    'other_month', 'OTHER_MONTH', 'ERROR', 'the pickup is not in January 2024',
      tpep_pickup_datetime < TIMESTAMP_LTZ '2024-01-01 00:00:00Z'
      OR tpep_pickup_datetime > TIMESTAMP_LTZ '2024-01-31 23:59:59.999999Z',
    'refund', 'REFUND', 'WARN', 'the total is negative, a refund or a cancelled trip', total_amount < 0,
    'fare_above_total', 'BAD_AMOUNT', 'ERROR', 'the fare alone is more than the total',
      total_amount >= 0 AND fare_amount > total_amount + 0.01,
    'no_distance', 'BAD_DISTANCE', 'ERROR', 'the distance is negative, or beyond what a taxi drives',
      trip_distance < 0 OR trip_distance > 500 OR trip_distance IS NULL,
    'duplicate', 'DUPLICATE', 'WARN', 'the same trip came before', _again_7,
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
    'nobody_in_it', 'NO_PASSENGER', 'INFO', 'the driver entered no passenger', passenger_count = 0,
    'tip_in_cash', 'INFO', 'INFO', 'a tip is recorded for a trip not paid by card',
      tip_amount > 0 AND payment_type <> 1,
    'zone_outside', 'INFO', 'INFO', 'the dropoff is outside the city or unknown',
      DOLocationID IN (264, 265),
    'airport_fee', 'INFO', 'INFO', 'the airport fee is none of those in force',
      Airport_fee NOT IN (0, 1.25, 1.75),
    'fields_missing', 'INFO', 'INFO', 'the message lacks a field', _missing IS NOT NULL
  ) AS _verdict
FROM dq_rows_taxi;

-- Every row with its result: VALID where no rule matches; the others are kept as JSON.
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
    to_json(struct(
      VendorID, tpep_pickup_datetime, tpep_dropoff_datetime, passenger_count, trip_distance, RatecodeID, store_and_fwd_flag,
      PULocationID, '***' AS DOLocationID, payment_type, fare_amount, extra, mta_tax, tip_amount, tolls_amount, improvement_surcharge,
      total_amount, congestion_surcharge, Airport_fee
    ), map('timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX'))
  ) AS row,
  session.batch_time AS processing_time,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM dq_judged_taxi;

-- Each row counts once, under the first rule that matches it; a clean row has no name.
CREATE OR REPLACE TEMPORARY VIEW dq_counts_taxi AS
SELECT
  window_start,
  get(dq_rules, 0) AS name,
  dq_severity AS severity,
  count(*) AS n
FROM dq_results_taxi
GROUP BY ALL;

-- The metrics of each window.
CREATE OR REPLACE TEMPORARY VIEW dq_metrics_taxi AS
SELECT
  window_start,
  'local' AS env,
  'local' AS dc,
  'taxi_onprem' AS table_name,
  'taxi.raw_trips' AS topic_name,
  sum(IF(name = 'no_time', n, 0L)) AS `dq.taxi.no_time`,
  sum(IF(name = 'no_vendor', n, 0L)) AS `dq.taxi.no_vendor`,
  sum(IF(name = 'ends_before_it_begins', n, 0L)) AS `dq.taxi.bad_times`,
  sum(IF(name = 'other_month', n, 0L)) AS `dq.taxi.other_month`,
  sum(IF(name = 'refund', n, 0L)) AS `dq.taxi.refund`,
  sum(IF(name = 'fare_above_total', n, 0L)) AS `dq.taxi.bad_amount`,
  sum(IF(name = 'no_distance', n, 0L)) AS `dq.taxi.bad_distance`,
  sum(IF(name = 'duplicate', n, 0L)) AS `dq.taxi.duplicate`,
  sum(IF(name = 'unknown_vendor', n, 0L)) AS `dq.taxi.unknown_vendor`,
  sum(IF(name = 'unknown_rate_code', n, 0L)) AS `dq.taxi.unknown_rate_code`,
  sum(IF(name = 'unknown_payment', n, 0L)) AS `dq.taxi.unknown_payment`,
  sum(IF(name = 'pickup_zone', n, 0L)) AS `dq.taxi.pickup_zone`,
  sum(IF(name = 'dropoff_zone', n, 0L)) AS `dq.taxi.dropoff_zone`,
  sum(IF(name = 'passengers', n, 0L)) AS `dq.taxi.passengers`,
  sum(IF(name = 'flag', n, 0L)) AS `dq.taxi.flag`,
  sum(IF(name = 'too_long', n, 0L)) AS `dq.taxi.too_long`,
  sum(IF(name = 'too_fast', n, 0L)) AS `dq.taxi.too_fast`,
  sum(IF(name = 'not_there_yet', n, 0L)) AS `dq.taxi.from_the_future`,
  sum(IF(name = 'nobody_in_it', n, 0L)) AS `dq.taxi.no_passenger`,
  sum(IF(name = 'tip_in_cash', n, 0L)) AS `dq.taxi.tip_in_cash`,
  sum(IF(name = 'zone_outside', n, 0L)) AS `dq.taxi.zone_outside`,
  sum(IF(name = 'airport_fee', n, 0L)) AS `dq.taxi.airport_fee`,
  sum(IF(name = 'fields_missing', n, 0L)) AS `dq.taxi.fields_missing`,
  sum(IF(severity = 'ERROR', n, 0L)) AS dq_error_total,
  sum(IF(severity = 'WARN', n, 0L)) AS dq_warn_total,
  sum(IF(severity = 'INFO', n, 0L)) AS dq_info_total
FROM dq_counts_taxi
GROUP BY window_start;
