-- Silver of orders for some dates: bronze.raw_orders → silver.cleaned_orders.
-- Compiled from datasets/orders/dataset.yml, revision 6d01d821fcf5, by Headgate 0.1.0.
-- Run alone, it makes the rows of every date anew; rows without a date stay.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/orders/06_silver_backfill.sql
-- Digest 85cab33a37e5: while it fits, the manifest rules; once edited, this file is what runs.

-- The first and the last date; the engine sets them.
-- step: dates
DECLARE OR REPLACE VARIABLE backfill_from DATE DEFAULT DATE '0001-01-01';

DECLARE OR REPLACE VARIABLE backfill_to DATE DEFAULT DATE '9999-12-31';

-- The engine binds this view to one snapshot of bronze.
-- step: source
CREATE OR REPLACE TEMPORARY VIEW orders_bronze AS
SELECT * FROM lake.bronze.raw_orders;

-- The rows of those dates, whether they will pass or not.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW orders_dated AS
SELECT *
FROM orders_bronze
WHERE CAST(created_at AS DATE) BETWEEN session.backfill_from AND session.backfill_to;

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
FROM orders_dated
WHERE
  -- the quality filters
  (created_at IS NOT NULL)
  AND (total_amount > 0)
  -- values that fit their silver types
  AND (total_amount IS NULL OR try_cast(total_amount AS DECIMAL(10, 2)) IS NOT NULL);

-- The newest row of each key.
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
  kafka_offset
FROM (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY order_id, created_at
      ORDER BY kafka_timestamp DESC, kafka_partition DESC, kafka_offset DESC
    ) AS _rank
  FROM orders_clean
)
WHERE _rank = 1;

-- These rows go in by position; the engine names the columns in the order that the table has.
-- step: columns
DECLARE OR REPLACE VARIABLE backfill_columns STRING DEFAULT '*';

-- step: statement
DECLARE OR REPLACE VARIABLE backfill_statement STRING;

SET VAR backfill_statement = concat('
INSERT INTO lake.silver.cleaned_orders
REPLACE WHERE order_date BETWEEN :first_date AND :last_date
SELECT ', session.backfill_columns, '
FROM orders_newest
');

-- The rows of those dates go, and these come in their place.
-- step: backfill
EXECUTE IMMEDIATE backfill_statement
USING session.backfill_from AS first_date, session.backfill_to AS last_date;
