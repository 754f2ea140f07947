select
    cast(rate_code_id as integer) as rate_code_id,
    cast(rate_code_name as varchar) as rate_code_name
from {{ ref('rate_codes') }}
