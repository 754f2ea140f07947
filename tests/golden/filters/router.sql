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

CREATE OR REPLACE TEMPORARY VIEW router_refused AS
SELECT
  partition,
  offset,
  reason_code,
  coalesce(reason, 'the event has no id') AS reason
FROM router_read
WHERE reason_code <> 'tombstone';

CREATE OR REPLACE TEMPORARY VIEW router_events AS
SELECT *
FROM router_read
LATERAL VIEW inline(array(struct(try_parse_json(header_data) AS _header))) header
LATERAL VIEW inline(array(struct(
  IF(schema_of_variant(try_variant_get(_header, '$.a[0].b', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$',
      try_variant_get(_header, '$.a[0].b', 'string'), NULL) AS _path_0,
  IF(schema_of_variant(try_variant_get(_header, '$.dealerId', 'variant')) RLIKE '^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$',
      try_variant_get(_header, '$.dealerId', 'string'), NULL) AS _path_1,
  try_variant_get(_header, '$.amount', 'string') AS _path_2,
  try_variant_get(_header, '$.carId', 'string') AS _path_3,
  try_variant_get(_header, '$.paid', 'string') AS _path_4,
  try_variant_get(_header, '$.vin', 'string') AS _path_5
))) paths
WHERE reason_code IS NULL;

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
    FROM router_events
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
    THEN try_cast(_path_2 AS DOUBLE) > 1.5D AND try_cast(CASE WHEN regexp_like(created_date,
        '^ *[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,9})?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?)? *\\z')
        THEN created_date END AS TIMESTAMP_LTZ) < TIMESTAMP_LTZ '2025-01-31 12:30:00Z' AND _path_0 >= 'm' AND __ts_ms <= 1700000000000L
        AND try_cast(_path_4 AS BOOLEAN) = TRUE AND (__op IN ('c', 'u') OR NOT (id NOT IN ('x')) OR id BETWEEN 'a' AND 'b')
        AND regexp_like(event_name, '^Car') AND _path_5 IS NULL AND _path_3 IS NOT NULL
  ELSE TRUE
END;

CREATE OR REPLACE TEMPORARY VIEW router_routed AS
SELECT
  partition,
  offset,
  timestamp,
  filter,
  element_at(array('filtered-service-events-dealer-001', 'filtered-service-events-dealer-002', 'filtered-service-events-dealer-003',
      'filtered-service-events-dealer-001'), filter + 1) AS topic,
  CAST(id AS BINARY) AS key,
  CAST(to_json(struct(id, event_name, event_type, created_date, saved_date, header_data, __op, __table), map('ignoreNullFields', 'false'))
      AS BINARY) AS value
FROM router_matched;

-- [0, ["c", "DEALER-001", "CarServiceDone"], 0, null]
-- [0, ["c", "DEALER-002", "CarServiceDone"], 1, null]
-- [0, ["c", "DEALER-003", "CarServiceDone"], 2, null]
-- [1, ["c", "a"], 3, 0]
-- [1, ["r", "a"], 3, 0]
