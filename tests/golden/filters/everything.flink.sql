-- Sink Table
CREATE TABLE `filtered-service-events-dealer-001` (
    `key` BYTES,
    `id` STRING,
    `event_name` STRING,
    `event_type` STRING,
    `created_date` STRING,
    `saved_date` STRING,
    `header_data` STRING,
    `__op` STRING,
    `__table` STRING
) WITH (
    'connector' = 'confluent',
    'value.format' = 'json-registry'
);

-- INSERT Statement with JSON path extraction
INSERT INTO `filtered-service-events-dealer-001`
SELECT 
    CAST(`id` AS BYTES) AS `key`,
    `id`, `event_name`, `event_type`, `created_date`, 
    `saved_date`, `header_data`, `__op`, `__table`
FROM `raw-event-headers`
WHERE `event_type` = 'a' 
  AND TRY_CAST(`created_date` AS TIMESTAMP_LTZ(6)) < TO_TIMESTAMP_LTZ('2025-01-31 12:30:00.000000', 'yyyy-MM-dd HH:mm:ss.SSSSSS')
  AND `__ts_ms` <= 1700000000000
  AND (`__op` IN ('c', 'u') OR NOT (`id` NOT IN ('x')) OR `id` BETWEEN 'a' AND 'b')
  AND REGEXP(`event_name`, '^Car')
  AND `__op` IN ('c', 'r')
  AND TRY_CAST(JSON_VALUE(`header_data`, '$.amount') AS DOUBLE) > 1.5
  AND JSON_VALUE(`header_data`, '$.a[0].b') >= 'm'
  AND TRY_CAST(JSON_VALUE(`header_data`, '$.paid') AS BOOLEAN) = TRUE
  AND JSON_VALUE(`header_data`, '$.vin') IS NULL
  AND JSON_VALUE(`header_data`, '$.carId') IS NOT NULL;
