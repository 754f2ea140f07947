-- Bronze of taxi: topic taxi.raw_trips → bronze.raw_trips.
-- Compiled from datasets/taxi/dataset.yml, revision 10a6c135afe9, by Headgate 0.1.0.
-- Contract evolve: Fields that are no columns are kept in _extra; the engine makes columns of them.
-- Run alone, it reads the topic from its start to its current end, and appends.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/taxi/05_bronze_batch.sql
-- Digest b36d62f5cfae: while it fits, the manifest rules; once edited, this file is what runs.

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

-- Each record, read strictly: its fields, or the reason why it cannot be a row. A tombstone has no
-- fields: it is counted, not read.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW taxi_read AS
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
     Airport_fee DOUBLE',
    map('drift', 'keep', 'timestampNTZFormat', 'yyyy-MM-dd\'T\'HH:mm:ss')
  ) AS record
FROM taxi_source
WHERE value IS NOT NULL;

-- step: accept
INSERT INTO lake.bronze.raw_trips BY NAME
SELECT
  record.* EXCEPT (_reason_code, _reason, _drift),
  session.batch_time AS ingestion_ts,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM taxi_read
WHERE record._reason_code IS NULL;

-- Which fields of the refused records deviate from the declaration; the engine counts them.
-- step: drift
CREATE OR REPLACE TEMPORARY VIEW taxi_drift AS
SELECT explode(record._drift) AS field
FROM taxi_read;

-- step: refuse
INSERT INTO lake.headgate.dead_letters BY NAME
SELECT
  'bronze-taxi' AS job,
  session.batch_revision AS revision,
  record._reason_code AS reason_code,
  record._reason AS reason,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp,
  kafka_key,
  kafka_value,
  kafka_headers,
  session.batch_time AS refused_at
FROM taxi_read
WHERE record._reason_code IS NOT NULL;
