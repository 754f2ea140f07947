-- onprem.orders (on-prem) against cloud.orders (cloud): by id.
-- NULL equals NULL, NaN equals NaN, -0.0 equals 0.0; numbers and times by value.
-- at: a time without a zone is taken as UTC

-- Times without a zone are UTC.
-- step: zone
SET TIME ZONE 'UTC';

-- Small enough that a task holds its part of one side in memory.
-- step: partitions
SET spark.sql.shuffle.partitions = 4;

-- The rows of onprem.orders, in the types that are compared.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_compare_onprem AS
SELECT
  CAST(id AS BIGINT) AS id,
  CAST(amount AS DECIMAL(14, 4)) AS amount,
  CAST(`at` AS TIMESTAMP) AS `at`,
  note,
  TRUE AS dq_present
FROM lake.onprem.orders;

-- The rows of cloud.orders, in the types that are compared.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_compare_cloud AS
SELECT
  CAST(id AS BIGINT) AS id,
  CAST(amount AS DECIMAL(14, 4)) AS amount,
  CAST(`at` AS TIMESTAMP) AS `at`,
  note,
  TRUE AS dq_present
FROM lake.cloud.orders;

-- Both sides beside each other; a bit is set for each column that differs.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_compare_pairs AS
SELECT /*+ SHUFFLE_HASH(r) */
  l.id AS l_id,
  l.amount AS l_amount,
  l.`at` AS l_at,
  l.note AS l_note,
  r.id AS r_id,
  r.amount AS r_amount,
  r.`at` AS r_at,
  r.note AS r_note,
  l.dq_present AS on_onprem,
  r.dq_present AS in_cloud,
  IF((l.amount <=> r.amount OR coalesce(try_subtract(l.amount, r.amount) BETWEEN -0.01 AND 0.01, FALSE)), 0L, 1L)
    | IF((l.`at` <=> r.`at` OR coalesce(l.`at` BETWEEN r.`at` - INTERVAL '0 00:00:05.000000' DAY TO SECOND AND r.`at` +
        INTERVAL '0 00:00:05.000000' DAY TO SECOND, FALSE)), 0L, 2L)
    | IF(l.note <=> r.note, 0L, 4L) AS dq_differing_1
FROM (SELECT * FROM dq_compare_onprem AS s LEFT ANTI JOIN dq_compare_repeated AS k ON s.id <=> k.id) AS l
FULL OUTER JOIN (SELECT * FROM dq_compare_cloud AS s LEFT ANTI JOIN dq_compare_repeated AS k ON s.id <=> k.id) AS r
  ON l.id <=> r.id;

-- The status of each pair.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_compare_verdicts AS
SELECT
  *,
  CASE
    WHEN in_cloud IS NULL THEN 'MISSING_CLOUD'
    WHEN on_onprem IS NULL THEN 'MISSING_ONPREM'
    WHEN dq_differing_1 = 0 THEN 'MATCH'
    ELSE 'MISMATCH'
  END AS dq_status
FROM dq_compare_pairs;

-- All that match are one row; each other row stands here with its key and both sides.
-- step: differences
CACHE TABLE dq_compare_differences AS
SELECT
  dq_status,
  IF(dq_status = 'MISMATCH', dq_differing_1, 0L) AS dq_differing_1,
  IF(dq_status = 'MATCH', NULL, named_struct('id', coalesce(l_id, r_id))) AS dq_key,
  IF(
    dq_status = 'MATCH',
    NULL,
    named_struct('amount', l_amount, 'at', l_at, 'note', l_note)
  ) AS dq_onprem,
  IF(
    dq_status = 'MATCH',
    NULL,
    named_struct('amount', r_amount, 'at', r_at, 'note', r_note)
  ) AS dq_cloud,
  count(*) AS dq_rows
FROM dq_compare_verdicts
GROUP BY ALL;

-- How many rows, and keys, have which status.
-- step: counts
SELECT
  dq_status,
  sum(dq_rows) AS dq_rows,
  count(DISTINCT dq_key) AS dq_keys
FROM dq_compare_differences
GROUP BY dq_status;

-- In how many rows each column differs.
-- step: columns
SELECT
  coalesce(sum(IF(dq_differing_1 & 1L <> 0, dq_rows, 0)), 0) AS amount,
  coalesce(sum(IF(dq_differing_1 & 2L <> 0, dq_rows, 0)), 0) AS `at`,
  coalesce(sum(IF(dq_differing_1 & 4L <> 0, dq_rows, 0)), 0) AS note
FROM dq_compare_differences
WHERE dq_status = 'MISMATCH';
