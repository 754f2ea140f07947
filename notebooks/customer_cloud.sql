-- Reconciliation of customer: azure

-- What was read last: The newest version of each key, as the topic told it.
-- data centre: azure
SELECT pk, cloud.version, cloud.action, cloud.hash, cloud.hash_version,
  cloud.read_at, cloud.partition, cloud.offset
FROM lake.dq.states_customer
WHERE cloud IS NOT NULL
ORDER BY cloud.read_at DESC, pk
LIMIT 20;

-- Each reading by itself: Without the other side: is there a hash, and is it one?
-- data centre: azure
SELECT CASE
    WHEN cloud.action = 'DELETE' THEN 'DELETED'
    WHEN cloud.hash IS NULL THEN 'NO_HASH'
    WHEN NOT cloud.hash RLIKE '^[0-9a-f]{64}$' THEN 'INVALID_HASH'
    ELSE 'PASS'
  END AS verdict,
  count(*) AS readings
FROM lake.dq.states_customer
WHERE cloud IS NOT NULL
GROUP BY verdict
ORDER BY readings DESC;

-- Valid readings by minute: Those with a hash that is one, and deletes.
-- data centre: azure
SELECT date_trunc('MINUTE', cloud.read_at) AS metric_ts, count(*) AS valid_count
FROM lake.dq.states_customer
WHERE cloud IS NOT NULL AND coalesce(cloud.hash RLIKE '^[0-9a-f]{64}$' OR cloud.action = 'DELETE', FALSE)
GROUP BY metric_ts
ORDER BY metric_ts DESC
LIMIT 60;

-- Invalid readings by minute: All others.
-- data centre: azure
SELECT date_trunc('MINUTE', cloud.read_at) AS metric_ts, count(*) AS invalid_count
FROM lake.dq.states_customer
WHERE cloud IS NOT NULL AND NOT coalesce(cloud.hash RLIKE '^[0-9a-f]{64}$' OR cloud.action = 'DELETE', FALSE)
GROUP BY metric_ts
ORDER BY metric_ts DESC
LIMIT 60;

-- Dead letters: Records of this topic that could take no part, with the reason.
-- data centre: azure
SELECT reason_code, count(*) AS records, max(kafka_timestamp) AS newest
FROM lake.headgate.dead_letters
WHERE job = 'reconcile-customer' AND kafka_topic = 'cloud.customer.hash'
GROUP BY reason_code
ORDER BY records DESC;
