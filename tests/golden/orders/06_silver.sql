-- Silver of orders, rebuilt: bronze.raw_orders → silver.cleaned_orders.
-- Compiled from datasets/orders/dataset.yml, revision 6d01d821fcf5, by Headgate 0.1.0.
-- Run alone, it gives the same rows each time.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/orders/06_silver.sql
-- Digest 2ac2e8f7e6e9: while it fits, the manifest rules; once edited, this file is what runs.

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

-- The whole table anew.
-- step: rebuild
INSERT OVERWRITE lake.silver.cleaned_orders BY NAME
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
FROM orders_newest;
