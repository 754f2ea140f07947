with card as (
    select
        pickup_date,
        sum(total_revenue) as credit_card_revenue
    from {{ ref('int_payment_stats') }}
    where payment_type_id = 1
    group by pickup_date
),

daily as (
    select
        days.*,
        coalesce(card.credit_card_revenue, 0) as credit_card_revenue,
        lag(days.total_revenue) over (order by days.pickup_date) as prior_day_revenue,
        sum(days.total_revenue) over (order by days.pickup_date) as running_revenue
    from {{ ref('int_daily_trip_counts') }} as days
    left join card on days.pickup_date = card.pickup_date
)

select
    cast(pickup_date as date) as pickup_date,
    cast(trip_count as bigint) as trip_count,
    cast(total_revenue as decimal(18, 2)) as total_revenue,
    cast(total_tips as decimal(18, 2)) as total_tips,
    cast(credit_card_revenue as decimal(18, 2)) as credit_card_revenue,
    cast(credit_card_trips as bigint) as credit_card_trips,
    cast(cash_trips as bigint) as cash_trips,
    cast(avg_fare as double) as avg_fare,
    cast(running_revenue as decimal(18, 2)) as running_revenue,
    cast(total_revenue - prior_day_revenue as decimal(18, 2)) as revenue_change,
    cast(100.0 * (total_revenue - prior_day_revenue) / nullif(prior_day_revenue, 0) as double)
        as revenue_change_percentage
from daily
