-- onprem.orders (on-prem) against cloud.orders (cloud): sums of row hashes in 1,024 segments, cloud.
-- NULL equals NULL, NaN equals NaN, -0.0 equals 0.0; numbers and times by value.
-- at: a time without a zone is taken as UTC

-- Times without a zone are UTC.
-- step: zone
SET TIME ZONE 'UTC';

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

-- Number and sums of the hashes of cloud.orders's rows, by segment.
-- step: sums
SELECT
  pmod(CAST(conv(substring(key_hash, 1, 8), 16, 10) AS BIGINT), 1024) AS segment,
  count(*) AS dq_rows,
  count(DISTINCT key_hash) AS dq_keys,
  sum(CAST(conv(substring(row_hash, 1, 15), 16, 10) AS DECIMAL(20, 0))) AS sum_1,
  sum(CAST(conv(substring(row_hash, 16, 15), 16, 10) AS DECIMAL(20, 0))) AS sum_2,
  sum(CAST(conv(substring(row_hash, 31, 15), 16, 10) AS DECIMAL(20, 0))) AS sum_3,
  sum(CAST(conv(substring(row_hash, 46, 15), 16, 10) AS DECIMAL(20, 0))) AS sum_4
FROM (
  SELECT
    sha2(concat(IF(id IS NULL, 'n', 'i'), coalesce(CAST(id AS STRING), ''), ';'), 256) AS key_hash,
    sha2(concat(IF(amount IS NULL, 'n', 'd'), coalesce(element_at(transform(array(IF(abs(amount) < 1BD, CAST(CAST(CAST(amount
        AS DECIMAL(5, 4)) * 10000BD AS DECIMAL(38, 0)) AS STRING), replace(CAST(amount AS STRING), '.', ''))), digits -> IF(digits = '0',
        '0e0', concat(trim(TRAILING '0' FROM digits), 'e', length(digits) - length(trim(TRAILING '0' FROM digits)) - 4))), 1), ''), ';',
        IF(`at` IS NULL, 'n', 't'), coalesce(CAST(unix_micros(`at`) AS STRING), ''), ';', IF(id IS NULL, 'n', 'i'), coalesce(CAST(id
        AS STRING), ''), ';', IF(note IS NULL, 'n;', 's'), coalesce(CAST(octet_length(note) AS STRING), ''), IF(note IS NULL, '', ':'),
        coalesce(note, '')), 256) AS row_hash
  FROM dq_compare_cloud
)
GROUP BY 1;
