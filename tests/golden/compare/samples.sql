SELECT
  dq_key,
  named_struct(
    'amount', dq_onprem.amount,
    'at', date_format(dq_onprem.`at`, 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSX'),
    'note', dq_onprem.note
  ) AS dq_onprem,
  named_struct(
    'amount', dq_cloud.amount,
    'at', date_format(dq_cloud.`at`, 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSX'),
    'note', dq_cloud.note
  ) AS dq_cloud,
  dq_differing_1
FROM dq_compare_differences
WHERE dq_status = 'MISMATCH'
ORDER BY dq_key
LIMIT 10
