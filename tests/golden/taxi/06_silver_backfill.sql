-- Silver of taxi for some dates: bronze.raw_trips → silver.cleaned_trips.
-- Compiled from datasets/taxi/dataset.yml, revision 10a6c135afe9, by Headgate 0.1.0.
-- Run alone, it makes the rows of every date anew; rows without a date stay.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/taxi/06_silver_backfill.sql
-- Digest fcc09a265a53: while it fits, the manifest rules; once edited, this file is what runs.

-- The first and the last date; the engine sets them.
-- step: dates
DECLARE OR REPLACE VARIABLE backfill_from DATE DEFAULT DATE '0001-01-01';

DECLARE OR REPLACE VARIABLE backfill_to DATE DEFAULT DATE '9999-12-31';

-- The engine binds this view to one snapshot of bronze.
-- step: source
CREATE OR REPLACE TEMPORARY VIEW taxi_bronze AS
SELECT * FROM lake.bronze.raw_trips;

-- The rows of those dates, whether they will pass or not.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW taxi_dated AS
SELECT *
FROM taxi_bronze
WHERE CAST(tpep_pickup_datetime AS DATE) BETWEEN session.backfill_from AND session.backfill_to;

-- step: view
CREATE OR REPLACE TEMPORARY VIEW taxi_clean AS
SELECT
  md5(
    concat_ws(
      '|',
      coalesce(char_length(CAST(try_cast(VendorID AS INT) AS STRING)), -1),
      coalesce(char_length(CAST(tpep_pickup_datetime AS STRING)), -1),
      coalesce(char_length(CAST(tpep_dropoff_datetime AS STRING)), -1),
      coalesce(char_length(CAST(try_cast(PULocationID AS INT) AS STRING)), -1),
      coalesce(char_length(CAST(try_cast(DOLocationID AS INT) AS STRING)), -1),
      coalesce(char_length(CAST(try_cast(fare_amount AS DECIMAL(10, 2)) AS STRING)), -1),
      coalesce(char_length(CAST(try_cast(total_amount AS DECIMAL(10, 2)) AS STRING)), -1),
      CAST(try_cast(VendorID AS INT) AS STRING),
      CAST(tpep_pickup_datetime AS STRING),
      CAST(tpep_dropoff_datetime AS STRING),
      CAST(try_cast(PULocationID AS INT) AS STRING),
      CAST(try_cast(DOLocationID AS INT) AS STRING),
      CAST(try_cast(fare_amount AS DECIMAL(10, 2)) AS STRING),
      CAST(try_cast(total_amount AS DECIMAL(10, 2)) AS STRING)
    )
  ) AS trip_id,
  try_cast(VendorID AS INT) AS vendor_id,
  tpep_pickup_datetime AS pickup_datetime,
  tpep_dropoff_datetime AS dropoff_datetime,
  try_cast(passenger_count AS INT) AS passenger_count,
  trip_distance AS trip_distance_miles,
  try_cast(RatecodeID AS INT) AS rate_code_id,
  store_and_fwd_flag,
  try_cast(PULocationID AS INT) AS pickup_location_id,
  try_cast(DOLocationID AS INT) AS dropoff_location_id,
  try_cast(payment_type AS INT) AS payment_type_id,
  try_cast(fare_amount AS DECIMAL(10, 2)) AS fare_amount,
  try_cast(extra AS DECIMAL(10, 2)) AS extra_amount,
  try_cast(mta_tax AS DECIMAL(10, 2)) AS mta_tax,
  try_cast(tip_amount AS DECIMAL(10, 2)) AS tip_amount,
  try_cast(tolls_amount AS DECIMAL(10, 2)) AS tolls_amount,
  try_cast(improvement_surcharge AS DECIMAL(10, 2)) AS improvement_surcharge,
  try_cast(total_amount AS DECIMAL(10, 2)) AS total_amount,
  try_cast(congestion_surcharge AS DECIMAL(10, 2)) AS congestion_surcharge,
  try_cast(Airport_fee AS DECIMAL(10, 2)) AS airport_fee,
  CAST(tpep_pickup_datetime AS DATE) AS pickup_date,
  ingestion_ts,
  kafka_timestamp,
  kafka_partition,
  kafka_offset
FROM taxi_dated
WHERE
  -- the quality filters
  (tpep_pickup_datetime IS NOT NULL)
  AND (tpep_dropoff_datetime IS NOT NULL)
  AND (total_amount > 0)
  AND (trip_distance IS NULL OR trip_distance >= 0)
  AND (passenger_count IS NULL OR passenger_count >= 0)
  AND (CAST(tpep_pickup_datetime AS DATE) >= DATE '2024-01-01')
  AND (CAST(tpep_pickup_datetime AS DATE) < DATE '2024-02-01')
  -- values that fit their silver types
  AND (VendorID IS NULL OR try_cast(VendorID AS INT) IS NOT NULL)
  AND (passenger_count IS NULL OR try_cast(passenger_count AS INT) IS NOT NULL)
  AND (RatecodeID IS NULL OR try_cast(RatecodeID AS INT) IS NOT NULL)
  AND (PULocationID IS NULL OR try_cast(PULocationID AS INT) IS NOT NULL)
  AND (DOLocationID IS NULL OR try_cast(DOLocationID AS INT) IS NOT NULL)
  AND (payment_type IS NULL OR try_cast(payment_type AS INT) IS NOT NULL)
  AND (fare_amount IS NULL OR try_cast(fare_amount AS DECIMAL(10, 2)) IS NOT NULL)
  AND (extra IS NULL OR try_cast(extra AS DECIMAL(10, 2)) IS NOT NULL)
  AND (mta_tax IS NULL OR try_cast(mta_tax AS DECIMAL(10, 2)) IS NOT NULL)
  AND (tip_amount IS NULL OR try_cast(tip_amount AS DECIMAL(10, 2)) IS NOT NULL)
  AND (tolls_amount IS NULL OR try_cast(tolls_amount AS DECIMAL(10, 2)) IS NOT NULL)
  AND (improvement_surcharge IS NULL OR try_cast(improvement_surcharge AS DECIMAL(10, 2)) IS NOT NULL)
  AND (total_amount IS NULL OR try_cast(total_amount AS DECIMAL(10, 2)) IS NOT NULL)
  AND (congestion_surcharge IS NULL OR try_cast(congestion_surcharge AS DECIMAL(10, 2)) IS NOT NULL)
  AND (Airport_fee IS NULL OR try_cast(Airport_fee AS DECIMAL(10, 2)) IS NOT NULL);

-- The newest row of each key.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW taxi_newest AS
SELECT
  trip_id,
  vendor_id,
  pickup_datetime,
  dropoff_datetime,
  passenger_count,
  trip_distance_miles,
  rate_code_id,
  store_and_fwd_flag,
  pickup_location_id,
  dropoff_location_id,
  payment_type_id,
  fare_amount,
  extra_amount,
  mta_tax,
  tip_amount,
  tolls_amount,
  improvement_surcharge,
  total_amount,
  congestion_surcharge,
  airport_fee,
  pickup_date,
  ingestion_ts,
  kafka_timestamp,
  kafka_partition,
  kafka_offset
FROM (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY
        vendor_id, pickup_datetime, dropoff_datetime, pickup_location_id, dropoff_location_id,
        fare_amount, total_amount
      ORDER BY kafka_timestamp DESC, kafka_partition DESC, kafka_offset DESC
    ) AS _rank
  FROM taxi_clean
)
WHERE _rank = 1;

-- These rows go in by position; the engine names the columns in the order that the table has.
-- step: columns
DECLARE OR REPLACE VARIABLE backfill_columns STRING DEFAULT '*';

-- step: statement
DECLARE OR REPLACE VARIABLE backfill_statement STRING;

SET VAR backfill_statement = concat('
INSERT INTO lake.silver.cleaned_trips
REPLACE WHERE pickup_date BETWEEN :first_date AND :last_date
SELECT ', session.backfill_columns, '
FROM taxi_newest
');

-- The rows of those dates go, and these come in their place.
-- step: backfill
EXECUTE IMMEDIATE backfill_statement
USING session.backfill_from AS first_date, session.backfill_to AS last_date;
