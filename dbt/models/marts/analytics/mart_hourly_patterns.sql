-- Hours are compared per day seen, since a month has more working days than weekend days.
with days as (
    select
        is_weekend,
        count(distinct pickup_date) as day_count
    from {{ ref('fct_trips') }}
    group by is_weekend
)

select
    cast(trips.pickup_hour as integer) as pickup_hour,
    cast(trips.is_weekend as boolean) as is_weekend,
    cast(count(*) as bigint) as trip_count,
    cast(count(*) / max(days.day_count) as double) as trips_per_day,
    cast(sum(trips.total_amount) as decimal(18, 2)) as total_revenue,
    cast(avg(trips.fare_amount) as double) as avg_fare,
    cast(avg(trips.trip_duration_minutes) as double) as avg_duration_minutes,
    cast(avg(trips.avg_speed_mph) as double) as avg_speed_mph
from {{ ref('fct_trips') }} as trips
inner join days on trips.is_weekend = days.is_weekend
group by trips.pickup_hour, trips.is_weekend
