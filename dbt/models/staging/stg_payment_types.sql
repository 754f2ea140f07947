select
    cast(payment_type_id as integer) as payment_type_id,
    cast(payment_type_name as varchar) as payment_type_name
from {{ ref('payment_types') }}
