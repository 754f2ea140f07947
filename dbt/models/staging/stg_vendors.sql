select
    cast(vendor_id as integer) as vendor_id,
    cast(vendor_name as varchar) as vendor_name
from {{ ref('vendors') }}
