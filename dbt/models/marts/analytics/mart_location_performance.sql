-- Ties go to the lower id and the earlier hour, so that the same trips give the same rows.
with trips as (
    select * from {{ ref('fct_trips') }} where pickup_location_id is not null
),

dropoffs as (
    select
        pickup_location_id,
        dropoff_zone
    from trips
    group by pickup_location_id, dropoff_location_id, dropoff_zone
    qualify row_number() over (
        partition by pickup_location_id order by count(*) desc, dropoff_location_id
    ) = 1
),

hours as (
    select
        pickup_location_id,
        pickup_hour
    from trips
    group by pickup_location_id, pickup_hour
    qualify row_number() over (
        partition by pickup_location_id order by count(*) desc, pickup_hour
    ) = 1
),

totals as (
    select
        pickup_location_id,
        any_value(pickup_borough) as pickup_borough,
        any_value(pickup_zone) as pickup_zone,
        count(*) as trip_count,
        sum(total_amount) as total_revenue,
        avg(fare_amount) as avg_fare,
        avg(trip_distance_miles) as avg_distance_miles,
        avg(trip_duration_minutes) as avg_duration_minutes,
        avg(tip_percentage) as avg_tip_percentage
    from trips
    group by pickup_location_id
)

select
    cast(totals.pickup_location_id as integer) as pickup_location_id,
    cast(totals.pickup_borough as varchar) as pickup_borough,
    cast(totals.pickup_zone as varchar) as pickup_zone,
    cast(totals.trip_count as bigint) as trip_count,
    cast(totals.total_revenue as decimal(18, 2)) as total_revenue,
    cast(totals.avg_fare as double) as avg_fare,
    cast(totals.avg_distance_miles as double) as avg_distance_miles,
    cast(totals.avg_duration_minutes as double) as avg_duration_minutes,
    cast(totals.avg_tip_percentage as double) as avg_tip_percentage,
    cast(dropoffs.dropoff_zone as varchar) as most_common_dropoff_zone,
    cast(hours.pickup_hour as integer) as peak_hour,
    cast(rank() over (order by totals.total_revenue desc) as bigint) as revenue_rank
from totals
left join dropoffs on totals.pickup_location_id = dropoffs.pickup_location_id
left join hours on totals.pickup_location_id = hours.pickup_location_id
