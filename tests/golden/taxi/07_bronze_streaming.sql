-- Bronze of taxi as a stream: topic taxi.raw_trips → bronze.raw_trips.
-- Compiled from datasets/taxi/dataset.yml, revision 10a6c135afe9, by Headgate 0.1.0.
-- Trigger: a batch every 10 seconds, from the earliest offset, until the job is stopped.
-- Contract evolve: Fields that are no columns are kept in _extra; the engine makes columns of them.
-- Run alone, it reads the topic from its start to its current end, and appends.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/taxi/07_bronze_streaming.sql
-- Digest 56bae15e2be5: while it fits, the manifest rules; once edited, this file is what runs.

-- Every "now" of this file; the engine sets it to the time of the batch.
-- step: clock
DECLARE OR REPLACE VARIABLE batch_time TIMESTAMP DEFAULT current_timestamp();

-- The revision that judges; the engine sets it to that of the batch.
-- step: revision
DECLARE OR REPLACE VARIABLE batch_revision STRING
DEFAULT '10a6c135afe9d60597b07a6d8727cc733b8bb5154229d3fc3c9cbafbdf378822';

-- The engine binds this view to the records of one batch.
-- step: source
CREATE OR REPLACE TEMPORARY VIEW taxi_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092',
  'kafka.isolation.level' 'read_committed',
  'subscribe' 'taxi.raw_trips',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest',
  'includeHeaders' 'true'
);

-- step: table
CREATE NAMESPACE IF NOT EXISTS lake.bronze;

CREATE TABLE IF NOT EXISTS lake.bronze.raw_trips (
  VendorID BIGINT COMMENT 'Provider of the record',
  tpep_pickup_datetime TIMESTAMP_NTZ COMMENT 'When the meter was engaged',
  tpep_dropoff_datetime TIMESTAMP_NTZ COMMENT 'When the meter was disengaged',
  passenger_count DOUBLE COMMENT 'As entered by the driver',
  trip_distance DOUBLE COMMENT 'Miles by the meter',
  RatecodeID DOUBLE COMMENT 'Rate code at the end of the trip',
  store_and_fwd_flag STRING COMMENT 'Y when the record waited in the vehicle',
  PULocationID BIGINT COMMENT 'Taxi zone of the pickup',
  DOLocationID BIGINT COMMENT 'Taxi zone of the dropoff',
  payment_type BIGINT COMMENT 'How the passenger paid',
  fare_amount DOUBLE COMMENT 'Time-and-distance fare in USD',
  extra DOUBLE COMMENT 'Rush-hour and overnight charges',
  mta_tax DOUBLE COMMENT 'MTA tax',
  tip_amount DOUBLE COMMENT 'Tips by card; cash tips are not recorded',
  tolls_amount DOUBLE COMMENT 'Tolls paid during the trip',
  improvement_surcharge DOUBLE COMMENT 'Improvement surcharge',
  total_amount DOUBLE COMMENT 'Total charged, without cash tips',
  congestion_surcharge DOUBLE COMMENT 'New York State congestion surcharge',
  Airport_fee DOUBLE COMMENT 'Pickup at LaGuardia or JFK',
  _extra STRING COMMENT 'Fields that are no columns, as a JSON object',
  _missing STRING COMMENT 'Declared fields that the record lacks, as a JSON list',
  ingestion_ts TIMESTAMP COMMENT 'Time of the batch that wrote the row',
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
  'write.metadata.previous-versions-max' = '50',
  'write.metadata.metrics.column._extra' = 'counts',
  'write.metadata.metrics.column._missing' = 'counts'
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

-- Each record with its fields, parsed once. A tombstone has no fields: it is counted, not parsed.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW taxi_parsed AS
SELECT *
FROM (
  SELECT
    topic AS kafka_topic,
    partition AS kafka_partition,
    offset AS kafka_offset,
    timestamp AS kafka_timestamp,
    key AS kafka_key,
    value AS kafka_value,
    headers AS kafka_headers,
    CAST(value AS STRING) AS kafka_text
  FROM taxi_source
  WHERE value IS NOT NULL
)
LATERAL VIEW OUTER inline(array(from_json(
  kafka_text,
  'VendorID BIGINT,
   tpep_pickup_datetime TIMESTAMP_NTZ,
   tpep_dropoff_datetime TIMESTAMP_NTZ,
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
   Airport_fee DOUBLE,
   _unparsed STRING',
  map(
    'mode', 'PERMISSIVE',
    'columnNameOfCorruptRecord', '_unparsed',
    'allowNonNumericNumbers', 'false',
    'allowSingleQuotes', 'false',
    'timestampNTZFormat', 'yyyy-MM-dd\'T\'HH:mm:ss'
  )
))) fields
-- The usual shape: the fields in their order and nothing else, whole or with some of them missing.
LATERAL VIEW inline(array(named_struct(
  '_shape',
  CASE
    WHEN _unparsed IS NOT NULL
      OR NOT is_valid_utf8(kafka_text)
      THEN NULL
    WHEN kafka_text RLIKE
        r'\A\{'
        r'(?:"VendorID":[-0-9nul ]{1,24}+[, ]{0,2}+)'
        r'(?:"tpep_pickup_datetime": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)'
        r'(?:"tpep_dropoff_datetime": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)'
        r'(?:"passenger_count":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"trip_distance":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"RatecodeID":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"store_and_fwd_flag": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)'
        r'(?:"PULocationID":[-0-9nul ]{1,24}+[, ]{0,2}+)'
        r'(?:"DOLocationID":[-0-9nul ]{1,24}+[, ]{0,2}+)'
        r'(?:"payment_type":[-0-9nul ]{1,24}+[, ]{0,2}+)'
        r'(?:"fare_amount":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"extra":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"mta_tax":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"tip_amount":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"tolls_amount":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"improvement_surcharge":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"total_amount":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"congestion_surcharge":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'(?:"Airport_fee":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'\}\z'
      THEN 'whole'
    WHEN kafka_text RLIKE
        r'\A\{'
        r'(?:"VendorID":[-0-9nul ]{1,24}+[, ]{0,2}+)?+'
        r'(?:"tpep_pickup_datetime": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)?+'
        r'(?:"tpep_dropoff_datetime": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)?+'
        r'(?:"passenger_count":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"trip_distance":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"RatecodeID":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"store_and_fwd_flag": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)?+'
        r'(?:"PULocationID":[-0-9nul ]{1,24}+[, ]{0,2}+)?+'
        r'(?:"DOLocationID":[-0-9nul ]{1,24}+[, ]{0,2}+)?+'
        r'(?:"payment_type":[-0-9nul ]{1,24}+[, ]{0,2}+)?+'
        r'(?:"fare_amount":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"extra":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"mta_tax":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"tip_amount":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"tolls_amount":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"improvement_surcharge":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"total_amount":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"congestion_surcharge":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'(?:"Airport_fee":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'\}\z'
      THEN 'partial'
  END
))) shape;

-- Why a record cannot be a row; NULL when it can. Of one that has the usual shape nothing further
-- is asked.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW taxi_judged AS
SELECT
  *,
  CASE
    WHEN _shape IS NOT NULL THEN NULL
    WHEN NOT is_valid_utf8(kafka_text) THEN 'not_utf8'
    WHEN trim(BOTH ' \t\r\n' FROM kafka_text) = '' THEN 'empty'
    WHEN size(json_object_keys(kafka_text)) > size(array_distinct(json_object_keys(kafka_text)))
      THEN 'duplicate_key'
    WHEN try_parse_json(kafka_text) IS NULL THEN 'not_json'
    WHEN json_object_keys(kafka_text) IS NULL THEN 'not_an_object'
    WHEN coalesce(json_array_length(concat('[', kafka_text, ']')), 0) <> 1
      OR coalesce(size(json_object_keys(concat('{"v":', kafka_text, '}'))), 0) <> 1
      THEN 'trailing_text'
    WHEN kafka_text RLIKE
      r'(?i)(?<!\\)(?:\\\\)*(?:\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2})'
      r'|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2})'
      THEN 'half_surrogate'
    WHEN _unparsed IS NOT NULL THEN 'wrong_type'
    WHEN exists(
      array(
        from_json(
          kafka_text,
          'tpep_pickup_datetime VARIANT,
           tpep_dropoff_datetime VARIANT,
           store_and_fwd_flag VARIANT'
        )
      ),
      _typed ->
        left(to_json(_typed.tpep_pickup_datetime), 1) NOT IN ('"', 'n')
        OR left(to_json(_typed.tpep_dropoff_datetime), 1) NOT IN ('"', 'n')
        OR left(to_json(_typed.store_and_fwd_flag), 1) NOT IN ('"', 'n')
    ) THEN 'wrong_type'
    WHEN exists(
      array(
        passenger_count,
        trip_distance,
        RatecodeID,
        fare_amount,
        extra,
        mta_tax,
        tip_amount,
        tolls_amount,
        improvement_surcharge,
        total_amount,
        congestion_surcharge,
        Airport_fee
      ),
      number -> abs(number) = DOUBLE('Infinity')
    ) THEN 'out_of_range'
    WHEN kafka_text RLIKE r'[0-9][eE]\+?[0-9]{3}|[0-9]{309}'
      AND to_json(try_parse_json(kafka_text)) RLIKE '\"-?Infinity\"'
      THEN 'out_of_range'
  END AS _reason_code
FROM taxi_parsed;

-- step: accept
INSERT INTO lake.bronze.raw_trips BY NAME
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
  nullif(
    to_json(
      map_filter(
        from_json(if(_shape IS NULL, kafka_text, NULL), 'MAP<STRING, VARIANT>'),
        (field, value) -> field NOT IN (
          'VendorID',
          'tpep_pickup_datetime',
          'tpep_dropoff_datetime',
          'passenger_count',
          'trip_distance',
          'RatecodeID',
          'store_and_fwd_flag',
          'PULocationID',
          'DOLocationID',
          'payment_type',
          'fare_amount',
          'extra',
          'mta_tax',
          'tip_amount',
          'tolls_amount',
          'improvement_surcharge',
          'total_amount',
          'congestion_surcharge',
          'Airport_fee'
        )
      )
    ),
    '{}'
  ) AS _extra,
  nullif(
    to_json(
      array_except(
        array(
          'VendorID',
          'tpep_pickup_datetime',
          'tpep_dropoff_datetime',
          'passenger_count',
          'trip_distance',
          'RatecodeID',
          'store_and_fwd_flag',
          'PULocationID',
          'DOLocationID',
          'payment_type',
          'fare_amount',
          'extra',
          'mta_tax',
          'tip_amount',
          'tolls_amount',
          'improvement_surcharge',
          'total_amount',
          'congestion_surcharge',
          'Airport_fee'
        ),
        json_object_keys(if(_shape = 'whole', NULL, kafka_text))
      )
    ),
    '[]'
  ) AS _missing,
  session.batch_time AS ingestion_ts,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM taxi_judged
WHERE _reason_code IS NULL;

-- The refused records, each with the text of those fields that could not be read.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW taxi_refused AS
SELECT
  *,
  CASE
    WHEN _reason_code = 'wrong_type' THEN transform(map_keys(_unread), field -> concat('~', field))
  END AS _drift
FROM (
  SELECT
    *,
    map_filter(
      map(
        'VendorID', if(VendorID IS NULL, _raw['VendorID'], NULL),
        'tpep_pickup_datetime', if(
          tpep_pickup_datetime IS NULL
            OR left(to_json(_typed.tpep_pickup_datetime), 1) NOT IN ('"', 'n'),
          _raw['tpep_pickup_datetime'],
          NULL
        ),
        'tpep_dropoff_datetime', if(
          tpep_dropoff_datetime IS NULL
            OR left(to_json(_typed.tpep_dropoff_datetime), 1) NOT IN ('"', 'n'),
          _raw['tpep_dropoff_datetime'],
          NULL
        ),
        'passenger_count', if(passenger_count IS NULL, _raw['passenger_count'], NULL),
        'trip_distance', if(trip_distance IS NULL, _raw['trip_distance'], NULL),
        'RatecodeID', if(RatecodeID IS NULL, _raw['RatecodeID'], NULL),
        'store_and_fwd_flag', if(
          store_and_fwd_flag IS NULL
            OR left(to_json(_typed.store_and_fwd_flag), 1) NOT IN ('"', 'n'),
          _raw['store_and_fwd_flag'],
          NULL
        ),
        'PULocationID', if(PULocationID IS NULL, _raw['PULocationID'], NULL),
        'DOLocationID', if(DOLocationID IS NULL, _raw['DOLocationID'], NULL),
        'payment_type', if(payment_type IS NULL, _raw['payment_type'], NULL),
        'fare_amount', if(fare_amount IS NULL, _raw['fare_amount'], NULL),
        'extra', if(extra IS NULL, _raw['extra'], NULL),
        'mta_tax', if(mta_tax IS NULL, _raw['mta_tax'], NULL),
        'tip_amount', if(tip_amount IS NULL, _raw['tip_amount'], NULL),
        'tolls_amount', if(tolls_amount IS NULL, _raw['tolls_amount'], NULL),
        'improvement_surcharge', if(improvement_surcharge IS NULL, _raw['improvement_surcharge'], NULL),
        'total_amount', if(total_amount IS NULL, _raw['total_amount'], NULL),
        'congestion_surcharge', if(congestion_surcharge IS NULL, _raw['congestion_surcharge'], NULL),
        'Airport_fee', if(Airport_fee IS NULL, _raw['Airport_fee'], NULL)
      ),
      (name, text) -> text IS NOT NULL
    ) AS _unread
  FROM (
    SELECT
      *,
      from_json(kafka_text, 'MAP<STRING, STRING>') AS _raw,
      from_json(
        kafka_text,
        'tpep_pickup_datetime VARIANT,
         tpep_dropoff_datetime VARIANT,
         store_and_fwd_flag VARIANT'
      ) AS _typed
    FROM taxi_judged
    WHERE _reason_code IS NOT NULL
  )
);

-- Which fields of the refused records deviate from the declaration; the engine counts them.
-- step: drift
CREATE OR REPLACE TEMPORARY VIEW taxi_drift AS
SELECT field
FROM taxi_refused
LATERAL VIEW explode(_drift) fields AS field;

-- step: refuse
INSERT INTO lake.headgate.dead_letters BY NAME
SELECT
  'bronze-taxi' AS job,
  session.batch_revision AS revision,
  _reason_code AS reason_code,
  CASE _reason_code
    WHEN 'not_utf8' THEN 'the value is not UTF-8 text'
    WHEN 'empty' THEN 'the value is empty'
    WHEN 'duplicate_key' THEN 'a field stands twice in the record'
    WHEN 'not_json' THEN 'the value is not JSON'
    WHEN 'not_an_object' THEN 'the value is JSON but not an object'
    WHEN 'trailing_text' THEN 'something follows the JSON object'
    WHEN 'half_surrogate' THEN 'an escape is half of a surrogate pair'
    WHEN 'wrong_type' THEN concat_ws(
      '; ',
      'a field does not have its declared type',
      transform(
        map_entries(_unread),
        field -> concat(field.key, ' = ', left(field.value, 40))
      )
    )
    WHEN 'out_of_range' THEN 'a number is too large for its type'
  END AS reason,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp,
  kafka_key,
  kafka_value,
  kafka_headers,
  session.batch_time AS refused_at
FROM taxi_refused;
