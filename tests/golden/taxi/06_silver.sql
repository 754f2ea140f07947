-- Silver of taxi, rebuilt: bronze.raw_trips → silver.cleaned_trips.
-- Compiled from datasets/taxi/dataset.yml, revision 10a6c135afe9, by Headgate 0.1.0.
-- Run alone, it gives the same rows each time.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/taxi/06_silver.sql
-- Digest 537ae6672c72: while it fits, the manifest rules; once edited, this file is what runs.

-- The engine binds this view to one snapshot of bronze.
-- step: source
CREATE OR REPLACE TEMPORARY VIEW taxi_bronze AS
SELECT * FROM lake.bronze.raw_trips;

-- step: table
CREATE NAMESPACE IF NOT EXISTS lake.silver;

CREATE TABLE IF NOT EXISTS lake.silver.cleaned_trips (
  trip_id STRING COMMENT 'MD5 of the surrogate key fields',
  vendor_id INT COMMENT 'Provider of the record',
  pickup_datetime TIMESTAMP_NTZ COMMENT 'When the meter was engaged',
  dropoff_datetime TIMESTAMP_NTZ COMMENT 'When the meter was disengaged',
  passenger_count INT COMMENT 'As entered by the driver',
  trip_distance_miles DOUBLE COMMENT 'Miles by the meter',
  rate_code_id INT COMMENT 'Rate code at the end of the trip',
  store_and_fwd_flag STRING COMMENT 'Y when the record waited in the vehicle',
  pickup_location_id INT COMMENT 'Taxi zone of the pickup',
  dropoff_location_id INT COMMENT 'Taxi zone of the dropoff',
  payment_type_id INT COMMENT 'How the passenger paid',
  fare_amount DECIMAL(10, 2) COMMENT 'Time-and-distance fare in USD',
  extra_amount DECIMAL(10, 2) COMMENT 'Rush-hour and overnight charges',
  mta_tax DECIMAL(10, 2) COMMENT 'MTA tax',
  tip_amount DECIMAL(10, 2) COMMENT 'Tips by card; cash tips are not recorded',
  tolls_amount DECIMAL(10, 2) COMMENT 'Tolls paid during the trip',
  improvement_surcharge DECIMAL(10, 2) COMMENT 'Improvement surcharge',
  total_amount DECIMAL(10, 2) COMMENT 'Total charged, without cash tips',
  congestion_surcharge DECIMAL(10, 2) COMMENT 'New York State congestion surcharge',
  airport_fee DECIMAL(10, 2) COMMENT 'Pickup at LaGuardia or JFK',
  pickup_date DATE,
  ingestion_ts TIMESTAMP,
  kafka_timestamp TIMESTAMP,
  kafka_partition INT,
  kafka_offset BIGINT
)
USING iceberg
PARTITIONED BY (pickup_date)
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
FROM taxi_bronze
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

-- The newest row of each key, and how many rows the key has.
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
  kafka_offset,
  _rows
FROM (
  SELECT
    *,
    count(*) OVER (
      PARTITION BY
        vendor_id, pickup_datetime, dropoff_datetime, pickup_location_id, dropoff_location_id,
        fare_amount, total_amount
    ) AS _rows,
    row_number() OVER (
      PARTITION BY
        vendor_id, pickup_datetime, dropoff_datetime, pickup_location_id, dropoff_location_id,
        fare_amount, total_amount
      ORDER BY kafka_timestamp DESC, kafka_partition DESC, kafka_offset DESC
    ) AS _rank
  FROM taxi_clean
)
WHERE _rank = 1;

-- The whole table anew.
-- step: rebuild
INSERT OVERWRITE lake.silver.cleaned_trips BY NAME
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
FROM taxi_newest;
