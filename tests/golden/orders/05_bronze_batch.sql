-- Bronze of orders: topic orders.raw_orders → bronze.raw_orders.
-- Compiled from datasets/orders/dataset.yml, revision 6d01d821fcf5, by Headgate 0.1.0.
-- Contract evolve: Fields that are no columns are kept in _extra; the engine makes columns of them.
-- Run alone, it reads the topic from its start to its current end, and appends.
-- The ledger does not know of what is run by hand: try it on a copy of the tables.
--   spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/orders/05_bronze_batch.sql
-- Digest 178bf9818266: while it fits, the manifest rules; once edited, this file is what runs.

-- Every "now" of this file; the engine sets it to the time of the batch.
-- step: clock
DECLARE OR REPLACE VARIABLE batch_time TIMESTAMP DEFAULT current_timestamp();

-- The revision that judges; the engine sets it to that of the batch.
-- step: revision
DECLARE OR REPLACE VARIABLE batch_revision STRING
DEFAULT '6d01d821fcf5cd81dc51d8d3a91395b5f0a88d25f25eca25e984fc348b44a5b2';

-- The engine binds this view to the records of one batch.
-- step: source
CREATE OR REPLACE TEMPORARY VIEW orders_source
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '127.0.0.1:9092',
  'kafka.isolation.level' 'read_committed',
  'subscribe' 'orders.raw_orders',
  'startingOffsets' 'earliest',
  'endingOffsets' 'latest',
  'includeHeaders' 'true'
);

-- step: table
CREATE NAMESPACE IF NOT EXISTS lake.bronze;

CREATE TABLE IF NOT EXISTS lake.bronze.raw_orders (
  order_id STRING COMMENT 'The shop\'s number of the order',
  customer_id BIGINT COMMENT 'Who ordered',
  created_at TIMESTAMP_NTZ COMMENT 'When the order was placed',
  status STRING COMMENT 'How far the order is',
  total_amount DOUBLE COMMENT 'What the customer pays, in USD',
  _extra STRING COMMENT 'Fields that are no columns, as a JSON object',
  _missing STRING COMMENT 'Declared fields that the record lacks, as a JSON list',
  ingestion_ts TIMESTAMP COMMENT 'Time of the batch that wrote the row',
  kafka_topic STRING,
  kafka_partition INT,
  kafka_offset BIGINT,
  kafka_timestamp TIMESTAMP
)
USING iceberg
TBLPROPERTIES (
  'format-version' = '2',
  'write.format.default' = 'parquet',
  'write.parquet.compression-codec' = 'snappy',
  'write.wap.enabled' = 'true',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '50',
  'write.metadata.metrics.column._extra' = 'counts',
  'write.metadata.metrics.column._missing' = 'counts'
);

CREATE NAMESPACE IF NOT EXISTS lake.headgate;

CREATE TABLE IF NOT EXISTS lake.headgate.dead_letters (
  job STRING,
  revision STRING,
  reason_code STRING,
  reason STRING,
  kafka_topic STRING,
  kafka_partition INT,
  kafka_offset BIGINT,
  kafka_timestamp TIMESTAMP,
  kafka_key BINARY,
  kafka_value BINARY,
  kafka_headers ARRAY<STRUCT<key: STRING, value: BINARY>>,
  refused_at TIMESTAMP
)
USING iceberg
TBLPROPERTIES (
  'format-version' = '2',
  'write.format.default' = 'parquet',
  'write.parquet.compression-codec' = 'snappy',
  'write.wap.enabled' = 'true',
  'write.metadata.delete-after-commit.enabled' = 'true',
  'write.metadata.previous-versions-max' = '50'
);

-- Each record with its fields, parsed once. A tombstone has no fields: it is counted, not parsed.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW orders_parsed AS
SELECT *
FROM (
  SELECT
    topic AS kafka_topic,
    partition AS kafka_partition,
    offset AS kafka_offset,
    timestamp AS kafka_timestamp,
    key AS kafka_key,
    value AS kafka_value,
    headers AS kafka_headers,
    CAST(value AS STRING) AS kafka_text
  FROM orders_source
  WHERE value IS NOT NULL
)
LATERAL VIEW OUTER inline(array(from_json(
  kafka_text,
  'order_id STRING,
   customer_id BIGINT,
   created_at TIMESTAMP_NTZ,
   status STRING,
   total_amount DOUBLE,
   _unparsed STRING',
  map(
    'mode', 'PERMISSIVE',
    'columnNameOfCorruptRecord', '_unparsed',
    'allowNonNumericNumbers', 'false',
    'allowSingleQuotes', 'false',
    'timestampNTZFormat', 'yyyy-MM-dd\'T\'HH:mm:ss'
  )
))) fields
-- The usual shape: the fields in their order and nothing else, whole or with some of them missing.
LATERAL VIEW inline(array(named_struct(
  '_shape',
  CASE
    WHEN _unparsed IS NOT NULL
      OR NOT is_valid_utf8(kafka_text)
      THEN NULL
    WHEN kafka_text RLIKE
        r'\A\{'
        r'(?:"order_id": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)'
        r'(?:"customer_id":[-0-9nul ]{1,24}+[, ]{0,2}+)'
        r'(?:"created_at": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)'
        r'(?:"status": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)'
        r'(?:"total_amount":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)'
        r'\}\z'
      THEN 'whole'
    WHEN kafka_text RLIKE
        r'\A\{'
        r'(?:"order_id": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)?+'
        r'(?:"customer_id":[-0-9nul ]{1,24}+[, ]{0,2}+)?+'
        r'(?:"created_at": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)?+'
        r'(?:"status": ?+(?>"[^"\\]*+"|null)[, ]{0,2}+)?+'
        r'(?:"total_amount":[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+[, ]{0,2}+)?+'
        r'\}\z'
      THEN 'partial'
  END
))) shape;

-- Why a record cannot be a row; NULL when it can. Of one that has the usual shape nothing further
-- is asked.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW orders_judged AS
SELECT
  *,
  CASE
    WHEN _shape IS NOT NULL THEN NULL
    WHEN NOT is_valid_utf8(kafka_text) THEN 'not_utf8'
    WHEN trim(BOTH ' \t\r\n' FROM kafka_text) = '' THEN 'empty'
    WHEN size(json_object_keys(kafka_text)) > size(array_distinct(json_object_keys(kafka_text)))
      THEN 'duplicate_key'
    WHEN try_parse_json(kafka_text) IS NULL THEN 'not_json'
    WHEN json_object_keys(kafka_text) IS NULL THEN 'not_an_object'
    WHEN coalesce(json_array_length(concat('[', kafka_text, ']')), 0) <> 1
      OR coalesce(size(json_object_keys(concat('{"v":', kafka_text, '}'))), 0) <> 1
      THEN 'trailing_text'
    WHEN kafka_text RLIKE
      r'(?i)(?<!\\)(?:\\\\)*(?:\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2})'
      r'|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2})'
      THEN 'half_surrogate'
    WHEN _unparsed IS NOT NULL THEN 'wrong_type'
    WHEN exists(
      array(
        from_json(
          kafka_text,
          'order_id VARIANT,
           created_at VARIANT,
           status VARIANT'
        )
      ),
      _typed ->
        left(to_json(_typed.order_id), 1) NOT IN ('"', 'n')
        OR left(to_json(_typed.created_at), 1) NOT IN ('"', 'n')
        OR left(to_json(_typed.status), 1) NOT IN ('"', 'n')
    ) THEN 'wrong_type'
    WHEN exists(array(total_amount), number -> abs(number) = DOUBLE('Infinity'))
      THEN 'out_of_range'
    WHEN kafka_text RLIKE r'[0-9][eE]\+?[0-9]{3}|[0-9]{309}'
      AND to_json(try_parse_json(kafka_text)) RLIKE '\"-?Infinity\"'
      THEN 'out_of_range'
  END AS _reason_code
FROM orders_parsed;

-- step: accept
INSERT INTO lake.bronze.raw_orders BY NAME
SELECT
  order_id,
  customer_id,
  created_at,
  status,
  total_amount,
  nullif(
    to_json(
      map_filter(
        from_json(if(_shape IS NULL, kafka_text, NULL), 'MAP<STRING, VARIANT>'),
        (field, value) -> field NOT IN (
          'order_id',
          'customer_id',
          'created_at',
          'status',
          'total_amount'
        )
      )
    ),
    '{}'
  ) AS _extra,
  nullif(
    to_json(
      array_except(
        array('order_id', 'customer_id', 'created_at', 'status', 'total_amount'),
        json_object_keys(if(_shape = 'whole', NULL, kafka_text))
      )
    ),
    '[]'
  ) AS _missing,
  session.batch_time AS ingestion_ts,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp
FROM orders_judged
WHERE _reason_code IS NULL;

-- The refused records, each with the text of those fields that could not be read.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW orders_refused AS
SELECT
  *,
  CASE
    WHEN _reason_code = 'wrong_type' THEN transform(map_keys(_unread), field -> concat('~', field))
  END AS _drift
FROM (
  SELECT
    *,
    map_filter(
      map(
        'order_id', if(
          order_id IS NULL
            OR left(to_json(_typed.order_id), 1) NOT IN ('"', 'n'),
          _raw['order_id'],
          NULL
        ),
        'customer_id', if(customer_id IS NULL, _raw['customer_id'], NULL),
        'created_at', if(
          created_at IS NULL
            OR left(to_json(_typed.created_at), 1) NOT IN ('"', 'n'),
          _raw['created_at'],
          NULL
        ),
        'status', if(
          status IS NULL
            OR left(to_json(_typed.status), 1) NOT IN ('"', 'n'),
          _raw['status'],
          NULL
        ),
        'total_amount', if(total_amount IS NULL, _raw['total_amount'], NULL)
      ),
      (name, text) -> text IS NOT NULL
    ) AS _unread
  FROM (
    SELECT
      *,
      from_json(kafka_text, 'MAP<STRING, STRING>') AS _raw,
      from_json(
        kafka_text,
        'order_id VARIANT,
         created_at VARIANT,
         status VARIANT'
      ) AS _typed
    FROM orders_judged
    WHERE _reason_code IS NOT NULL
  )
);

-- Which fields of the refused records deviate from the declaration; the engine counts them.
-- step: drift
CREATE OR REPLACE TEMPORARY VIEW orders_drift AS
SELECT field
FROM orders_refused
LATERAL VIEW explode(_drift) fields AS field;

-- step: refuse
INSERT INTO lake.headgate.dead_letters BY NAME
SELECT
  'bronze-orders' AS job,
  session.batch_revision AS revision,
  _reason_code AS reason_code,
  CASE _reason_code
    WHEN 'not_utf8' THEN 'the value is not UTF-8 text'
    WHEN 'empty' THEN 'the value is empty'
    WHEN 'duplicate_key' THEN 'a field stands twice in the record'
    WHEN 'not_json' THEN 'the value is not JSON'
    WHEN 'not_an_object' THEN 'the value is JSON but not an object'
    WHEN 'trailing_text' THEN 'something follows the JSON object'
    WHEN 'half_surrogate' THEN 'an escape is half of a surrogate pair'
    WHEN 'wrong_type' THEN concat_ws(
      '; ',
      'a field does not have its declared type',
      transform(
        map_entries(_unread),
        field -> concat(field.key, ' = ', left(field.value, 40))
      )
    )
    WHEN 'out_of_range' THEN 'a number is too large for its type'
  END AS reason,
  kafka_topic,
  kafka_partition,
  kafka_offset,
  kafka_timestamp,
  kafka_key,
  kafka_value,
  kafka_headers,
  session.batch_time AS refused_at
FROM orders_refused;
