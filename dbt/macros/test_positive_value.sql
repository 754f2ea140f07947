{# Fails for values that are not above zero (or, with or_zero, below it); unknown values pass. #}
{% test positive_value(model, column_name, or_zero=false) %}

select {{ column_name }}
from {{ model }}
where {{ column_name }} {{ '<' if or_zero else '<=' }} 0

{% endtest %}
