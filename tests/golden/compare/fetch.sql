SELECT
  *
FROM dq_compare_cloud
WHERE pmod(CAST(conv(substring(sha2(concat(IF(id IS NULL, 'n', 'i'), coalesce(CAST(id AS STRING), ''), ';'), 256), 1, 8), 16, 10)
    AS BIGINT), 1024) IN (1, 3)
