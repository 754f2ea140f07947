select
    pickup_date,
    payment_type_id,
    count(*) as trip_count,
    sum(total_amount) as total_revenue,
    sum(tip_amount) as total_tips,
    avg(tip_percentage) as avg_tip_percentage
from {{ ref('int_trip_metrics') }}
group by pickup_date, payment_type_id
