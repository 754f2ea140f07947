-- Every row of silver.cleaned_orders.
-- Compiled from datasets/orders/dataset.yml, revision 6d01d821fcf5, by Headgate 0.1.0.
-- A table, so that the models after it read Iceberg once and all see the same snapshot.
{{ config(materialized='table') }}

select
    order_key,
    order_id,
    customer_id,
    created_at,
    status,
    total_amount,
    order_date,
    ingestion_ts
from {{ source('silver', 'cleaned_orders') }}
