-- onprem.orders (on-prem) against cloud.orders (cloud): keys that repeat, all rows of a key together.
-- NULL equals NULL, NaN equals NaN, -0.0 equals 0.0; numbers and times by value.
-- at: a time without a zone is taken as UTC

-- All rows of a key, onprem.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_compare_onprem_together AS
SELECT
  s.id,
  sort_array(collect_list(named_struct('v', amount))) AS amount,
  sort_array(collect_list(named_struct('v', `at`))) AS `at`,
  sort_array(collect_list(named_struct('v', note))) AS note,
  sort_array(collect_list(named_struct('amount', amount, 'at', `at`, 'note', note))) AS dq_together,
  count(*) AS dq_copies,
  TRUE AS dq_present
FROM dq_compare_onprem AS s
LEFT SEMI JOIN dq_compare_repeated AS k
  ON s.id <=> k.id
GROUP BY s.id;

-- All rows of a key, cloud.
-- step: view
CREATE OR REPLACE TEMPORARY VIEW dq_compare_cloud_together AS
SELECT
  s.id,
  sort_array(collect_list(named_struct('v', amount))) AS amount,
  sort_array(collect_list(named_struct('v', `at`))) AS `at`,
  sort_array(collect_list(named_struct('v', note))) AS note,
  sort_array(collect_list(named_struct('amount', amount, 'at', `at`, 'note', note))) AS dq_together,
  count(*) AS dq_copies,
  TRUE AS dq_present
FROM dq_compare_cloud AS s
LEFT SEMI JOIN dq_compare_repeated AS k
  ON s.id <=> k.id
GROUP BY s.id;

-- The status of each key that repeats.
-- step: differences
CACHE TABLE dq_compare_repeated_differences AS
SELECT
  * EXCEPT (dq_differing_1),
  IF(dq_differing_1 = 8L, dq_differing_1, dq_differing_1 & ~8L) AS dq_differing_1,
  CASE
    WHEN in_cloud IS NULL THEN 'MISSING_CLOUD'
    WHEN on_onprem IS NULL THEN 'MISSING_ONPREM'
    WHEN dq_differing_1 = 0 THEN 'MATCH'
    ELSE 'MISMATCH'
  END AS dq_status
FROM (
  SELECT
    named_struct('id', coalesce(l.id, r.id)) AS dq_key,
    l.dq_present AS on_onprem,
    r.dq_present AS in_cloud,
    coalesce(l.dq_copies, 0) AS onprem_copies,
    coalesce(r.dq_copies, 0) AS cloud_copies,
    IF(l.amount <=> r.amount, 0L, 1L)
      | IF(l.`at` <=> r.`at`, 0L, 2L)
      | IF(l.note <=> r.note, 0L, 4L)
      | IF(l.dq_together <=> r.dq_together, 0L, 8L) AS dq_differing_1
  FROM dq_compare_onprem_together AS l
  FULL OUTER JOIN dq_compare_cloud_together AS r
    ON l.id <=> r.id
);

-- How many of these keys have which status.
-- step: counts
SELECT
  dq_status,
  count(*) AS dq_keys,
  count_if(onprem_copies > 1) AS onprem_repeated,
  count_if(cloud_copies > 1) AS cloud_repeated
FROM dq_compare_repeated_differences
GROUP BY dq_status;

-- For how many of these keys each column differs.
-- step: columns
SELECT
  coalesce(sum(IF(dq_differing_1 & 1L <> 0, 1, 0)), 0) AS amount,
  coalesce(sum(IF(dq_differing_1 & 2L <> 0, 1, 0)), 0) AS `at`,
  coalesce(sum(IF(dq_differing_1 & 4L <> 0, 1, 0)), 0) AS note,
  coalesce(sum(IF(dq_differing_1 & 8L <> 0, 1, 0)), 0) AS `(rows together)`
FROM dq_compare_repeated_differences
WHERE dq_status = 'MISMATCH';
