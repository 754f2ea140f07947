-- onprem.orders (on-prem) against cloud.orders (cloud): keys that repeat.
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

-- Keys that stand more than once on a side.
-- step: repeated
CACHE TABLE dq_compare_repeated AS
SELECT
  id
FROM dq_compare_onprem
GROUP BY ALL
HAVING count(*) > 1
UNION
SELECT
  id
FROM dq_compare_cloud
GROUP BY ALL
HAVING count(*) > 1;
