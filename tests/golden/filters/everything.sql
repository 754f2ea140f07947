-- Filter everything: Service Events for Dealer 001
-- Events of raw-event-headers for dealer-001-service-consumer, to filtered-service-events-dealer-001.
-- Revision a33d0e04a214, compiled by Headgate 0.1.0.

CREATE TABLE IF NOT EXISTS lake.filters.`filtered-service-events-dealer-001` (
  key BINARY,
  id STRING,
  event_name STRING,
  event_type STRING,
  created_date STRING,
  saved_date STRING,
  header_data STRING,
  __op STRING,
  __table STRING
);

INSERT INTO lake.filters.`filtered-service-events-dealer-001`
SELECT
  CAST(id AS BINARY) AS key,
  id,
  event_name,
  event_type,
  created_date,
  saved_date,
  header_data,
  __op,
  __table
FROM `raw-event-headers`
WHERE __op IN ('c', 'r')
  AND event_type = 'a'
  AND try_cast(`value of header_data.amount` AS DOUBLE) > 1.5D
  AND try_cast(CASE WHEN regexp_like(created_date,
      '^ *[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,9})?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?)? *\\z')
      THEN created_date END AS TIMESTAMP_LTZ) < TIMESTAMP_LTZ '2025-01-31 12:30:00Z'
  AND `header_data.a[0].b` >= 'm'
  AND __ts_ms <= 1700000000000L
  AND try_cast(`value of header_data.paid` AS BOOLEAN) = TRUE
  AND (__op IN ('c', 'u') OR NOT (id NOT IN ('x')) OR id BETWEEN 'a' AND 'b')
  AND regexp_like(event_name, '^Car')
  AND `value of header_data.vin` IS NULL
  AND `value of header_data.carId` IS NOT NULL;
