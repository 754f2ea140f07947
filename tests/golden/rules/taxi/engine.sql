-- What the job of taxi does with the views of dq_generated.sql; it makes the tables itself.
-- Compiled from rules/taxi.yml, revision 00db54ec1a91, by Headgate 0.1.0.

-- Of the batch: the revision that judges it, its offsets as JSON, and up to when windows are closed.
-- step: clock
DECLARE OR REPLACE VARIABLE batch_revision STRING;
DECLARE OR REPLACE VARIABLE batch_range STRING;
DECLARE OR REPLACE VARIABLE closed_before TIMESTAMP;

-- The keys of earlier batches.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_known_keys_taxi AS
SELECT rule, key, event_time FROM lake.dq.keys_taxi WHERE batch_time <> session.batch_time;

-- The keys of this batch, for those to come.
-- step: keys
INSERT INTO lake.dq.keys_taxi BY NAME
SELECT rule, key, _at AS event_time, kafka_partition, kafka_offset, session.batch_time AS batch_time
FROM dq_keyed_taxi
LATERAL VIEW inline(array(named_struct('rule', 'duplicate', 'key', _key_7))) keys AS rule, key
WHERE key IS NOT NULL;

-- Every row, clean or not, is kept with its result.
-- step: accept
INSERT INTO lake.dq.results_taxi BY NAME
SELECT *, session.batch_revision AS revision FROM dq_results_taxi;

-- The results to be counted; the job replaces this view with those that it has staged.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_committed_taxi AS
SELECT * FROM dq_results_taxi;

-- What these rows add to the measures of each window: a row for each measure and group.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_aggregate_partials_taxi AS
WITH measured AS (
  SELECT
    timestamp_seconds(unix_seconds(_at) - pmod(unix_seconds(_at), 86400)) AS window_start,
    count(*) AS n, max(_at) AS newest,
    string(NULL) AS grp,
    array(
      struct('trips_a_day', 'row_count()', 'WARN', double(NULL), bigint(NULL), binary(NULL)),
      struct('passengers_not_entered', 'null_rate(passenger_count)', 'WARN', double(NULL), count_if(passenger_count IS NULL), binary(NULL)),
      struct('zones_seen', 'distinct_count(PULocationID BIGINT)', 'INFO',
        double(NULL), bigint(NULL), theta_sketch_agg(IF(PULocationID IS NULL, NULL, xxhash64(PULocationID)), 12)),
      struct('revenue', 'sum(total_amount)', 'ERROR', sum(double(total_amount)), bigint(NULL), binary(NULL)),
      struct('usual_distance', 'quantile(trip_distance)', 'WARN',
        double(NULL), bigint(NULL), kll_sketch_agg_double(double(trip_distance), 800)),
      struct('newest_trip', 'freshness(tpep_pickup_datetime)', 'INFO',
        double(max(unix_micros(tpep_pickup_datetime))) / 1000000, bigint(NULL), binary(NULL))
    ) AS measures
  FROM (SELECT *, IF(year(tpep_pickup_datetime) BETWEEN 1 AND 9999, tpep_pickup_datetime, kafka_timestamp) AS _at FROM taxi_trips)
  GROUP BY 1
  UNION ALL
  SELECT
    timestamp_seconds(unix_seconds(_at) - pmod(unix_seconds(_at), 86400)) AS window_start,
    count(*) AS n, max(_at) AS newest,
    to_json(struct(VendorID), map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX')) AS grp,
    array(struct('trips_of_a_vendor', 'row_count() by VendorID', 'INFO', double(NULL), bigint(NULL), binary(NULL))) AS measures
  FROM (SELECT *, IF(year(tpep_pickup_datetime) BETWEEN 1 AND 9999, tpep_pickup_datetime, kafka_timestamp) AS _at FROM taxi_trips)
  GROUP BY 1, VendorID
)
SELECT window_start, 'aggregate' AS kind, name, metric, severity, grp, n, bigint(NULL) AS matched, total, nulls, sketch, newest
FROM measured LATERAL VIEW inline(measures) measure AS name, metric, severity, total, nulls, sketch;

-- The measures of all windows and groups against their limits.
-- step: reading
CREATE OR REPLACE VIEW spark_catalog.default.dq_aggregates_taxi AS
SELECT
  window_start, env, dc, table_name, topic_name, name, measure, grp, value, min, max,
  CASE WHEN value IS NULL THEN 'UNKNOWN' WHEN failed THEN 'INVALID' ELSE 'VALID' END AS status, severity, failed, late
FROM (SELECT *, coalesce(value < min, FALSE) OR coalesce(value > max, FALSE) AS failed FROM (
  SELECT
    window_start, env, dc, table_name, topic_name, limits.name, measure, grp, limits.severity, min, max, bool_or(late) AS late,
    double(CASE
      WHEN measure = 'row_count' THEN sum(n)
      WHEN measure = 'null_rate' THEN sum(nulls) / double(sum(n))
      WHEN measure = 'distinct_count' THEN theta_sketch_estimate(theta_union_agg(sketch, 12) FILTER (WHERE measure = 'distinct_count'))
      WHEN measure = 'sum' THEN coalesce(sum(total), 0D)
      WHEN measure = 'freshness' THEN double(max(unix_micros(batch_time))) / 1000000 - max(total)
      WHEN limits.name = 'usual_distance' THEN IF(
        kll_sketch_get_n_double(kll_merge_agg_double(sketch, 800) FILTER (WHERE limits.name = 'usual_distance')) > 0,
        kll_sketch_get_quantile_double(kll_merge_agg_double(sketch, 800) FILTER (WHERE limits.name = 'usual_distance'), 0.95D), NULL)
    END) AS value
  FROM lake.dq.partials_taxi AS partial
  JOIN VALUES
    ('trips_a_day', 'row_count()', 'row_count', 'WARN', 10.0D, double(NULL)),
    ('trips_of_a_vendor', 'row_count() by VendorID', 'row_count', 'INFO', 5.0D, double(NULL)),
    ('passengers_not_entered', 'null_rate(passenger_count)', 'null_rate', 'WARN', double(NULL), 0.1D),
    ('zones_seen', 'distinct_count(PULocationID BIGINT)', 'distinct_count', 'INFO', 5.0D, double(NULL)),
    ('revenue', 'sum(total_amount)', 'sum', 'ERROR', 0.0D, double(NULL)),
    ('usual_distance', 'quantile(trip_distance)', 'quantile', 'WARN', double(NULL), 30.0D),
    ('newest_trip', 'freshness(tpep_pickup_datetime)', 'freshness', 'INFO', double(NULL), 315360000.0D)
  AS limits (name, measured, measure, severity, min, max) ON limits.name = partial.name AND limits.measured = partial.metric
  WHERE kind = 'aggregate'
  GROUP BY window_start, env, dc, table_name, topic_name, limits.name, measure, grp, limits.severity, min, max
));

-- What the committed results add to each window: its rows, and for each rule the rows whose status
-- it gave (n) and those that it matched (matched).
-- step: partial view
CREATE OR REPLACE TEMPORARY VIEW dq_partials_taxi AS
SELECT
  window_start, IF(rule IS NULL, 'rows', 'rule') AS kind, coalesce(rule, 'rows') AS name, metric, severity,
  string(NULL) AS grp, n, matched, double(NULL) AS total, bigint(NULL) AS nulls, binary(NULL) AS sketch, newest
FROM (
  SELECT window_start, rule, count_if(place <= 1) AS n, count(*) AS matched, max(event_time) AS newest
  FROM dq_committed_taxi
  LATERAL VIEW posexplode(concat(array(string(NULL)), coalesce(dq_rules, array()))) found AS place, rule
  GROUP BY window_start, rule
) counted
LEFT JOIN VALUES
  ('no_time', 'no_time', 'ERROR'), ('no_vendor', 'no_vendor', 'ERROR'), ('ends_before_it_begins', 'bad_times', 'ERROR'),
  ('other_month', 'other_month', 'ERROR'), ('refund', 'refund', 'WARN'), ('fare_above_total', 'bad_amount', 'ERROR'),
  ('no_distance', 'bad_distance', 'ERROR'), ('duplicate', 'duplicate', 'WARN'), ('unknown_vendor', 'unknown_vendor', 'WARN'),
  ('unknown_rate_code', 'unknown_rate_code', 'WARN'), ('unknown_payment', 'unknown_payment', 'WARN'),
  ('pickup_zone', 'pickup_zone', 'WARN'), ('dropoff_zone', 'dropoff_zone', 'WARN'), ('passengers', 'passengers', 'WARN'),
  ('flag', 'flag', 'WARN'), ('too_long', 'too_long', 'WARN'), ('too_fast', 'too_fast', 'WARN'),
  ('not_there_yet', 'from_the_future', 'WARN'), ('nobody_in_it', 'no_passenger', 'INFO'), ('tip_in_cash', 'tip_in_cash', 'INFO'),
  ('zone_outside', 'zone_outside', 'INFO'), ('airport_fee', 'airport_fee', 'INFO'), ('fields_missing', 'fields_missing', 'INFO')
AS known (name, metric, severity) ON known.name = rule;

-- The sums of a window are those of its partials.
-- step: partials
INSERT INTO lake.dq.partials_taxi BY NAME
SELECT
  *, 'local' AS env, 'local' AS dc, 'taxi_onprem' AS table_name, 'taxi.raw_trips' AS topic_name,
  coalesce(timestamp_seconds(unix_seconds(window_start) + 86400) <= session.closed_before, FALSE) AS late,
  session.batch_revision AS revision, session.batch_range AS range, session.batch_time AS batch_time
FROM (SELECT * FROM dq_partials_taxi UNION ALL SELECT * FROM dq_aggregate_partials_taxi);

-- What could not be read, or a rule refuses: the original bytes, and why.
-- step: refuse
INSERT INTO lake.headgate.dead_letters BY NAME
SELECT
  'quality-taxi' AS job, session.batch_revision AS revision, _reason_code AS reason_code,
  decode(_reason_code, 'dq_missing_pk', 'the record has no key', _reason) AS reason, kafka_topic, kafka_partition, kafka_offset,
  kafka_timestamp, kafka_key, kafka_value, kafka_headers, session.batch_time AS refused_at
FROM taxi_trips_read
WHERE _reason_code IS NOT NULL
UNION ALL
SELECT
  'quality-taxi' AS job, session.batch_revision AS revision, concat('dq_', get(dq_rules, 0)) AS reason_code, dq_reason AS reason,
  kafka_topic, kafka_partition, kafka_offset, record.kafka_timestamp, kafka_key, kafka_value, kafka_headers,
  session.batch_time AS refused_at
FROM taxi_trips_read AS record
JOIN dq_committed_taxi USING (kafka_topic, kafka_partition, kafka_offset)
WHERE dq_outcome = 'dead_letter';
