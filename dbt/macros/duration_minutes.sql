{# Minutes between two timestamps, with a fraction. #}
{% macro duration_minutes(start_column, end_column) -%}
    (date_diff('second', {{ start_column }}, {{ end_column }}) / 60.0)
{%- endmacro %}
