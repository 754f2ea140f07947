-- A trip ends after it starts.
select
    trip_id,
    pickup_datetime,
    dropoff_datetime
from {{ ref('fct_trips') }}
where trip_duration_minutes <= 0 or dropoff_datetime <= pickup_datetime
