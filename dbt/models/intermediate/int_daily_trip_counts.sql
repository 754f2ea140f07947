select
    pickup_date,
    count(*) as trip_count,
    sum(passenger_count) as passenger_count,
    sum(total_amount) as total_revenue,
    sum(tip_amount) as total_tips,
    avg(fare_amount) as avg_fare,
    avg(trip_distance_miles) as avg_distance_miles,
    avg(trip_duration_minutes) as avg_duration_minutes,
    count(*) filter (where payment_type_id = 1) as credit_card_trips,
    count(*) filter (where payment_type_id = 2) as cash_trips
from {{ ref('int_trip_metrics') }}
group by pickup_date
