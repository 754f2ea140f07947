"""The commands `headgate dataset` and `headgate dbt`. No heavy import at module level."""
