-- Trips that can have happened: one minute to twelve hours long, under 100 mph or of unknown speed.
with measured as (
    select
        *,
        {{ duration_minutes('pickup_datetime', 'dropoff_datetime') }} as trip_duration_minutes
    from {{ ref('stg_yellow_trips') }}
),

derived as (
    select
        *,
        trip_distance_miles / nullif(trip_duration_minutes / 60.0, 0) as avg_speed_mph,
        total_amount / nullif(trip_distance_miles, 0) as cost_per_mile,
        case when fare_amount > 0 then 100.0 * tip_amount / fare_amount end as tip_percentage,
        cast(extract(hour from pickup_datetime) as integer) as pickup_hour,
        {{ dayname_compat('pickup_datetime') }} as pickup_day_of_week,
        extract(isodow from pickup_datetime) >= 6 as is_weekend
    from measured
)

select *
from derived
where
    trip_duration_minutes between 1 and 720
    and (avg_speed_mph is null or avg_speed_mph < 100)
