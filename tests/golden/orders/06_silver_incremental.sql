-- Silver of orders, brought up to date: new rows of bronze.raw_orders → silver.cleaned_orders.
-- Compiled from datasets/orders/dataset.yml, revision 6d01d821fcf5, by Headgate 0.1.0.
-- Run alone, it compares all of bronze with silver and changes what is behind.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/orders/06_silver_incremental.sql
-- Digest 94e72c3b2740: while it fits, the manifest rules; once edited, this file is what runs.

-- The engine binds this view to one snapshot of bronze.
-- step: source
CREATE OR REPLACE TEMPORARY VIEW orders_bronze AS
SELECT * FROM lake.bronze.raw_orders;

-- step: table
CREATE NAMESPACE IF NOT EXISTS lake.silver;

CREATE TABLE IF NOT EXISTS lake.silver.cleaned_orders (
  order_key STRING COMMENT 'MD5 of the surrogate key fields',
  order_id STRING COMMENT 'The shop\'s number of the order',
  customer_id BIGINT COMMENT 'Who ordered',
  created_at TIMESTAMP_NTZ COMMENT 'When the order was placed',
  status STRING COMMENT 'How far the order is',
  total_amount DECIMAL(10, 2) COMMENT 'What the customer pays, in USD',
  order_date DATE,
  ingestion_ts TIMESTAMP,
  kafka_timestamp TIMESTAMP,
  kafka_partition INT,
  kafka_offset BIGINT
)
USING iceberg
PARTITIONED BY (order_date)
TBLPROPERTIES (
  'format-version' = '2',
  'write.format.default' = 'parquet',
  'write.parquet.compression-codec' = 'snappy',
  'write.wap.enabled' = 'true',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '50',
  'write.distribution-mode' = 'hash',
  'write.merge.distribution-mode' = 'hash',
  'write.spark.fanout.enabled' = 'false'
);

-- step: view
CREATE OR REPLACE TEMPORARY VIEW orders_clean AS
SELECT
  md5(
    concat_ws(
      '|',
      coalesce(char_length(order_id), -1),
      coalesce(char_length(CAST(created_at AS STRING)), -1),
      order_id,
      CAST(created_at AS STRING)
    )
  ) AS order_key,
  order_id,
  customer_id,
  created_at,
  status,
  try_cast(total_amount AS DECIMAL(10, 2)) AS total_amount,
  CAST(created_at AS DATE) AS order_date,
  ingestion_ts,
  kafka_timestamp,
  kafka_partition,
  kafka_offset
FROM orders_bronze
WHERE
  -- the quality filters
  (created_at IS NOT NULL)
  AND (total_amount > 0)
  -- values that fit their silver types
  AND (total_amount IS NULL OR try_cast(total_amount AS DECIMAL(10, 2)) IS NOT NULL);

-- The newest row of each key, and how many rows the key has.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW orders_newest AS
SELECT
  order_key,
  order_id,
  customer_id,
  created_at,
  status,
  total_amount,
  order_date,
  ingestion_ts,
  kafka_timestamp,
  kafka_partition,
  kafka_offset,
  _rows
FROM (
  SELECT
    *,
    count(*) OVER (
      PARTITION BY order_id, created_at
    ) AS _rows,
    row_number() OVER (
      PARTITION BY order_id, created_at
      ORDER BY kafka_timestamp DESC, kafka_partition DESC, kafka_offset DESC
    ) AS _rank
  FROM orders_clean
)
WHERE _rank = 1;

-- Of silver, only the dates from the first to the last new row are looked at.
-- step: bounds
DECLARE OR REPLACE VARIABLE merge_from DATE;

DECLARE OR REPLACE VARIABLE merge_to DATE;

SET VAR (merge_from, merge_to) = (SELECT min(order_date), max(order_date) FROM orders_newest);

-- What each new row is beside the row that silver holds under its key.
-- step: classify
CREATE OR REPLACE TEMPORARY VIEW orders_classified AS
SELECT
  fresh.*,
  CASE
    WHEN held.kafka_offset IS NULL THEN 'kept'
    WHEN struct(fresh.kafka_timestamp, fresh.kafka_partition, fresh.kafka_offset)
      > struct(held.kafka_timestamp, held.kafka_partition, held.kafka_offset) THEN 'replaced'
    WHEN struct(fresh.kafka_timestamp, fresh.kafka_partition, fresh.kafka_offset)
      = struct(held.kafka_timestamp, held.kafka_partition, held.kafka_offset) THEN 'backfilled'
    ELSE 'duplicate'
  END AS outcome
FROM orders_newest AS fresh
LEFT JOIN lake.silver.cleaned_orders AS held
  ON held.order_id <=> fresh.order_id
    AND held.created_at <=> fresh.created_at
    AND held.order_date <=> fresh.order_date
    AND (held.order_date BETWEEN session.merge_from AND session.merge_to OR held.order_date IS NULL);

-- Where no row is replaced, the engine runs this alone; else the merge alone.
-- step: append
INSERT INTO lake.silver.cleaned_orders BY NAME
SELECT
  order_key,
  order_id,
  customer_id,
  created_at,
  status,
  total_amount,
  order_date,
  ingestion_ts,
  kafka_timestamp,
  kafka_partition,
  kafka_offset
FROM orders_classified
WHERE outcome = 'kept';

-- step: merge
MERGE INTO lake.silver.cleaned_orders AS held
USING (
  SELECT * FROM orders_classified WHERE outcome IN ('kept', 'replaced')
) AS fresh
ON held.order_id <=> fresh.order_id
  AND held.created_at <=> fresh.created_at
  AND held.order_date <=> fresh.order_date
WHEN MATCHED THEN UPDATE SET
  held.order_key = fresh.order_key,
  held.order_id = fresh.order_id,
  held.customer_id = fresh.customer_id,
  held.created_at = fresh.created_at,
  held.status = fresh.status,
  held.total_amount = fresh.total_amount,
  held.order_date = fresh.order_date,
  held.ingestion_ts = fresh.ingestion_ts,
  held.kafka_timestamp = fresh.kafka_timestamp,
  held.kafka_partition = fresh.kafka_partition,
  held.kafka_offset = fresh.kafka_offset
WHEN NOT MATCHED THEN INSERT (
  order_key,
  order_id,
  customer_id,
  created_at,
  status,
  total_amount,
  order_date,
  ingestion_ts,
  kafka_timestamp,
  kafka_partition,
  kafka_offset
) VALUES (
  fresh.order_key,
  fresh.order_id,
  fresh.customer_id,
  fresh.created_at,
  fresh.status,
  fresh.total_amount,
  fresh.order_date,
  fresh.ingestion_ts,
  fresh.kafka_timestamp,
  fresh.kafka_partition,
  fresh.kafka_offset
);
