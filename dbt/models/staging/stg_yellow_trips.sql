-- A table, so that the models after it read Iceberg once and all see the same snapshot.
{{ config(materialized='table') }}

select
    trip_id,
    vendor_id,
    pickup_datetime,
    dropoff_datetime,
    pickup_date,
    passenger_count,
    trip_distance_miles,
    rate_code_id,
    store_and_fwd_flag,
    pickup_location_id,
    dropoff_location_id,
    payment_type_id,
    fare_amount,
    extra_amount,
    mta_tax,
    tip_amount,
    tolls_amount,
    improvement_surcharge,
    total_amount,
    congestion_surcharge,
    airport_fee,
    ingestion_ts
from {{ source('silver', 'cleaned_trips') }}
