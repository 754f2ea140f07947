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

CREATE OR REPLACE TEMPORARY VIEW router_events AS
SELECT
  partition,
  offset,
  timestamp,
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
WHERE refusal IS NULL;

CREATE OR REPLACE TEMPORARY VIEW router_refused AS
SELECT
  partition,
  offset,
  refusal AS code,
  CASE
    WHEN refusal = 'not_utf8' THEN 'the value is not UTF-8 text'
    WHEN refusal = 'empty' THEN 'the value is empty'
    WHEN refusal = 'not_json' THEN 'the value is not one JSON value, or has a field twice'
    WHEN refusal = 'not_an_object' THEN 'the value is JSON but not an object'
    WHEN refusal = 'wrong_type' THEN 'a column has a value without a text of its type'
    WHEN refusal = 'no_id' THEN 'the event has no id'
  END AS words
FROM router_read
WHERE refusal <> 'tombstone';

CREATE OR REPLACE TEMPORARY VIEW router_tombstones AS
SELECT
  partition,
  offset
FROM router_read
WHERE refusal = 'tombstone';

CREATE OR REPLACE TEMPORARY VIEW router_asked AS
SELECT *
FROM (
  SELECT *
  FROM router_events
  LATERAL VIEW inline(array(named_struct(
    '_header', try_parse_json(header_data)
  ))) header
)
LATERAL VIEW inline(array(named_struct(
  '_path_0', IF(schema_of_variant(try_variant_get(_header, '$.a[0].b', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_header, '$.a[0].b', 'string'), NULL),
  '_path_1', IF(schema_of_variant(try_variant_get(_header, '$.dealerId', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$', try_variant_get(_header, '$.dealerId', 'string'), NULL),
  '_path_2', try_variant_get(_header, '$.amount', 'string'),
  '_path_3', try_variant_get(_header, '$.carId', 'string'),
  '_path_4', try_variant_get(_header, '$.paid', 'string'),
  '_path_5', try_variant_get(_header, '$.vin', 'string')
))) paths;

CREATE OR REPLACE TEMPORARY VIEW router_matched AS
SELECT
  partition,
  offset,
  timestamp,
  id,
  event_name,
  event_type,
  created_date,
  saved_date,
  header_data,
  __op,
  __table,
  filter
FROM (
  SELECT
    /*+ BROADCAST(k) */ e.*,
    coalesce(e._sought.held, k.filter) AS filter,
    k.question
  FROM (
    SELECT *
    FROM router_asked
    LATERAL VIEW OUTER explode(array(
      struct(0 AS signature, array(__op, _path_1, event_type) AS terms, CAST(NULL AS INT) AS held),
      struct(1 AS signature, array(__op, event_type) AS terms, CAST(NULL AS INT) AS held)
    )) sought AS _sought
  ) e
  JOIN router_keys k
    ON k.signature = e._sought.signature AND k.terms = e._sought.terms
)
WHERE filter IS NOT NULL
  AND CASE
  WHEN question = 0
    THEN try_cast(_path_2 AS DOUBLE) > 1.5D AND try_cast(CASE WHEN regexp_like(created_date, '^ *[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,9})?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?)? *\\z') THEN created_date END AS TIMESTAMP_LTZ) < TIMESTAMP_LTZ '2025-01-31 12:30:00Z' AND _path_0 >= 'm' AND __ts_ms <= 1700000000000L AND try_cast(_path_4 AS BOOLEAN) = TRUE AND (__op IN ('c', 'u') OR NOT (id NOT IN ('x')) OR id BETWEEN 'a' AND 'b') AND regexp_like(event_name, '^Car') AND _path_5 IS NULL AND _path_3 IS NOT NULL
  ELSE TRUE
END;

CREATE OR REPLACE TEMPORARY VIEW router_routed AS
SELECT
  partition,
  offset,
  timestamp,
  filter,
  element_at(array('filtered-service-events-dealer-001', 'filtered-service-events-dealer-002', 'filtered-service-events-dealer-003', 'filtered-service-events-dealer-001'), filter + 1) AS topic,
  CAST(id AS BINARY) AS key,
  CAST(to_json(struct(id, event_name, event_type, created_date, saved_date, header_data, __op, __table), map('ignoreNullFields', 'false')) AS BINARY) AS value
FROM router_matched;

-- [0, ["c", "DEALER-001", "CarServiceDone"], 0, null]
-- [0, ["c", "DEALER-002", "CarServiceDone"], 1, null]
-- [0, ["c", "DEALER-003", "CarServiceDone"], 2, null]
-- [1, ["c", "a"], 3, 0]
-- [1, ["r", "a"], 3, 0]
