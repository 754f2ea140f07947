-- Bronze of orders as a stream: topic orders.raw_orders → bronze.raw_orders.
-- Compiled from datasets/orders/dataset.yml, revision 6d01d821fcf5, by Headgate 0.1.0.
-- Trigger: a batch every 10 seconds, from the earliest offset, until the job is stopped.
-- Contract evolve: Fields that are no columns are kept in _extra; the engine makes columns of them.
-- Run alone, it reads the topic from its start to its current end, and appends.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/orders/07_bronze_streaming.sql
-- Digest 13d44b9e80b4: while it fits, the manifest rules; once edited, this file is what runs.

-- Every "now" of this file; the engine sets it to the time of the batch.
-- step: clock
DECLARE OR REPLACE VARIABLE batch_time TIMESTAMP DEFAULT current_timestamp();

-- The revision that judges; the engine sets it to that of the batch.
-- step: revision
DECLARE OR REPLACE VARIABLE batch_revision STRING
DEFAULT '6d01d821fcf5cd81dc51d8d3a91395b5f0a88d25f25eca25e984fc348b44a5b2';

-- The engine binds this view to the records of one batch.
-- step: source
CREATE OR REPLACE TEMPORARY VIEW orders_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092',
  'kafka.isolation.level' 'read_committed',
  'subscribe' 'orders.raw_orders',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest',
  'includeHeaders' 'true'
);

-- step: table
CREATE NAMESPACE IF NOT EXISTS lake.bronze;

CREATE TABLE IF NOT EXISTS lake.bronze.raw_orders (
  order_id STRING COMMENT 'The shop\'s number of the order',
  customer_id BIGINT COMMENT 'Who ordered',
  created_at TIMESTAMP_NTZ COMMENT 'When the order was placed',
  status STRING COMMENT 'How far the order is',
  total_amount DOUBLE COMMENT 'What the customer pays, in USD',
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
CREATE OR REPLACE TEMPORARY VIEW orders_read AS
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
     customer_id BIGINT,
     created_at TIMESTAMP_NTZ,
     status STRING,
     total_amount DOUBLE',
    map('drift', 'keep', 'timestampNTZFormat', 'yyyy-MM-dd\'T\'HH:mm:ss')
  ) AS record
FROM orders_source
WHERE value IS NOT NULL;

-- step: accept
INSERT INTO lake.bronze.raw_orders BY NAME
SELECT
  record.* EXCEPT (_reason_code, _reason, _drift),
  session.batch_time AS ingestion_ts,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM orders_read
WHERE record._reason_code IS NULL;

-- Which fields of the refused records deviate from the declaration; the engine counts them.
-- step: drift
CREATE OR REPLACE TEMPORARY VIEW orders_drift AS
SELECT explode(record._drift) AS field
FROM orders_read;

-- step: refuse
INSERT INTO lake.headgate.dead_letters BY NAME
SELECT
  'bronze-orders' AS job,
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
FROM orders_read
WHERE record._reason_code IS NOT NULL;
