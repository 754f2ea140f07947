-- Run alone, it reads all there is on the topic and appends to a table of the lake:
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/filters/service-by-dealer-001.sql
-- The router asks the same of every record, for all filters at once, and writes to the topic.

CREATE OR REPLACE TEMPORARY VIEW router_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '${BOOTSTRAP_SERVERS}',
  'kafka.isolation.level' 'read_committed',
  'subscribe' 'raw-event-headers',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest'
);

CREATE OR REPLACE TEMPORARY VIEW router_read AS
SELECT
  partition,
  offset,
  timestamp,
  record.* EXCEPT (_extra, _missing, _reason_code, _reason, _drift),
  CASE
    WHEN record IS NULL THEN 'tombstone'
    WHEN record._reason_code IS NOT NULL THEN record._reason_code
    WHEN record.id IS NULL OR record.id = '' THEN 'no_id'
  END AS reason_code,
  record._reason AS reason
FROM (
  SELECT
    partition,
    offset,
    timestamp,
    strict_json(
      value,
      'id STRING,
       event_name STRING,
       event_type STRING,
       created_date STRING,
       saved_date STRING,
       header_data STRING,
       __op STRING,
       __table STRING,
       __ts_ms STRING',
      map(
        'scalars', 'id, event_name, event_type, created_date, saved_date, header_data, __op, __table, __ts_ms',
        'casts', '__ts_ms BIGINT',
        'masked', 'header_data'
      )
    ) AS record
  FROM router_source
);

CREATE OR REPLACE TEMPORARY VIEW `raw-event-headers` AS
SELECT *
FROM router_read
LATERAL VIEW inline(array(struct(try_parse_json(header_data) AS _header))) header
LATERAL VIEW inline(array(struct(
  IF(schema_of_variant(try_variant_get(_header, '$.dealerId', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$',
      try_variant_get(_header, '$.dealerId', 'string'), NULL) AS `header_data.dealerId`
))) paths
WHERE reason_code IS NULL;

CREATE NAMESPACE IF NOT EXISTS lake.filters;

-- Filter service-by-dealer-001: Service Events for Dealer 001
-- Events of raw-event-headers for dealer-001-service-consumer, to filtered-service-events-dealer-001.
-- Revision e481218849d7, compiled by Headgate 0.1.0.

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
WHERE __op = 'c'
  AND event_type = 'CarServiceDone'
  AND `header_data.dealerId` = 'DEALER-001';
