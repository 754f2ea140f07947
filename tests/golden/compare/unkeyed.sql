-- onprem.orders (on-prem) against cloud.orders (cloud): as multisets of rows.
-- NULL equals NULL, NaN equals NaN, -0.0 equals 0.0; numbers and times by value.
-- at: a time without a zone is taken as UTC

-- Times without a zone are UTC.
-- step: zone
SET TIME ZONE 'UTC';

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

-- Rows that stand equally often on both sides are one row here; each other has its own.
-- step: differences
CACHE TABLE dq_compare_differences AS
SELECT
  IF(
    onprem_rows = cloud_rows,
    NULL,
    named_struct('id', id, 'amount', amount, 'at', `at`, 'note', note)
  ) AS dq_row,
  sum(onprem_rows) AS onprem_rows,
  sum(cloud_rows) AS cloud_rows,
  sum(least(onprem_rows, cloud_rows)) AS dq_both
FROM (
  SELECT
    id,
    amount,
    `at`,
    note,
    count_if(dq_side = 'onprem') AS onprem_rows,
    count_if(dq_side = 'cloud') AS cloud_rows
  FROM (
    SELECT
      id,
      amount,
      `at`,
      note,
      'onprem' AS dq_side
    FROM dq_compare_onprem
    UNION ALL
    SELECT
      id,
      amount,
      `at`,
      note,
      'cloud' AS dq_side
    FROM dq_compare_cloud
  )
  GROUP BY id, amount, `at`, note
)
GROUP BY 1;

-- How many rows stand on both sides, and on one alone.
-- step: counts
SELECT
  sum(dq_both) AS match,
  sum(onprem_rows - dq_both) AS missing_cloud,
  sum(cloud_rows - dq_both) AS missing_onprem
FROM dq_compare_differences;
