-- Reconciliation of business: onprem

-- What was read last: The newest version of each key, as the topic told it.
-- data centre: onprem
SELECT pk, onprem.version, onprem.action, onprem.hash, onprem.hash_version,
  onprem.read_at, onprem.partition, onprem.offset
FROM lake.dq.states_business
WHERE onprem IS NOT NULL
ORDER BY onprem.read_at DESC, pk
LIMIT 20;

-- Each reading by itself: Without the other side: is there a hash, and is it one?
-- data centre: onprem
SELECT CASE
    WHEN onprem.action = 'DELETE' THEN 'DELETED'
    WHEN onprem.hash IS NULL THEN 'NO_HASH'
    WHEN NOT onprem.hash RLIKE '^[0-9a-f]{64}$' THEN 'INVALID_HASH'
    ELSE 'PASS'
  END AS verdict,
  count(*) AS readings
FROM lake.dq.states_business
WHERE onprem IS NOT NULL
GROUP BY verdict
ORDER BY readings DESC;

-- Rows, hashed here: By the contract `business_table`, in Spark's own functions.
-- data centre: onprem
SELECT pk, col1, col2, col3, col4,
  sha2(concat(IF(col1 IS NULL, 'n;', 's'), coalesce(CAST(octet_length(col1) AS STRING), ''), IF(col1 IS NULL, '', ':'), coalesce(col1, ''), IF(col2 IS NULL, 'n', 'd'), coalesce(IF(abs(CAST(col2 AS DECIMAL(38, 2))) < 1BD, CAST(CAST(CAST(CAST(col2 AS DECIMAL(38, 2)) AS DECIMAL(3, 2)) * 100BD AS DECIMAL(38, 0)) AS STRING), replace(CAST(CAST(col2 AS DECIMAL(38, 2)) AS STRING), '.', '')), ''), ';', IF(col3 IS NULL, 'n', 't'), coalesce(CAST(unix_millis(col3) AS STRING), ''), ';', IF(col4 IS NULL, 'n', 'f'), coalesce(CASE WHEN abs(col4 * 1000000.0D) < 9223372036854775808D THEN CAST(CAST(rint(col4 * 1000000.0D) AS BIGINT) AS STRING) WHEN col4 IS NOT NULL THEN format_string('%a', col4) END, ''), ';'), 256) AS hash
FROM lake.onprem.business_table
LIMIT 20;

-- Valid readings by minute: Those with a hash that is one, and deletes.
-- data centre: onprem
SELECT date_trunc('MINUTE', onprem.read_at) AS metric_ts, count(*) AS valid_count
FROM lake.dq.states_business
WHERE onprem IS NOT NULL AND coalesce(onprem.hash RLIKE '^[0-9a-f]{64}$' OR onprem.action = 'DELETE', FALSE)
GROUP BY metric_ts
ORDER BY metric_ts DESC
LIMIT 60;

-- Invalid readings by minute: All others.
-- data centre: onprem
SELECT date_trunc('MINUTE', onprem.read_at) AS metric_ts, count(*) AS invalid_count
FROM lake.dq.states_business
WHERE onprem IS NOT NULL AND NOT coalesce(onprem.hash RLIKE '^[0-9a-f]{64}$' OR onprem.action = 'DELETE', FALSE)
GROUP BY metric_ts
ORDER BY metric_ts DESC
LIMIT 60;

-- Dead letters: Records of this topic that could take no part, with the reason.
-- data centre: onprem
SELECT reason_code, count(*) AS records, max(kafka_timestamp) AS newest
FROM lake.headgate.dead_letters
WHERE job = 'reconcile-business' AND kafka_topic = 'topic1'
GROUP BY reason_code
ORDER BY records DESC;
