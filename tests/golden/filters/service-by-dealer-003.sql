-- Run alone, it reads all there is on the topic and appends to a table of the lake:
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/filters/service-by-dealer-003.sql
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

CREATE OR REPLACE TEMPORARY VIEW router_parsed AS
SELECT *
FROM (
  SELECT
    partition,
    offset,
    timestamp,
    value,
    CAST(value AS STRING) AS _text
  FROM router_source
)
LATERAL VIEW inline(array(named_struct(
  '_event', try_parse_json(concat('[', CAST(value AS STRING), ']'))
))) parsed;

CREATE OR REPLACE TEMPORARY VIEW router_read AS
SELECT *
FROM (
  SELECT *
  FROM router_parsed
  LATERAL VIEW inline(array(named_struct(
    'id', IF(schema_of_variant(try_variant_get(_event, '$[0].id', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_event, '$[0].id', 'string'), NULL),
    'event_name', IF(schema_of_variant(try_variant_get(_event, '$[0].event_name', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_event, '$[0].event_name', 'string'), NULL),
    'event_type', IF(schema_of_variant(try_variant_get(_event, '$[0].event_type', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_event, '$[0].event_type', 'string'), NULL),
    'created_date', IF(schema_of_variant(try_variant_get(_event, '$[0].created_date', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_event, '$[0].created_date', 'string'), NULL),
    'saved_date', IF(schema_of_variant(try_variant_get(_event, '$[0].saved_date', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_event, '$[0].saved_date', 'string'), NULL),
    'header_data', IF(schema_of_variant(try_variant_get(_event, '$[0].header_data', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_event, '$[0].header_data', 'string'), NULL),
    '__op', IF(schema_of_variant(try_variant_get(_event, '$[0].__op', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_event, '$[0].__op', 'string'), NULL),
    '__table', IF(schema_of_variant(try_variant_get(_event, '$[0].__table', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_event, '$[0].__table', 'string'), NULL),
    '__ts_ms', try_cast(try_variant_get(_event, '$[0].__ts_ms', 'string') AS BIGINT)
  ))) fields
)
LATERAL VIEW inline(array(named_struct(
  'refusal', CASE
    WHEN value IS NULL THEN 'tombstone'
    WHEN NOT is_valid_utf8(_text) THEN 'not_utf8'
    WHEN trim(BOTH ' \t\r\n' FROM _text) = '' THEN 'empty'
    WHEN _event IS NULL OR coalesce(size(json_object_keys(concat('{"v":', _text, '}'))), 0) <> 1
      THEN 'not_json'
    WHEN NOT startswith(ltrim(' \t\r\n', _text), '{') THEN 'not_an_object'
    WHEN (id IS NULL AND try_variant_get(_event, '$[0].id', 'string') IS NOT NULL)
      OR (event_name IS NULL AND try_variant_get(_event, '$[0].event_name', 'string') IS NOT NULL)
      OR (event_type IS NULL AND try_variant_get(_event, '$[0].event_type', 'string') IS NOT NULL)
      OR (created_date IS NULL AND try_variant_get(_event, '$[0].created_date', 'string') IS NOT NULL)
      OR (saved_date IS NULL AND try_variant_get(_event, '$[0].saved_date', 'string') IS NOT NULL)
      OR (header_data IS NULL AND try_variant_get(_event, '$[0].header_data', 'string') IS NOT NULL)
      OR (__op IS NULL AND try_variant_get(_event, '$[0].__op', 'string') IS NOT NULL)
      OR (__table IS NULL AND try_variant_get(_event, '$[0].__table', 'string') IS NOT NULL)
      OR (__ts_ms IS NULL AND try_variant_get(_event, '$[0].__ts_ms', 'string') IS NOT NULL)
      THEN 'wrong_type'
    WHEN id IS NULL OR id = '' THEN 'no_id'
  END
))) judged;

CREATE OR REPLACE TEMPORARY VIEW `raw-event-headers` AS
SELECT *
FROM (
  SELECT *
  FROM (
    SELECT
      id,
      event_name,
      event_type,
      created_date,
      saved_date,
      header_data,
      __op,
      __table,
      __ts_ms
    FROM router_read
    WHERE refusal IS NULL
  )
  LATERAL VIEW inline(array(named_struct(
    '_header', try_parse_json(header_data)
  ))) header
)
LATERAL VIEW inline(array(named_struct(
  'header_data.dealerId', IF(schema_of_variant(try_variant_get(_header, '$.dealerId', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_header, '$.dealerId', 'string'), NULL)
))) paths;

CREATE NAMESPACE IF NOT EXISTS lake.filters;

-- Filter service-by-dealer-003: Service Events for Dealer 003
-- Events of raw-event-headers for dealer-003-service-consumer, to filtered-service-events-dealer-003.
-- Revision bb54b85a5121, compiled by Headgate 0.1.0.

CREATE TABLE IF NOT EXISTS lake.filters.`filtered-service-events-dealer-003` (
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

INSERT INTO lake.filters.`filtered-service-events-dealer-003`
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
  AND `header_data.dealerId` = 'DEALER-003';
