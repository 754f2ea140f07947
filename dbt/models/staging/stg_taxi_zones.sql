select
    cast(LocationID as integer) as location_id,
    cast(Borough as varchar) as borough,
    cast(Zone as varchar) as zone_name,
    cast(service_zone as varchar) as service_zone
from {{ ref('taxi_zones') }}
