-- Reconciliation of orders

-- How the keys stand: Valid, invalid, missing, pending.
SELECT rollup, dq_status, cnt
FROM dq_status_orders
ORDER BY cnt DESC;

-- What is wrong, and why: Settled keys that are not valid.
SELECT pk, dq_status, dq_reason, onprem_version, cloud_version, stale, conflict
FROM dq_results_orders
WHERE rollup IN ('invalid', 'missing')
ORDER BY onprem_version, pk
LIMIT 50;

-- How often each rule matches: Of keys that no rule matches, their verdict counts.
SELECT rule, count(*) AS matches
FROM dq_results_orders
LATERAL VIEW explode(dq_rules) AS rule
GROUP BY rule
ORDER BY matches DESC, rule;

-- What waits: And what it would be if nothing came until the deadline.
SELECT pk, dq_status, provisional, deadline
FROM dq_results_orders
WHERE NOT settled
ORDER BY deadline, pk
LIMIT 50;

-- Changes by minute: Every change of a verdict is one row of the audit.
SELECT date_trunc('MINUTE', processing_time) AS at, dq_status, count(*) AS changes
FROM dq_audit_orders
GROUP BY at, dq_status
ORDER BY at DESC, changes DESC
LIMIT 100;

-- The stories that are longest: Keys whose verdict changed most often.
SELECT pk, count(*) AS changes,
  array_sort(collect_list(struct(processing_time, dq_status))).dq_status AS story
FROM dq_audit_orders
GROUP BY pk
ORDER BY changes DESC, pk
LIMIT 20;

-- Metrics by window: As they go to the sinks.
SELECT *
FROM dq_metrics_orders
ORDER BY window_start DESC
LIMIT 60;

-- State: Rows that hold what is known of the keys; the job lets go of old ones.
SELECT window_start, count(*) AS keys, sum(records) AS records
FROM lake.dq.states_orders
GROUP BY window_start
ORDER BY window_start DESC
LIMIT 24;
