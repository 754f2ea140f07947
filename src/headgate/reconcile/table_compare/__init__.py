"""Two tables → the SQL that compares them, and what its answers mean."""
