-- Reconciliation of customer: onprem

-- What was read last: The newest version of each key, as the topic told it.
-- data centre: onprem
SELECT pk, onprem.version, onprem.action, onprem.hash, onprem.hash_version,
  onprem.read_at, onprem.partition, onprem.offset
FROM lake.dq.states_customer
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
FROM lake.dq.states_customer
WHERE onprem IS NOT NULL
GROUP BY verdict
ORDER BY readings DESC;

-- Valid readings by minute: Those with a hash that is one, and deletes.
-- data centre: onprem
SELECT date_trunc('MINUTE', onprem.read_at) AS metric_ts, count(*) AS valid_count
FROM lake.dq.states_customer
WHERE onprem IS NOT NULL AND coalesce(onprem.hash RLIKE '^[0-9a-f]{64}$' OR onprem.action = 'DELETE', FALSE)
GROUP BY metric_ts
ORDER BY metric_ts DESC
LIMIT 60;

-- Invalid readings by minute: All others.
-- data centre: onprem
SELECT date_trunc('MINUTE', onprem.read_at) AS metric_ts, count(*) AS invalid_count
FROM lake.dq.states_customer
WHERE onprem IS NOT NULL AND NOT coalesce(onprem.hash RLIKE '^[0-9a-f]{64}$' OR onprem.action = 'DELETE', FALSE)
GROUP BY metric_ts
ORDER BY metric_ts DESC
LIMIT 60;

-- Dead letters: Records of this topic that could take no part, with the reason.
-- data centre: onprem
SELECT reason_code, count(*) AS records, max(kafka_timestamp) AS newest
FROM lake.headgate.dead_letters
WHERE job = 'reconcile-customer' AND kafka_topic = 'onprem.customer.events'
GROUP BY reason_code
ORDER BY records DESC;
