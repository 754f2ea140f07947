-- A fare is part of the total, so it cannot be larger; one cent is left for rounding.
select
    trip_id,
    fare_amount,
    total_amount
from {{ ref('fct_trips') }}
where
    total_amount > 0
    and fare_amount > total_amount + 0.01
