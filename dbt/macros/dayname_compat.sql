{# The English name of the day, whatever the adapter calls that function. #}
{% macro dayname_compat(column) -%}
    {%- if target.type in ('duckdb', 'snowflake', 'databricks') -%}
    dayname({{ column }})
    {%- else -%}
    trim(to_char({{ column }}, 'Day'))
    {%- endif -%}
{%- endmacro %}
